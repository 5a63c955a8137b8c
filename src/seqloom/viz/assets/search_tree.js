"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const COLUMN = 128, ROW = 44, LEFT = 48, HEADER = 34;
const MILLISECONDS_PER_STEP = 900;
const slider = document.getElementById("step"), play = document.getElementById("play");
const last = data.spots.length;

function makeSvg(name, attributes, parent, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}
const columnX = (step) => LEFT + step * COLUMN;
const rowY = (row) => HEADER + 24 + (row - data.top) * ROW;

function drawLabel(parent, x, y, text) {
  const box = makeSvg("rect", { rx: 6, height: 22, y: y - 11 }, parent);
  const label = makeSvg("text", { class: "token", x, y: y + 4.5 }, parent, text);
  const width = Math.max(label.getComputedTextLength() + 14, 22);
  box.setAttribute("width", width);
  box.setAttribute("x", x - width / 2);
}
function drawNote(parent, x, y, text) {
  const background = makeSvg("rect", { class: "background", height: 12, y: y - 9 }, parent);
  const note = makeSvg("text", { class: "small", x, y }, parent, text);
  const width = note.getComputedTextLength() + 4;
  background.setAttribute("width", width);
  background.setAttribute("x", x - width / 2);
}
function drawEdge(parent, step, node) {
  const x = columnX(step), parentX = columnX(step - 1), middle = (x + parentX) / 2;
  const d = `M${parentX},${rowY(node.from)}C${middle},${rowY(node.from)} ${middle},${rowY(node.row)} ${x},${rowY(node.row)}`;
  const width = node.fate === "dropped" ? 1 : 1 + 4 * Math.exp(node.log);
  makeSvg("path", { d, "stroke-width": width.toFixed(2) }, parent);
}
function describe(node) {
  const rank = node.rank ? `  #${node.rank}` : "";
  const score = node.fate === "finished" || node.fate === "stopped" ? `  ${node.score.toFixed(2)}` : "";
  return `${node.p}${rank}${score}${node.reason ? `  ${node.reason}` : ""}`;
}

const svg = makeSvg("svg", {}, document.getElementById("tree"));
const stepGroups = [];
function drawTree() {
  const noteLines = Math.max(0, ...data.left_out.map((notes) => notes.length));
  const height = rowY(data.bottom) + 42 + 14 * noteLines;
  svg.setAttribute("width", columnX(last) + 96);
  svg.setAttribute("height", height);
  const edges = makeSvg("g", {}, svg), nodes = makeSvg("g", {}, svg);
  drawLabel(nodes, columnX(0), rowY(0), "start");
  data.spots.forEach((stepNodes, index) => {
    const step = index + 1;
    const edgeGroup = makeSvg("g", { class: "step" }, edges), nodeGroup = makeSvg("g", { class: "step" }, nodes);
    makeSvg("text", { class: "head", x: columnX(step), y: 20 }, nodeGroup, step);
    // The best output is drawn last, over the other edges.
    const ordered = [...stepNodes].sort((first, second) => first.wins - second.wins);
    for (const node of ordered) {
      const className = `${node.fate}${node.wins ? " wins" : ""}`;
      drawEdge(makeSvg("g", { class: className }, edgeGroup), step, node);
      const group = makeSvg("g", { class: className }, nodeGroup);
      drawNote(group, columnX(step), rowY(node.row) + 22, describe(node));
      drawLabel(group, columnX(step), rowY(node.row), node.label);
    }
    data.left_out[index].forEach((note, line) => {
      drawNote(nodeGroup, columnX(step), rowY(data.bottom) + 44 + 14 * line, note);
    });
    stepGroups.push([edgeGroup, nodeGroup]);
  });
}

function addCell(row, text, direction) {
  const cell = row.insertCell();
  cell.textContent = text;
  if (direction) cell.dir = direction;
}
function listCandidates(step) {
  const container = document.getElementById("candidates"), candidates = data.steps[step - 1] || [];
  document.getElementById("candidates-title").textContent = step ? `All ${candidates.length} candidates of step ${step}` : "Candidates";
  container.replaceChildren();
  if (!step) return;
  const table = document.createElement("table");
  const headerRow = table.createTHead().insertRow();
  for (const text of ["token", "p", "log p", "score", "", "text so far"]) {
    const header = document.createElement("th");
    header.textContent = text;
    headerRow.append(header);
  }
  const body = table.createTBody();
  for (const candidate of candidates) {
    const row = body.insertRow();
    row.className = candidate.fate;
    addCell(row, candidate.piece, "auto");
    for (const text of [candidate.p, candidate.total.toFixed(2), candidate.score.toFixed(2)]) addCell(row, text);
    addCell(row, candidate.fate === "stopped" ? `stopped: ${candidate.reason}` : candidate.reason || candidate.fate);
    addCell(row, candidate.text, "auto");
  }
  container.append(table);
}
function showStep(step, scroll) {
  slider.value = step;
  document.getElementById("step-label").textContent = step ? `step ${step} of ${last}` : "before step 1";
  stepGroups.forEach((pair, index) => {
    for (const group of pair) {
      group.classList.toggle("later", index >= step);
      group.classList.toggle("current", index === step - 1);
    }
  });
  listCandidates(step);
  const tree = document.getElementById("tree");
  if (scroll) tree.scrollTo({ left: columnX(step) - tree.clientWidth * 0.7, behavior: "smooth" });
}

let timer = 0;
function pausePlayback() {
  clearInterval(timer);
  timer = 0;
  play.textContent = "▶";
}
function startPlayback() {
  if (Number(slider.value) === last) showStep(0, true);
  play.textContent = "❚❚";
  timer = setInterval(() => {
    if (Number(slider.value) >= last) pausePlayback();
    else showStep(Number(slider.value) + 1, true);
  }, MILLISECONDS_PER_STEP);
}
play.addEventListener("click", () => (timer ? pausePlayback() : startPlayback()));
slider.addEventListener("input", () => {
  pausePlayback();
  showStep(Number(slider.value), true);
});
document.addEventListener("keydown", (event) => {
  const current = Number(slider.value);
  const steps = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: last };
  if (event.key === " " && event.target !== play) {
    event.preventDefault();
    if (timer) pausePlayback();
    else startPlayback();
  } else if (event.key in steps) {
    event.preventDefault();
    pausePlayback();
    showStep(Math.min(Math.max(steps[event.key], 0), last), true);
  }
});
drawTree();
showStep(last, false);
