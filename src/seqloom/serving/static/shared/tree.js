// The tree of a search: steps to the right, everything that lived in blue, what was dropped in grey.

import { draw, make, still } from "./dom.js";
import { signed } from "./words.js";

const COLUMN = 132, ROW = 46, LEFT = 46, HEAD = 30;
const pen = document.createElement("canvas").getContext("2d");

function measured(words, font) {
  pen.font = `${font}px Inter, system-ui, sans-serif`;
  return pen.measureText(words).width;
}

/** tree: as /api/search/tree lays it out. show(step) shows the first steps and marks the last. */
export function tree(content) {
  const last = content.spots.length;
  const across = (step) => LEFT + step * COLUMN;
  const down = (row) => HEAD + 24 + (row - content.top) * ROW;
  const notes = Math.max(0, ...content.left_out.map((several) => several.length));
  const width = across(last) + 92, height = down(content.bottom) + 40 + 15 * notes;
  const svg = draw("svg", { class: "tree", width, height, viewBox: `0 0 ${width} ${height}`, role: "img" });
  const edges = draw("g"), spots = draw("g");
  svg.append(edges, spots);

  function label(parent, x, y, words) {
    const wide = Math.max(measured(words, 13) + 16, 24);
    parent.append(
      draw("rect", { x: x - wide / 2, y: y - 12, width: wide, height: 24, rx: 7 }),
      draw("text", { class: "token", x, y: y + 4.5 }, words));
  }
  function note(parent, x, y, words) {
    const wide = measured(words, 10.5) + 6;
    parent.append(
      draw("rect", { class: "ground", x: x - wide / 2, y: y - 9, width: wide, height: 12 }),
      draw("text", { class: "small", x, y }, words));
  }
  function edge(parent, step, one) {
    const x = across(step), before = across(step - 1), middle = (x + before) / 2;
    const wide = one.fate === "dropped" ? 1 : 1 + 4 * Math.exp(one.log ?? -9);
    parent.append(draw("path", {
      d: `M${before},${down(one.from)}C${middle},${down(one.from)} ${middle},${down(one.row)} ${x},${down(one.row)}`,
      "stroke-width": wide.toFixed(2),
    }));
  }

  label(spots, across(0), down(0), "start");
  const groups = content.spots.map((several, index) => {
    const step = index + 1, lines = draw("g", { class: "step" }), group = draw("g", { class: "step" });
    group.append(draw("text", { class: "head", x: across(step), y: 18 }, step));
    for (const one of [...several].sort((first, second) => first.wins - second.wins)) {
      const kind = `${one.fate}${one.wins ? " wins" : ""}`;
      const line = draw("g", { class: kind }), spot = draw("g", { class: kind });
      edge(line, step, one);
      note(spot, across(step), down(one.row) + 23, described(one));
      label(spot, across(step), down(one.row), one.label === "</s>" ? "end" : one.label);
      lines.append(line);
      group.append(spot);
    }
    content.left_out[index].forEach((words, line) => note(group, across(step), down(content.bottom) + 44 + 15 * line, words));
    edges.append(lines);
    spots.append(group);
    return [lines, group];
  });

  return {
    svg,
    last,
    show(step, scroller) {
      groups.forEach((pair, index) => pair.forEach((group) => {
        group.classList.toggle("later", index >= step);
        group.classList.toggle("now", index === step - 1);
      }));
      svg.setAttribute("aria-label", spoken(content, step));
      scroller?.scrollTo({ left: across(step) - scroller.clientWidth * 0.7, behavior: still() ? "auto" : "smooth" });
    },
  };
}

function described(one) {
  const rank = one.rank ? `  #${one.rank}` : "";
  const score = one.fate === "finished" || one.fate === "stopped" ? `  ${signed(one.score)}` : "";
  return `${one.p}${rank}${score}${one.reason ? `  ${one.reason}` : ""}`;
}

function spoken(content, step) {
  if (!step) return "A tree with nothing but its start.";
  const several = content.steps[step - 1];
  const kept = several.filter((one) => one.fate !== "dropped").map((one) => `${one.text || "nothing"}, ${one.fate}`);
  return `After step ${step}: ${kept.join("; ")}; ${several.length - kept.length} dropped.`;
}

/** All candidates of a step, with what became of them and why. */
export function candidates(content, step) {
  const several = content.steps[step - 1] ?? [];
  const head = ["Token", "p", "log p", "Score", "Fate", "So far"];
  return make("table", {},
    make("thead", {}, make("tr", {}, head.map((words) => make("th", { scope: "col" }, words)))),
    make("tbody", {}, several.map((one) => make("tr", { class: one.fate },
      make("td", { dir: "auto" }, one.piece === "</s>" ? "end" : one.piece),
      make("td", {}, one.p),
      make("td", {}, signed(one.total)),
      make("td", {}, signed(one.score)),
      make("td", {}, one.fate === "stopped" ? `stopped: ${one.reason}` : one.reason ?? one.fate),
      make("td", { dir: "auto" }, one.text)))));
}
