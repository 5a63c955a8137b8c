"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const COLUMN = 128, ROW = 44, LEFT = 48, HEAD = 34;
const scrub = document.getElementById("scrub"), play = document.getElementById("play");
const last = data.spots.length;

function make(name, attributes, parent, words) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (words !== undefined) node.textContent = words;
  parent.append(node);
  return node;
}
const across = (step) => LEFT + step * COLUMN;
const down = (row) => HEAD + 24 + (row - data.top) * ROW;

function label(parent, x, y, words) {
  const box = make("rect", { rx: 6, height: 22, y: y - 11 }, parent);
  const text = make("text", { class: "token", x, y: y + 4.5 }, parent, words);
  const width = Math.max(text.getComputedTextLength() + 14, 22);
  box.setAttribute("width", width);
  box.setAttribute("x", x - width / 2);
}
function note(parent, x, y, words) {
  const ground = make("rect", { class: "ground", height: 12, y: y - 9 }, parent);
  const text = make("text", { class: "small", x, y }, parent, words);
  const width = text.getComputedTextLength() + 4;
  ground.setAttribute("width", width);
  ground.setAttribute("x", x - width / 2);
}
function edge(parent, step, one) {
  const x = across(step), before = across(step - 1), middle = (x + before) / 2;
  const d = `M${before},${down(one.from)}C${middle},${down(one.from)} ${middle},${down(one.row)} ${x},${down(one.row)}`;
  const width = one.fate === "dropped" ? 1 : 1 + 4 * Math.exp(one.log);
  make("path", { d, "stroke-width": width.toFixed(2) }, parent);
}
function describe(one) {
  const saved = one.rank ? `  #${one.rank}` : "";
  const score = one.fate === "finished" || one.fate === "stopped" ? `  ${one.score.toFixed(2)}` : "";
  return `${one.p}${saved}${score}${one.reason ? `  ${one.reason}` : ""}`;
}

const svg = make("svg", {}, document.getElementById("tree"));
const groups = [];
function draw() {
  const notes = Math.max(0, ...data.left_out.map((several) => several.length));
  const height = down(data.bottom) + 42 + 14 * notes;
  svg.setAttribute("width", across(last) + 96);
  svg.setAttribute("height", height);
  const edges = make("g", {}, svg), spots = make("g", {}, svg);
  label(spots, across(0), down(0), "start");
  data.spots.forEach((several, index) => {
    const step = index + 1;
    const lines = make("g", { class: "step" }, edges), group = make("g", { class: "step" }, spots);
    make("text", { class: "head", x: across(step), y: 20 }, group, step);
    const ordered = [...several].sort((one, other) => one.wins - other.wins);
    for (const one of ordered) {
      const kind = `${one.fate}${one.wins ? " wins" : ""}`;
      edge(make("g", { class: kind }, lines), step, one);
      const spot = make("g", { class: kind }, group);
      note(spot, across(step), down(one.row) + 22, describe(one));
      label(spot, across(step), down(one.row), one.label);
    }
    data.left_out[index].forEach((words, line) => {
      note(group, across(step), down(data.bottom) + 44 + 14 * line, words);
    });
    groups.push([lines, group]);
  });
}

function cell(row, words, direction) {
  const made = row.insertCell();
  made.textContent = words;
  if (direction) made.dir = direction;
}
function list(step) {
  const place = document.getElementById("candidates"), several = data.steps[step - 1] || [];
  document.getElementById("chosen").textContent = step ? `all ${several.length} candidates of step ${step}` : "candidates";
  place.replaceChildren();
  if (!step) return;
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  for (const words of ["token", "p", "log p", "score", "", "so far"]) {
    const made = document.createElement("th");
    made.textContent = words;
    head.append(made);
  }
  const body = table.createTBody();
  for (const one of several) {
    const row = body.insertRow();
    row.className = one.fate;
    cell(row, one.piece, "auto");
    for (const words of [one.p, one.total.toFixed(2), one.score.toFixed(2)]) cell(row, words);
    cell(row, one.fate === "stopped" ? `stopped: ${one.reason}` : one.reason || one.fate);
    cell(row, one.text, "auto");
  }
  place.append(table);
}
function show(step, follow) {
  scrub.value = step;
  document.getElementById("where").textContent = step ? `step ${step} of ${last}` : "before step 1";
  groups.forEach((pair, index) => {
    for (const group of pair) {
      group.classList.toggle("later", index >= step);
      group.classList.toggle("now", index === step - 1);
    }
  });
  list(step);
  const tree = document.getElementById("tree");
  if (follow) tree.scrollTo({ left: across(step) - tree.clientWidth * 0.7, behavior: "smooth" });
}

let timer = 0;
function pause() {
  clearInterval(timer);
  timer = 0;
  play.textContent = "▶";
}
function start() {
  if (Number(scrub.value) === last) show(0, true);
  play.textContent = "❚❚";
  timer = setInterval(() => {
    if (Number(scrub.value) >= last) pause();
    else show(Number(scrub.value) + 1, true);
  }, 900);
}
play.addEventListener("click", () => (timer ? pause() : start()));
scrub.addEventListener("input", () => {
  pause();
  show(Number(scrub.value), true);
});
document.addEventListener("keydown", (event) => {
  const now = Number(scrub.value);
  const keys = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: last };
  if (event.key === " " && event.target !== play) {
    event.preventDefault();
    if (timer) pause();
    else start();
  } else if (event.key in keys) {
    event.preventDefault();
    pause();
    show(Math.min(Math.max(keys[event.key], 0), last), true);
  }
});
draw();
show(last, false);
