// A matrix that is looked at: zoomed, scrolled, read cell by cell, taken away.

import { draw, make } from "./dom.js";
import { button, slider } from "./controls.js";
import { named, onColours } from "./colour.js";
import { matrix } from "./matrix.js";
import { fileName, savePng, saveSvg } from "./picture.js";
import { percent } from "./words.js";

const SMALLEST = 4, LARGEST = 64;

/** look: { outputs, sources, weights }; title: a name for files; zoomed(cell) is told */
export function looker(look, { title, cell, zoomed, signal, tools = true, room = innerWidth - 380 }) {
  const board = make("div", { class: "scroll board", tabindex: "0", role: "group", "aria-label": "Attention matrix; arrow keys move from cell to cell" });
  const reading = make("p", { class: "reading", "aria-live": "polite" }, "\u00a0");
  let size = cell ?? fitting(), drawn, frame, at = null;

  function fitting() {
    return Math.max(SMALLEST * 3, Math.min(54, Math.floor((room - 120) / look.sources.length), Math.floor(620 / look.outputs.length)));
  }

  function redraw() {
    drawn = matrix(look, size);
    drawn.svg.setAttribute("role", "img");
    drawn.svg.setAttribute("aria-label", describe(look));
    frame = draw("g", { "pointer-events": "none" });
    drawn.svg.append(frame);
    drawn.svg.addEventListener("pointermove", (event) => point(event));
    drawn.svg.addEventListener("pointerleave", () => mark(null));
    board.replaceChildren(drawn.svg);
    if (at) mark(at);
  }

  function point(event) {
    const box = drawn.svg.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - drawn.left) / size);
    const row = Math.floor((event.clientY - box.top - drawn.top) / size);
    mark(look.weights[row]?.[column] === undefined ? null : [row, column]);
  }

  /** A frame around a row and a column, and what is where they meet. */
  function mark(place) {
    at = place;
    frame.replaceChildren();
    if (!place) {
      reading.textContent = "\u00a0";
      return;
    }
    const [row, column] = place, accent = named("--accent");
    const line = (attributes) => draw("rect", { fill: "none", stroke: accent, "stroke-width": 1.5, rx: 5, ...attributes });
    frame.append(
      line({ x: drawn.left, y: drawn.top + size * row, width: size * look.sources.length, height: size, opacity: 0.45 }),
      line({ x: drawn.left + size * column, y: drawn.top, width: size, height: size * look.outputs.length, opacity: 0.45 }),
      line({ x: drawn.left + size * column, y: drawn.top + size * row, width: size, height: size }));
    reading.textContent = `“${look.outputs[row]}” looks at “${look.sources[column]}” with ${percent(look.weights[row][column])}`;
  }

  board.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const [row, column] = at ?? [0, 0];
    const next = at ? [row + step[0], column + step[1]] : [0, 0];
    if (look.weights[next[0]]?.[next[1]] === undefined) return;
    mark(next);
    board.scrollTo(drawn.left + size * next[1] - board.clientWidth / 2, drawn.top + size * next[0] - board.clientHeight / 2);
  });
  board.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(size * (event.deltaY < 0 ? 1.15 : 0.87));
  }, { passive: false });

  const scale = slider("Zoom", { min: SMALLEST, max: LARGEST, value: size, format: (one) => `${one} px` }, (one) => zoom(one, false));
  function zoom(wanted, told = true) {
    size = Math.round(Math.max(SMALLEST, Math.min(LARGEST, wanted)));
    if (told) scale.querySelector("input").value = size;
    zoomed?.(size);
    redraw();
  }
  redraw();
  onColours(redraw, signal);
  const name = `attention-${fileName(title)}`;
  return make("div", { class: "looker" },
    tools && make("div", { class: "bar" }, scale,
      make("div", { class: "saves" },
        button("SVG", () => saveSvg(clean(drawn.svg), name), { picture: "save", title: "Download as SVG" }),
        button("PNG", () => savePng(clean(drawn.svg), name, named("--card")), { picture: "save", title: "Download as PNG" }))),
    board, reading, tools && table(look));
}

function clean(svg) {
  const copy = svg.cloneNode(true);
  copy.lastElementChild.remove(); // the frame
  return copy;
}

function describe({ outputs, sources, weights }) {
  const most = weights.map((row, t) => `${outputs[t]}: ${sources[row.indexOf(Math.max(...row))]}`);
  return `Where each word looked most. ${most.join("; ")}`;
}

function table({ outputs, sources, weights }) {
  const place = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers" });
  const whole = make("details", {}, make("summary", {}, "As a table of numbers"), place);
  whole.addEventListener("toggle", () => {
    if (place.childElementCount) return;
    place.append(make("table", {},
      make("thead", {}, make("tr", {}, make("td"), sources.map((one) => make("th", { scope: "col", class: "number" }, one)))),
      make("tbody", {}, weights.map((row, t) => make("tr", {}, make("th", { scope: "row" }, outputs[t]),
        row.map((one) => make("td", { class: "number" }, one.toFixed(2))))))));
  });
  return whole;
}
