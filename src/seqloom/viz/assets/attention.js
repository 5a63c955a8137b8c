"use strict";
// Adds highlighting and the selection of heads. Without this script the page shows only the tables.

const DARK_CELL = 0.5;
const cssVariable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function mean(matrices) {
  return matrices[0].map((row, t) =>
    row.map((_, s) => matrices.reduce((sum, matrix) => sum + matrix[t][s], 0) / matrices.length));
}

function percent(weight) {
  const rounded = Math.round(100 * weight);
  return rounded ? String(rounded) : "·";
}

function setWeight(element, weight) {
  element.style.setProperty("--weight", weight);
  element.classList.toggle("dark", weight > DARK_CELL);
}

function thumbnail(weights) {
  const canvas = document.createElement("canvas");
  canvas.height = weights.length;
  canvas.width = weights[0].length;
  const context = canvas.getContext("2d");
  context.fillStyle = cssVariable("--blue");
  weights.forEach((row, t) => row.forEach((weight, s) => {
    context.globalAlpha = weight;
    context.fillRect(s, t, 1, 1);
  }));
  return canvas;
}

class AttentionCard {
  constructor(section) {
    this.section = section;
    this.data = JSON.parse(section.querySelector("script").textContent);
    this.weights = this.data.chosen;
    this.rows = [...section.querySelectorAll("tbody tr")];
    this.columnHeaders = [...section.querySelectorAll("thead th.source")];
    this.outputs = [...section.querySelectorAll(".output .word")];
    this.sources = [...section.querySelectorAll(".source .word")];
    this.listen(this.outputs, (t) => this.highlight(t, null));
    this.listen(this.sources, (s) => this.highlight(null, s));
    this.listen(this.rows, (t) => this.highlight(t, null));
    this.addHeadButtons();
  }

  listen(elements, highlight) {
    elements.forEach((element, index) => {
      for (const event of ["mouseenter", "focus"]) element.addEventListener(event, () => highlight(index));
      for (const event of ["mouseleave", "blur"]) element.addEventListener(event, () => this.highlight(null, null));
    });
  }

  // Highlights the source words that output t attends to, or the output words that attend to source s.
  highlight(t, s) {
    this.sources.forEach((word, index) => {
      setWeight(word, t === null ? 0 : this.weights[t][index]);
      word.classList.toggle("selected", index === s);
      this.columnHeaders[index].classList.toggle("selected", index === s);
    });
    this.outputs.forEach((word, index) => {
      setWeight(word, s === null ? 0 : this.weights[index][s]);
      word.classList.toggle("selected", index === t);
      this.rows[index].classList.toggle("selected", index === t);
      [...this.rows[index].querySelectorAll("td")].forEach((cell, column) =>
        cell.classList.toggle("selected", column === s));
    });
  }

  showWeights(weights, name, pressed) {
    this.highlight(null, null);
    this.weights = weights;
    this.section.querySelector(".view").textContent = name;
    this.section.querySelectorAll(".heads button").forEach((button) =>
      button.setAttribute("aria-pressed", String(button === pressed)));
    this.rows.forEach((row, t) => [...row.querySelectorAll("td")].forEach((cell, s) => {
      setWeight(cell, weights[t][s]);
      cell.textContent = percent(weights[t][s]);
      cell.classList.toggle("small", Math.round(100 * weights[t][s]) === 0);
    }));
  }

  createButton(weights, name, text) {
    const button = document.createElement("button");
    button.type = "button";
    button.title = name;
    button.setAttribute("aria-label", name);
    button.setAttribute("aria-pressed", "false");
    if (text) { button.textContent = text; button.className = "plain"; }
    else button.append(thumbnail(weights));
    button.addEventListener("click", () => this.showWeights(weights, name, button));
    return button;
  }

  createLabel(text, className = "") {
    const label = document.createElement("span");
    label.textContent = text;
    label.className = className;
    return label;
  }

  addHeadButtons() {
    const grid = this.section.querySelector(".heads");
    const layers = this.data.heads;
    if (!grid || !layers.length || layers.length * layers[0].length < 2) return;
    grid.style.gridTemplateColumns = `repeat(${layers[0].length + 2}, auto)`;
    const first = this.createButton(this.data.chosen, this.data.view, this.data.view);
    first.setAttribute("aria-pressed", "true");
    grid.append(first, this.createLabel(""), this.createLabel("mean", "top"));
    layers[0].forEach((_, head) => grid.append(this.createLabel(`head ${head + 1}`, "top")));
    layers.forEach((heads, layer) => {
      grid.append(this.createLabel(`layer ${layer + 1}`), this.createButton(mean(heads), `layer ${layer + 1}, mean of its heads`));
      heads.forEach((weights, head) =>
        grid.append(this.createButton(weights, `layer ${layer + 1}, head ${head + 1}`)));
    });
  }
}

const sections = [...document.querySelectorAll("section")].filter((section) => section.querySelector("script"));
sections.forEach((section) => new AttentionCard(section));
