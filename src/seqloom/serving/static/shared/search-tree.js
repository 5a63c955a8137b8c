// The tree of a beam search: steps from left to right, surviving candidates in blue, dropped ones in grey.

import { make, makeSvg, prefersReducedMotion } from "./dom.js";
import { formatScore } from "./words.js";

const COLUMN = 132, ROW = 46, LEFT = 46, HEADER = 30;
const measuringContext = document.createElement("canvas").getContext("2d");

function textWidth(text, fontSize) {
  measuringContext.font = `${fontSize}px Inter, system-ui, sans-serif`;
  return measuringContext.measureText(text).width;
}

/** tree: the layout from /api/search/tree. Returns { svg, last, showStep }; showStep(n) shows the first n steps. */
export function searchTree(tree) {
  const last = tree.spots.length;
  const columnX = (step) => LEFT + step * COLUMN;
  const rowY = (row) => HEADER + 24 + (row - tree.top) * ROW;
  const noteLines = Math.max(0, ...tree.left_out.map((notes) => notes.length));
  const width = columnX(last) + 92, height = rowY(tree.bottom) + 40 + 15 * noteLines;
  const svg = makeSvg("svg", { class: "tree", width, height, viewBox: `0 0 ${width} ${height}`, role: "img" });
  const edges = makeSvg("g"), nodes = makeSvg("g");
  svg.append(edges, nodes);

  function drawLabel(parent, x, y, text) {
    const boxWidth = Math.max(textWidth(text, 13) + 16, 24);
    parent.append(
      makeSvg("rect", { x: x - boxWidth / 2, y: y - 12, width: boxWidth, height: 24, rx: 7 }),
      makeSvg("text", { class: "token", x, y: y + 4.5 }, text));
  }
  function drawNote(parent, x, y, text) {
    const boxWidth = textWidth(text, 10.5) + 6;
    parent.append(
      makeSvg("rect", { class: "background", x: x - boxWidth / 2, y: y - 9, width: boxWidth, height: 12 }),
      makeSvg("text", { class: "small", x, y }, text));
  }
  function drawEdge(parent, step, node) {
    const x = columnX(step), parentX = columnX(step - 1), middle = (x + parentX) / 2;
    const strokeWidth = node.fate === "dropped" ? 1 : 1 + 4 * Math.exp(node.log ?? -9);
    parent.append(makeSvg("path", {
      d: `M${parentX},${rowY(node.from)}C${middle},${rowY(node.from)} ${middle},${rowY(node.row)} ${x},${rowY(node.row)}`,
      "stroke-width": strokeWidth.toFixed(2),
    }));
  }

  drawLabel(nodes, columnX(0), rowY(0), "start");
  const stepGroups = tree.spots.map((stepNodes, index) => {
    const step = index + 1, edgeGroup = makeSvg("g", { class: "step" }), nodeGroup = makeSvg("g", { class: "step" });
    nodeGroup.append(makeSvg("text", { class: "head", x: columnX(step), y: 18 }, step));
    // The best output is drawn last, over the other edges.
    for (const node of [...stepNodes].sort((first, second) => first.wins - second.wins)) {
      const className = `${node.fate}${node.wins ? " wins" : ""}`;
      const edge = makeSvg("g", { class: className }), group = makeSvg("g", { class: className });
      drawEdge(edge, step, node);
      drawNote(group, columnX(step), rowY(node.row) + 23, describeNode(node));
      drawLabel(group, columnX(step), rowY(node.row), node.label === "</s>" ? "end" : node.label);
      edgeGroup.append(edge);
      nodeGroup.append(group);
    }
    tree.left_out[index].forEach((note, line) => drawNote(nodeGroup, columnX(step), rowY(tree.bottom) + 44 + 15 * line, note));
    edges.append(edgeGroup);
    nodes.append(nodeGroup);
    return [edgeGroup, nodeGroup];
  });

  return {
    svg,
    last,
    showStep(step, scroller) {
      stepGroups.forEach((pair, index) => pair.forEach((group) => {
        group.classList.toggle("later", index >= step);
        group.classList.toggle("current", index === step - 1);
      }));
      svg.setAttribute("aria-label", describeStep(tree, step));
      scroller?.scrollTo({ left: columnX(step) - scroller.clientWidth * 0.7, behavior: prefersReducedMotion() ? "auto" : "smooth" });
    },
  };
}

function describeNode(node) {
  const rank = node.rank ? `  #${node.rank}` : "";
  const score = node.fate === "finished" || node.fate === "stopped" ? `  ${formatScore(node.score)}` : "";
  return `${node.p}${rank}${score}${node.reason ? `  ${node.reason}` : ""}`;
}

/** A text alternative: the candidates that survive a step. */
function describeStep(tree, step) {
  if (!step) return "A search tree before the first step.";
  const candidates = tree.steps[step - 1];
  const survivors = candidates.filter((candidate) => candidate.fate !== "dropped").map((candidate) => `${candidate.text || "empty text"}, ${candidate.fate}`);
  return `After step ${step}: ${survivors.join("; ")}; ${candidates.length - survivors.length} dropped.`;
}

/** A table of all candidates of a step, with the reason why each was stopped or dropped. */
export function candidateTable(tree, step) {
  const candidates = tree.steps[step - 1] ?? [];
  const headers = ["Token", "p", "log p", "Score", "Result", "Text so far"];
  return make("table", {},
    make("thead", {}, make("tr", {}, headers.map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, candidates.map((candidate) => make("tr", { class: candidate.fate },
      make("td", { dir: "auto" }, candidate.piece === "</s>" ? "end" : candidate.piece),
      make("td", {}, candidate.p),
      make("td", {}, formatScore(candidate.total)),
      make("td", {}, formatScore(candidate.score)),
      make("td", {}, candidate.fate === "stopped" ? `stopped: ${candidate.reason}` : candidate.reason ?? candidate.fate),
      make("td", { dir: "auto" }, candidate.text)))));
}
