// An interactive attention matrix: zoom, cell values, download, table of numbers.

import { make, makeSvg } from "./dom.js";
import { button, sliderField } from "./controls.js";
import { cssColour, onThemeChange } from "./colours.js";
import { drawHeatmap, largestWeight, MAX_LABEL_LENGTH } from "./heatmap.js";
import { fileName, savePng, saveSvg } from "./download.js";
import { formatPercent } from "./words.js";

const MIN_CELL = 4, MAX_CELL = 96;

/**
 * attention: { outputs, sources, weights }
 * options: title (for file names), cell (size in pixels), onZoom(cell), tools (zoom, download, table), availableWidth
 */
export function attentionMap(attention, { title, cell, onZoom, signal, tools = true, availableWidth = innerWidth - 380 }) {
  const scroller = make("div", { class: "scroll map-scroll", tabindex: "0", role: "group", "aria-label": "Attention matrix; arrow keys move from cell to cell" });
  const cellValue = make("p", { class: "cursor-values", "aria-live": "polite" }, "\u00a0");
  let size = cell ?? fittingCell(), heatmap, cursor, current = null;

  function fittingCell() {
    const labelWidth = 24 + 8 * Math.min(MAX_LABEL_LENGTH, Math.max(...attention.outputs.map((label) => label.length)));
    return Math.max(MIN_CELL * 3, Math.min(72, Math.floor((availableWidth - labelWidth) / attention.sources.length), Math.floor(620 / attention.outputs.length)));
  }

  function redraw() {
    heatmap = drawHeatmap(attention, size);
    heatmap.svg.setAttribute("role", "img");
    heatmap.svg.setAttribute("aria-label", describe(attention));
    cursor = makeSvg("g", { "pointer-events": "none" });
    heatmap.svg.append(cursor);
    heatmap.svg.addEventListener("pointermove", moveToPointer);
    heatmap.svg.addEventListener("pointerleave", () => moveTo(null));
    scroller.replaceChildren(heatmap.svg);
    if (current) moveTo(current);
  }

  function moveToPointer(event) {
    const box = heatmap.svg.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - heatmap.left) / size);
    const row = Math.floor((event.clientY - box.top - heatmap.top) / size);
    moveTo(attention.weights[row]?.[column] === undefined ? null : [row, column]);
  }

  /** Frames a row and a column, and shows the value of the cell where they meet. */
  function moveTo(position) {
    current = position;
    cursor.replaceChildren();
    if (!position) {
      cellValue.textContent = "\u00a0";
      return;
    }
    const [row, column] = position, accent = cssColour("--accent");
    const frame = (attributes) => makeSvg("rect", { fill: "none", stroke: accent, "stroke-width": 1.5, rx: 5, ...attributes });
    cursor.append(
      frame({ x: heatmap.left, y: heatmap.top + size * row, width: size * attention.sources.length, height: size, opacity: 0.45 }),
      frame({ x: heatmap.left + size * column, y: heatmap.top, width: size, height: size * attention.outputs.length, opacity: 0.45 }),
      frame({ x: heatmap.left + size * column, y: heatmap.top + size * row, width: size, height: size }));
    cellValue.textContent = `“${attention.outputs[row]}” attends to “${attention.sources[column]}” with weight ${formatPercent(attention.weights[row][column])}`;
  }

  scroller.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const [row, column] = current ?? [0, 0];
    const next = current ? [row + step[0], column + step[1]] : [0, 0];
    if (attention.weights[next[0]]?.[next[1]] === undefined) return;
    moveTo(next);
    scroller.scrollTo(heatmap.left + size * next[1] - scroller.clientWidth / 2, heatmap.top + size * next[0] - scroller.clientHeight / 2);
  });
  scroller.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoomTo(size * (event.deltaY < 0 ? 1.15 : 0.87));
  }, { passive: false });

  const slider = sliderField("Zoom", { min: MIN_CELL, max: MAX_CELL, value: size, format: (pixels) => `${pixels} px` }, (pixels) => zoomTo(pixels, false));
  function zoomTo(pixels, updateSlider = true) {
    size = Math.round(Math.max(MIN_CELL, Math.min(MAX_CELL, pixels)));
    if (updateSlider) slider.querySelector("input").value = size;
    onZoom?.(size);
    redraw();
  }
  redraw();
  onThemeChange(redraw, signal);
  const name = `attention-${fileName(title)}`;
  return make("div", { class: "attention-map" },
    tools && make("div", { class: "toolbar" }, slider,
      make("div", { class: "downloads" },
        button("SVG", () => saveSvg(withoutCursor(heatmap.svg), name), { iconName: "save", title: "Download as SVG" }),
        button("PNG", () => savePng(withoutCursor(heatmap.svg), name, cssColour("--card")), { iconName: "save", title: "Download as PNG" }))),
    scroller, colourScale(attention.weights), cellValue, tools && weightTable(attention));
}

/** The colours from weight 0 to the largest weight of the matrix. */
function colourScale(weights) {
  return make("p", { class: "colour-scale" }, "0 %", make("i", { "aria-hidden": "true" }), formatPercent(largestWeight(weights)));
}

function withoutCursor(svg) {
  const copy = svg.cloneNode(true);
  copy.lastElementChild.remove();
  return copy;
}

/** A text alternative: the source token with the largest weight for each output token. */
function describe({ outputs, sources, weights }) {
  const largest = weights.map((row, t) => `${outputs[t]}: ${sources[row.indexOf(Math.max(...row))]}`);
  return `Source word with the largest weight for each output word. ${largest.join("; ")}`;
}

/** The weights as a table, built when it is opened. */
function weightTable({ outputs, sources, weights }) {
  const container = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Weights" });
  const details = make("details", {}, make("summary", {}, "Show as table"), container);
  details.addEventListener("toggle", () => {
    if (container.childElementCount) return;
    container.append(make("table", {},
      make("thead", {}, make("tr", {}, make("td"), sources.map((source) => make("th", { scope: "col", class: "number" }, source)))),
      make("tbody", {}, weights.map((row, t) => make("tr", {}, make("th", { scope: "row" }, outputs[t]),
        row.map((weight) => make("td", { class: "number" }, weight.toFixed(2))))))));
  });
  return details;
}
