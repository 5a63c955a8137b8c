// The tree of a beam search: steps from left to right, surviving candidates in blue, dropped ones in grey.

import { make, makeSvg, prefersReducedMotion } from "./dom.js";
import { displayPiece, END, enableRovingFocus, formatScore } from "./words.js";

const COLUMN = 132, ROW = 60, LEFT = 46, HEADER = 30;
const measuringContext = document.createElement("canvas").getContext("2d");

function textWidth(text, fontSize) {
  measuringContext.font = `${fontSize}px Inter, system-ui, sans-serif`;
  return measuringContext.measureText(text).width;
}

/**
 * tree: the layout from /api/search/tree; onSelect(tokens): called with the tokens up to the node that the user selects;
 * without it, nodes cannot be selected
 * Returns { svg, width, height, last, showStep, zoomTo }; showStep(n) shows the first n steps, zoomTo(1) the original size.
 */
export function searchTree(tree, onSelect) {
  const last = tree.spots.length;
  const columnX = (step) => LEFT + step * COLUMN;
  const rowY = (row) => HEADER + 24 + (row - tree.top) * ROW;
  const noteLines = Math.max(0, ...tree.left_out.map((notes) => notes.length));
  const width = columnX(last) + 92, height = rowY(tree.bottom) + 52 + 15 * noteLines;
  const svg = makeSvg("svg", { class: "tree", width, height, viewBox: `0 0 ${width} ${height}`, role: "group" });
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

  /** The attributes that make a node a button. The search cannot continue after END. */
  function selectable(node) {
    if (!onSelect || node.label === END) return {};
    const select = () => onSelect(node.tokens);
    return {
      role: "button", tabindex: "-1", "aria-label": `${displayPiece(node.label)}, probability ${node.p}, ${node.reason ?? node.fate}. Decode from here.`,
      on: {
        click: select,
        keydown(event) {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          select();
        },
      },
    };
  }

  drawLabel(nodes, columnX(0), rowY(0), "start");
  const stepGroups = tree.spots.map((stepNodes, index) => {
    const step = index + 1, edgeGroup = makeSvg("g", { class: "step" }), nodeGroup = makeSvg("g", { class: "step" });
    nodeGroup.append(makeSvg("text", { class: "head", x: columnX(step), y: 18 }, step));
    // The best output is drawn last, over the other edges.
    for (const node of [...stepNodes].sort((first, second) => first.wins - second.wins)) {
      const className = `${node.fate}${node.wins ? " wins" : ""}`;
      const edge = makeSvg("g", { class: className }), group = makeSvg("g", { class: className, ...selectable(node) });
      drawEdge(edge, step, node);
      drawNote(group, columnX(step), rowY(node.row) + 23, `${node.p}${node.reason ? `  ${node.reason}` : ""}`);
      drawNote(group, columnX(step), rowY(node.row) + 35, `Σ ${formatScore(node.total)}  score ${formatScore(node.score)}`);
      drawLabel(group, columnX(step), rowY(node.row), node.label === END ? "end" : node.label);
      if (node.rank) group.append(makeSvg("text", { class: "rank", x: columnX(step) + 28, y: rowY(node.row) + 4.5 }, `#${node.rank}`));
      edgeGroup.append(edge);
      nodeGroup.append(group);
    }
    tree.left_out[index].forEach((note, line) => drawNote(nodeGroup, columnX(step), rowY(tree.bottom) + 56 + 15 * line, note));
    edges.append(edgeGroup);
    nodes.append(nodeGroup);
    return [edgeGroup, nodeGroup];
  });

  if (onSelect) enableRovingFocus(nodes, "[role='button']");
  let scale = 1;
  return {
    svg,
    width,
    height,
    last,
    zoomTo(factor) {
      scale = factor;
      svg.style.width = `${width * scale}px`;
      svg.style.height = `${height * scale}px`;
    },
    showStep(step, scroller) {
      svg.classList.toggle("decided", step === last);
      stepGroups.forEach((pair, index) => pair.forEach((group) => {
        group.classList.toggle("later", index >= step);
        group.classList.toggle("current", index === step - 1);
      }));
      svg.setAttribute("aria-label", describeStep(tree, step));
      scroller?.scrollTo({ left: scale * columnX(step) - scroller.clientWidth * 0.7, behavior: prefersReducedMotion() ? "auto" : "smooth" });
    },
  };
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
