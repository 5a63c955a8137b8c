// Soft lookup: a query in a table of keys and values, looked up exactly, by the nearest key, or softly.

import { make, makeSvg } from "../components/dom.js";
import { segmentedControl, sliderField } from "../components/controls.js";
import { copyLinkButton } from "../shared/fields.js";
import { lookUp } from "../shared/lookup.js";
import { formatNumber, formatVector } from "../components/vector.js";

/** The default table of `seqloom lookup`. */
const KEYS = [[1, 1], [3, 2], [2, 4], [4, 4]], VALUES = [10, 20, 30, 40];
const NAMES = ["k₁", "k₂", "k₃", "k₄"];
const DEFAULTS = { method: "soft", match: "rbf", x: 2, y: 2.5, gamma: 1, temperature: 1 };
const METHODS = [["exact", "Exact"], ["nearest", "Nearest"], ["soft", "Soft"]];
const SCORES = [["rbf", "−γ‖q − k‖²"], ["dot", "q · k"]];
const REMARKS = {
  exact: "An ordinary hash table: only a key that equals the query has a value. A small change of the query changes nothing, so there is no gradient.",
  nearest: "The nearest key always has a value. A small change of the query mostly selects the same key, so the gradient is still zero.",
  soft: "All values are averaged, and keys with higher scores get larger weights. The result changes smoothly with the query and the keys, so both get a gradient.",
};
/** γ and temperature are set by their exponents: a slider at 0 means 1, one step changes the value by 2^(1/4). */
const toExponent = (value) => Math.round(4 * Math.log2(value)) / 4;
const RANGE = 5, SIZE = 420;
const pixel = ([x, y]) => [(x / RANGE) * SIZE, SIZE - (y / RANGE) * SIZE];

