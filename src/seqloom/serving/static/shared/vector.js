// Vectors as small pictures: every number a square, blue above zero and grey below.

import { draw, make } from "./dom.js";
import { blues, isDark } from "./colour.js";

/** Numbers that can be read as they are. */
export const FEW = 6;

export const largest = (values) => Math.max(1e-12, ...values.flat(2).map((one) => Math.abs(one ?? 0)));

/** A number in about four characters. */
export function number(value, decimals = 3) {
  if (value === null || value === undefined) return "−∞";
  const size = Math.abs(value);
  if (value !== 0 && size < 1e-3 && decimals > 2) return value.toExponential(0).replaceAll("-", "−");
  const words = Number.isInteger(value) ? String(value) : value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : decimals);
  return words.replace("-", "−");
}

export const tuple = (values) => `(${values.map((one) => number(one, 2)).join(", ")})`;

const GREY = { light: ["#f7fbff", "#39434d"], dark: ["#141c25", "#c3ccd4"] };

function shade(value, most, dark) {
  const share = Math.min(1, Math.abs(value ?? 0) / most);
  if (value >= 0) return blues(share * 0.9, dark);
  const [from, to] = dark ? GREY.dark : GREY.light;
  const mixed = [1, 3, 5].map((at) => {
    const low = parseInt(from.slice(at, at + 2), 16), high = parseInt(to.slice(at, at + 2), 16);
    return Math.round(low + (high - low) * share * 0.8).toString(16).padStart(2, "0");
  });
  return `#${mixed.join("")}`;
}

/** All numbers of a vector, row by row. */
function pixels(values, most, across) {
  const canvas = document.createElement("canvas"), dark = isDark();
  canvas.width = Math.min(across, values.length);
  canvas.height = Math.ceil(values.length / canvas.width);
  const pen = canvas.getContext("2d");
  values.forEach((value, place) => {
    pen.fillStyle = shade(value, most, dark);
    pen.fillRect(place % canvas.width, Math.floor(place / canvas.width), 1, 1);
  });
  return canvas;
}

/** For a page: as wide as it has numbers, within limits. */
export function strip(values, most = largest(values)) {
  const across = values.length <= 96 ? values.length : 96;
  const canvas = pixels(values, most, across);
  canvas.className = "strip";
  canvas.style.width = `${Math.min(100, (canvas.width / 96) * 100)}%`;
  canvas.style.height = `${canvas.height * 7}px`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${values.length} numbers between ${number(Math.min(...values))} and ${number(Math.max(...values))}`);
  return canvas;
}

/** For a drawing: in a box; a few numbers are written out. */
export function boxed(values, { x, y, width, height, most }) {
  if (values.length <= FEW) {
    return draw("g", { class: "few" },
      draw("rect", { x, y, width, height, rx: 6 }),
      draw("text", { x: x + width / 2, y: y + height / 2 + 4.5, "text-anchor": "middle" }, tuple(values)));
  }
  const across = Math.ceil(Math.sqrt((values.length * width) / height));
  return draw("g", {},
    draw("image", { href: pixels(values, most, across).toDataURL(), x, y, width, height, preserveAspectRatio: "none", "image-rendering": "pixelated" }),
    draw("rect", { class: "frame", x, y, width, height, rx: 2 }));
}

/** A vector for each word, its words before it. */
export function rowsOf(labels, values) {
  const few = values[0].length <= FEW;
  return make("table", { class: few ? "vectors few" : "vectors" }, make("tbody", {}, values.map((row, place) => make("tr", {},
    make("th", { scope: "row" }, labels[place] ?? ""),
    few ? row.map((one) => make("td", { class: "number" }, number(one))) : make("td", {}, strip(row, largest(values)))))));
}

/** A number for each word, its words above it. */
export function lineOf(labels, values) {
  return make("table", { class: "line" },
    make("thead", {}, make("tr", {}, labels.map((one) => make("th", { scope: "col" }, one)))),
    make("tbody", {}, make("tr", {}, values.map((one) => make("td", {}, number(one))))));
}
