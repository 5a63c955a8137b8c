// The matrix of an attention: a row for each word put out, a column for each word read.

import { draw } from "./dom.js";
import { blues, isDark, named, onBlues } from "./colour.js";

const FONT = "Inter, system-ui, sans-serif";
const MANY = 8000;
/** Cells that are large enough for a number. */
const ROOMY = 30;
const LONGEST = 22;

const cut = (words) => (words.length > LONGEST ? `${words.slice(0, LONGEST - 1)}…` : words);
const pen = document.createElement("canvas").getContext("2d");

function widest(labels, size) {
  pen.font = `${size}px ${FONT}`;
  return Math.max(...labels.map((one) => pen.measureText(cut(one)).width));
}

/**
 * Draws it in plain attributes, so that it can be taken away as it is.
 * outputs, sources: labels; weights: rows that add up to 1; cell: pixels
 */
export function matrix({ outputs, sources, weights }, cell) {
  const size = Math.max(8, Math.min(14, cell * 0.52));
  const left = widest(outputs, size) + 14, top = widest(sources, size) + 14;
  const gap = cell > 12 ? 2 : cell > 6 ? 1 : 0;
  const width = Math.ceil(left + cell * sources.length + 2), height = Math.ceil(top + cell * outputs.length + 2);
  const ink = named("--ink"), dark = isDark();
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT, "font-size": size, fill: ink });
  sources.forEach((words, s) => {
    const x = left + cell * (s + 0.5) + size * 0.35, y = top - 8;
    svg.append(draw("text", { x, y, transform: `rotate(-90 ${x} ${y})`, "data-column": s }, cut(words)));
  });
  outputs.forEach((words, t) =>
    svg.append(draw("text", { x: left - 8, y: top + cell * (t + 0.5) + size * 0.35, "text-anchor": "end", "data-row": t }, cut(words))));
  svg.append(weights.length * sources.length > MANY
    ? image(weights, left, top, cell, dark)
    : draw("g", {}, weights.flatMap((row, t) => row.flatMap((weight, s) => square(weight, left + cell * s, top + cell * t, cell, gap, dark)))));
  return { svg, left, top, cell };
}

function square(weight, x, y, cell, gap, dark) {
  const side = cell - gap;
  const box = draw("rect", { x: x + gap / 2, y: y + gap / 2, width: side, height: side, rx: Math.min(4, side / 6), fill: blues(weight, dark) });
  const share = Math.round(100 * weight);
  if (cell < ROOMY || share === 0) return [box];
  return [box, draw("text", {
    x: x + cell / 2, y: y + cell / 2 + 4, "text-anchor": "middle", "font-size": Math.min(12, cell * 0.32), fill: onBlues(weight, dark),
  }, share)];
}

/** Thousands of cells are one image: a pixel each, drawn large. */
function image(weights, x, y, cell, dark) {
  const canvas = thumbnail(weights, dark);
  return draw("image", {
    href: canvas.toDataURL(), x, y, width: cell * canvas.width, height: cell * canvas.height,
    preserveAspectRatio: "none", "image-rendering": "pixelated",
  });
}

/** A pixel for each cell. */
export function thumbnail(weights, dark = isDark()) {
  const canvas = document.createElement("canvas");
  canvas.width = weights[0].length;
  canvas.height = weights.length;
  const brush = canvas.getContext("2d");
  weights.forEach((row, t) => row.forEach((weight, s) => {
    brush.fillStyle = blues(weight, dark);
    brush.fillRect(s, t, 1, 1);
  }));
  return canvas;
}

/** The mean of several matrices. */
export function mean(several) {
  return several[0].map((row, t) => row.map((_, s) => several.reduce((sum, one) => sum + one[t][s], 0) / several.length));
}