export function renderSoftLookup(body, context) {
  const { settings } = context;
  const plot = makeSvg("svg", { class: "lookup-plot", viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img" });
  const remark = make("p", { class: "remark" });
  const numbers = make("section", { class: "card scroll", tabindex: "0", "aria-label": "Values of the lookup" });
  const result = make("p", { class: "lookup-result", role: "status" });
  const softControls = make("div", { class: "toolbar" });
  const number = (name) => (Number.isFinite(Number(settings[name] ?? NaN)) ? Number(settings[name]) : DEFAULTS[name]);
  const positive = (name) => (number(name) > 0 ? number(name) : DEFAULTS[name]);
  const oneOf = (name, options) => (options.some(([each]) => each === settings[name]) ? settings[name] : DEFAULTS[name]);

  function show() {
    const method = oneOf("method", METHODS);
    const table = { keys: KEYS, values: VALUES, query: [number("x"), number("y")], score: oneOf("match", SCORES), gamma: positive("gamma"), temperature: positive("temperature") };
    const found = lookUp(table, method);
    remark.textContent = REMARKS[method];
    softControls.hidden = method !== "soft";
    gamma.hidden = table.score === "dot";
    result.replaceChildren("Result ", make("b", { "data-result": found.result }, formatNumber(found.result)),
      " · gradient with respect to the query ", make("span", {}, formatVector(found.queryGradient)));
    drawPlot(plot, table, found);
    numbers.replaceChildren(valueTable(found));
  }

  function change(changes) {
    context.update(changes);
    show();
  }

  const axis = (label, name) => sliderField(label, { min: 0, max: RANGE, step: 0.05, value: number(name), format: (value) => value.toFixed(2) }, (value) => change({ [name]: value }));
  const powerOfTwo = (label, name) => sliderField(label, { min: -5, max: 5, step: 0.25, value: toExponent(positive(name)), format: (value) => formatNumber(2 ** value) }, (value) => change({ [name]: 2 ** value }));
  const gamma = powerOfTwo("γ", "gamma");
  const sliders = make("div", { class: "toolbar" });
  const drawSliders = () => sliders.replaceChildren(axis("Query, horizontal", "x"), axis("Query, vertical", "y"));
  const moveQuery = (event) => {
    const box = plot.getBoundingClientRect();
    const round = (value) => Math.round(Math.min(Math.max(value, 0), RANGE) * 20) / 20;
    change({ x: round(((event.clientX - box.left) / box.width) * RANGE), y: round((1 - (event.clientY - box.top) / box.height) * RANGE) });
    drawSliders();
  };
  plot.addEventListener("pointerdown", (event) => {
    plot.setPointerCapture(event.pointerId);
    moveQuery(event);
  });
  plot.addEventListener("pointermove", (event) => plot.hasPointerCapture(event.pointerId) && moveQuery(event));

  softControls.append(
    segmentedControl("Score", SCORES, oneOf("match", SCORES), (match) => change({ match })),
    gamma, powerOfTwo("Temperature", "temperature"));
  drawSliders();
  body.replaceChildren(
    make("div", { class: "toolbar spread" }, segmentedControl("Lookup", METHODS, oneOf("method", METHODS), (method) => change({ method })), copyLinkButton()),
    remark,
    make("div", { class: "lookup-layout" },
      make("div", { class: "card" }, plot, make("p", { class: "note" }, "Drag the query, or move it with the sliders.")),
      make("div", { class: "stacked" }, make("section", { class: "card stacked" }, sliders, softControls, result), numbers)));
  show();
}

/** Draws the keys, darker and larger with a larger weight, and the query. */
function drawPlot(svg, { query }, { weights, result }) {
  const lines = Array.from({ length: RANGE - 1 }, (_, index) => (SIZE / RANGE) * (index + 1)).map((at) => `M${at},0V${SIZE}M0,${at}H${SIZE}`);
  const [x, y] = pixel(query);
  svg.setAttribute("aria-label", `Query ${formatVector(query)}, result ${formatNumber(result)}. Weights: ${weights.map((weight, index) => `${NAMES[index]} ${formatNumber(weight)}`).join(", ")}`);
  svg.replaceChildren(
    makeSvg("rect", { class: "background", width: SIZE, height: SIZE, rx: 10 }),
    makeSvg("path", { class: "grid", d: lines.join("") }),
    ...KEYS.map((key, index) => {
      const [keyX, keyY] = pixel(key);
      return makeSvg("path", { class: "match", d: `M${x},${y}L${keyX},${keyY}`, "stroke-width": (12 * weights[index]).toFixed(2) });
    }),
    ...KEYS.flatMap((key, index) => drawKey(pixel(key), index, weights[index])),
    makeSvg("path", { class: "query", d: `M${x - 9},${y - 9}l18,18M${x - 9},${y + 9}l18,-18` }),
    makeSvg("text", { class: "query-name", x: x - 20, y: y + 5 }, "q"));
}

function drawKey([cx, cy], index, weight) {
  const r = 9 + 13 * Math.sqrt(weight);
  return [
    makeSvg("circle", { class: "key-circle", cx, cy, r }),
    makeSvg("circle", { class: "key-weight", cx, cy, r, opacity: weight.toFixed(3) }),
    makeSvg("text", { x: cx, y: cy - r - 8 }, `${NAMES[index]}: v = ${VALUES[index]}`),
  ];
}

function valueTable({ scores, weights, keyGradients }) {
  const header = ["key", "value", "score", "weight", "gradient at the key"];
  return make("table", {},
    make("thead", {}, make("tr", {}, header.map((name, column) => make("th", { scope: "col", class: column ? "number" : null }, name)))),
    make("tbody", {}, KEYS.map((key, index) => make("tr", {},
      make("th", { scope: "row" }, `${NAMES[index]} ${formatVector(key)}`),
      [formatNumber(VALUES[index]), formatNumber(scores[index]), formatNumber(weights[index]), formatVector(keyGradients[index])]
        .map((text) => make("td", { class: "number" }, text))))));
}
