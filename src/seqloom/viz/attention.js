"use strict";
// Everything on the page is there without this; it adds the other heads, and what a word looked at.

const DEEP = 0.5;
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function mean(matrices) {
  return matrices[0].map((row, t) =>
    row.map((_, s) => matrices.reduce((sum, one) => sum + one[t][s], 0) / matrices.length));
}

function percent(weight) {
  const rounded = Math.round(100 * weight);
  return rounded ? String(rounded) : "·";
}

function paint(element, weight) {
  element.style.setProperty("--w", weight);
  element.classList.toggle("deep", weight > DEEP);
}

function thumbnail(weights) {
  const canvas = document.createElement("canvas");
  canvas.height = weights.length;
  canvas.width = weights[0].length;
  const pen = canvas.getContext("2d");
  pen.fillStyle = colour("--blue");
  weights.forEach((row, t) => row.forEach((weight, s) => {
    pen.globalAlpha = weight;
    pen.fillRect(s, t, 1, 1);
  }));
  return canvas;
}

class Card {
  constructor(section) {
    this.section = section;
    this.data = JSON.parse(section.querySelector("script").textContent);
    this.weights = this.data.chosen;
    this.rows = [...section.querySelectorAll("tbody tr")];
    this.heads = [...section.querySelectorAll("thead th.source")];
    this.outputs = [...section.querySelectorAll(".output .word")];
    this.sources = [...section.querySelectorAll(".source .word")];
    this.listen(this.outputs, (t) => this.ask(t, null));
    this.listen(this.sources, (s) => this.ask(null, s));
    this.listen(this.rows, (t) => this.ask(t, null));
    this.offerHeads();
  }

  listen(elements, light) {
    elements.forEach((element, place) => {
      for (const event of ["mouseenter", "focus"]) element.addEventListener(event, () => light(place));
      for (const event of ["mouseleave", "blur"]) element.addEventListener(event, () => this.ask(null, null));
    });
  }

  // Light up what output t looked at, or who looked at source s.
  ask(t, s) {
    this.sources.forEach((word, place) => {
      paint(word, t === null ? 0 : this.weights[t][place]);
      word.classList.toggle("asked", place === s);
      this.heads[place].classList.toggle("asked", place === s);
    });
    this.outputs.forEach((word, place) => {
      paint(word, s === null ? 0 : this.weights[place][s]);
      word.classList.toggle("asked", place === t);
      this.rows[place].classList.toggle("asked", place === t);
      [...this.rows[place].querySelectorAll("td")].forEach((cell, column) =>
        cell.classList.toggle("asked", column === s));
    });
  }

  show(weights, name, button) {
    this.ask(null, null);
    this.weights = weights;
    this.section.querySelector(".view").textContent = name;
    this.section.querySelectorAll(".heads button").forEach((one) =>
      one.setAttribute("aria-pressed", String(one === button)));
    this.rows.forEach((row, t) => [...row.querySelectorAll("td")].forEach((cell, s) => {
      paint(cell, weights[t][s]);
      cell.textContent = percent(weights[t][s]);
      cell.classList.toggle("small", Math.round(100 * weights[t][s]) === 0);
    }));
  }

  button(weights, name, text) {
    const button = document.createElement("button");
    button.type = "button";
    button.title = name;
    button.setAttribute("aria-label", name);
    button.setAttribute("aria-pressed", "false");
    if (text) { button.textContent = text; button.className = "plain"; }
    else button.append(thumbnail(weights));
    button.addEventListener("click", () => this.show(weights, name, button));
    return button;
  }

  label(text, name = "") {
    const label = document.createElement("span");
    label.textContent = text;
    label.className = name;
    return label;
  }

  offerHeads() {
    const place = this.section.querySelector(".heads");
    const layers = this.data.heads;
    if (!place || !layers.length || layers.length * layers[0].length < 2) return;
    place.style.gridTemplateColumns = `repeat(${layers[0].length + 2}, auto)`;
    const first = this.button(this.data.chosen, this.data.view, this.data.view);
    first.setAttribute("aria-pressed", "true");
    place.append(first, this.label(""), this.label("mean", "top"));
    layers[0].forEach((_, head) => place.append(this.label(`head ${head + 1}`, "top")));
    layers.forEach((heads, layer) => {
      place.append(this.label(`layer ${layer + 1}`), this.button(mean(heads), `layer ${layer + 1}, mean of its heads`));
      heads.forEach((weights, head) =>
        place.append(this.button(weights, `layer ${layer + 1}, head ${head + 1}`)));
    });
  }
}

const cards = [...document.querySelectorAll("section")].filter((one) => one.querySelector("script"));
cards.forEach((section) => new Card(section));
