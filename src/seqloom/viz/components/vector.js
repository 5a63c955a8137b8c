// Draws vectors: each number is a square, blue if positive and grey if negative.

import { make, makeSvg } from "./dom.js";
import { isDark, scaleColour } from "./colours.js";

/** Vectors up to this length are written as numbers instead of drawn. */
export const MAX_WRITTEN = 6;
const MAX_COLUMNS = 96;

/** Rows of larger tables are left out, and a note says so. */
const MAX_ROWS = 100;

// These functions use loops, because Math.max(...values) fails if there are very many values.
export const largestMagnitude = (values) => values.flat(2).reduce((largest, value) => Math.max(largest, Math.abs(value ?? 0)), 1e-12);
export const smallest = (values) => values.reduce((least, value) => Math.min(least, value), Infinity);
export const largest = (values) => values.reduce((most, value) => Math.max(most, value), -Infinity);

/** Formats a number in about four characters; null is minus infinity. */
export function formatNumber(value, decimals = 3) {
  if (value === null || value === undefined) return "−∞";
  const size = Math.abs(value);
  if (value !== 0 && size < 1e-3 && decimals > 2) return value.toExponential(0).replaceAll("-", "−");
  const text = Number.isInteger(value) ? String(value) : value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : decimals);
  return text.replace("-", "−");
}

export const formatVector = (values) => `(${values.map((value) => formatNumber(value, 2)).join(", ")})`;

const GREY = { light: ["#f7fbff", "#39434d"], dark: ["#141c25", "#c3ccd4"] };

function numberColour(value, magnitude, dark) {
  const fraction = Math.min(1, Math.abs(value ?? 0) / magnitude);
  if (value >= 0) return scaleColour(fraction * 0.9, dark);
  const [from, to] = dark ? GREY.dark : GREY.light;
  const channels = [1, 3, 5].map((at) => {
    const low = parseInt(from.slice(at, at + 2), 16), high = parseInt(to.slice(at, at + 2), 16);
    return Math.round(low + (high - low) * fraction * 0.8).toString(16).padStart(2, "0");
  });
  return `#${channels.join("")}`;
}

/** A canvas with one pixel for each number, row by row. */
function drawPixels(values, magnitude, columns) {
  const canvas = document.createElement("canvas"), dark = isDark();
  canvas.width = Math.min(columns, values.length);
  canvas.height = Math.ceil(values.length / canvas.width);
  const context = canvas.getContext("2d");
  values.forEach((value, index) => {
    context.fillStyle = numberColour(value, magnitude, dark);
    context.fillRect(index % canvas.width, Math.floor(index / canvas.width), 1, 1);
  });
  return canvas;
}

/** A vector as an HTML element. */
export function vectorStrip(values, magnitude = largestMagnitude(values)) {
  const canvas = drawPixels(values, magnitude, MAX_COLUMNS);
  canvas.className = "vector-strip";
  canvas.style.width = `${Math.min(100, (canvas.width / MAX_COLUMNS) * 100)}%`;
  canvas.style.height = `${canvas.height * 7}px`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${values.length} numbers between ${formatNumber(smallest(values))} and ${formatNumber(largest(values))}`);
  return canvas;
}

/** About the width in pixels of a character of the numbers in drawings. */
const CHARACTER_WIDTH = 6.4;

/** A vector as an SVG element of this size; short vectors are written as numbers. */
export function vectorBox(values, { x, y, width, height, magnitude }) {
  if (values.length <= MAX_WRITTEN) {
    const text = formatVector(values), isTooLong = text.length * CHARACTER_WIDTH > width - 8;
    return makeSvg("g", { class: "written" },
      makeSvg("rect", { x, y, width, height, rx: 6 }),
      makeSvg("text", {
        x: x + width / 2, y: y + height / 2 + 4.5, "text-anchor": "middle",
        ...(isTooLong && { textLength: width - 8, lengthAdjust: "spacingAndGlyphs" }),
      }, text));
  }
  const columns = Math.ceil(Math.sqrt((values.length * width) / height));
  return makeSvg("g", {},
    makeSvg("image", { href: drawPixels(values, magnitude, columns).toDataURL(), x, y, width, height, preserveAspectRatio: "none", "image-rendering": "pixelated" }),
    makeSvg("rect", { class: "frame", x, y, width, height, rx: 2 }));
}

/** A table with a vector for each token. */
export function vectorTable(labels, values) {
  const written = values[0].length <= MAX_WRITTEN, magnitude = largestMagnitude(values), hidden = values.length - MAX_ROWS;
  const table = make("table", { class: written ? "vectors written" : "vectors" }, make("tbody", {}, values.slice(0, MAX_ROWS).map((row, index) => make("tr", {},
    make("th", { scope: "row" }, labels[index] ?? ""),
    written ? row.map((value) => make("td", { class: "number" }, formatNumber(value))) : make("td", {}, vectorStrip(row, magnitude))))));
  return hidden > 0 ? make("div", {}, table, make("p", { class: "note" }, `and ${hidden} more rows, which are not shown`)) : table;
}

/** A table with a number for each token. */
export function scalarTable(labels, values) {
  return make("table", { class: "scalars" },
    make("thead", {}, make("tr", {}, labels.map((label) => make("th", { scope: "col" }, label)))),
    make("tbody", {}, make("tr", {}, values.map((value) => make("td", {}, formatNumber(value))))));
}
