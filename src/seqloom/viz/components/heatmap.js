// Draws an attention matrix: a row for each output token, a column for each source token.

import { makeSvg } from "./dom.js";
import { largest } from "./vector.js";
import { cssColour, isDark, scaleColour, textColourOn } from "./colours.js";

const FONT = "Inter, system-ui, sans-serif";
/** Larger matrices are drawn as one image, with a pixel for each cell. */
const MAX_RECTANGLES = 8000;
/** Cells of at least this size contain their percentage. */
const MIN_NUMBERED_CELL = 30;
export const MAX_LABEL_LENGTH = 22;

const shorten = (label) => (label.length > MAX_LABEL_LENGTH ? `${label.slice(0, MAX_LABEL_LENGTH - 1)}…` : label);
const measuringContext = document.createElement("canvas").getContext("2d");

function widestLabel(labels, fontSize) {
  measuringContext.font = `${fontSize}px ${FONT}`;
  return Math.max(...labels.map((label) => measuringContext.measureText(shorten(label)).width));
}

/**
 * Returns { svg, left, top, cell }. The SVG uses attributes instead of CSS classes, so that it can be saved.
 * outputs, sources: labels; weights: rows that sum to 1; cell: size in pixels
 * The last colour of the scale stands for the largest weight, so that small weights can be told apart.
 */
export function drawHeatmap({ outputs, sources, weights }, cell) {
  const fontSize = Math.max(8, Math.min(14, cell * 0.52));
  const left = widestLabel(outputs, fontSize) + 14, top = widestLabel(sources, fontSize) + 14;
  const gap = cell > 12 ? 2 : cell > 6 ? 1 : 0;
  const width = Math.ceil(left + cell * sources.length + 2), height = Math.ceil(top + cell * outputs.length + 2);
  const dark = isDark(), most = largestWeight(weights);
  const svg = makeSvg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT, "font-size": fontSize, fill: cssColour("--ink") });
  sources.forEach((label, s) => {
    const x = left + cell * (s + 0.5) + fontSize * 0.35, y = top - 8;
    svg.append(makeSvg("text", { x, y, transform: `rotate(-90 ${x} ${y})`, "data-column": s }, shorten(label)));
  });
  outputs.forEach((label, t) =>
    svg.append(makeSvg("text", { x: left - 8, y: top + cell * (t + 0.5) + fontSize * 0.35, "text-anchor": "end", "data-row": t }, shorten(label))));
  svg.append(weights.length * sources.length > MAX_RECTANGLES
    ? drawImage(weights, left, top, cell, dark)
    : makeSvg("g", {}, weights.flatMap((row, t) => row.flatMap((weight, s) => drawCell(weight, weight / most, left + cell * s, top + cell * t, cell, gap, dark)))));
  return { svg, left, top, cell };
}

/** The largest weight of a matrix. */
export const largestWeight = (weights) => largest(weights.map(largest)) || 1;

function drawCell(weight, fraction, x, y, cell, gap, dark) {
  const side = cell - gap;
  const box = makeSvg("rect", { x: x + gap / 2, y: y + gap / 2, width: side, height: side, rx: Math.min(4, side / 6), fill: scaleColour(fraction, dark) });
  const percent = Math.round(100 * weight);
  if (cell < MIN_NUMBERED_CELL || percent === 0) return [box];
  return [box, makeSvg("text", {
    x: x + cell / 2, y: y + cell / 2 + 4, "text-anchor": "middle", "font-size": Math.min(12, cell * 0.32), fill: textColourOn(fraction, dark),
  }, percent)];
}

function drawImage(weights, x, y, cell, dark) {
  const canvas = thumbnail(weights, dark);
  return makeSvg("image", {
    href: canvas.toDataURL(), x, y, width: cell * canvas.width, height: cell * canvas.height,
    preserveAspectRatio: "none", "image-rendering": "pixelated",
  });
}

/** A canvas with one pixel for each cell. */
export function thumbnail(weights, dark = isDark()) {
  const canvas = document.createElement("canvas");
  canvas.width = weights[0].length;
  canvas.height = weights.length;
  const context = canvas.getContext("2d"), most = largestWeight(weights);
  weights.forEach((row, t) => row.forEach((weight, s) => {
    context.fillStyle = scaleColour(weight / most, dark);
    context.fillRect(s, t, 1, 1);
  }));
  return canvas;
}

/** The mean of several matrices. */
export function mean(matrices) {
  return matrices[0].map((row, t) => row.map((_, s) => matrices.reduce((sum, matrix) => sum + matrix[t][s], 0) / matrices.length));
}
