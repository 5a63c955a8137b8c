// Lists every value of a decoder step in the order of computation, each with its formula and shape.

import { make } from "../components/dom.js";
import { displayPiece } from "../components/words.js";
import { formatNumber, formatVector, largest, MAX_WRITTEN, scalarTable, smallest, vectorStrip, vectorTable } from "../components/vector.js";

/** Longer vectors are summarised instead of drawn. */
const MAX_DRAWN = 1200;
const MAX_LISTED = 400;

export function stepValues(explanation) {
  const sections = [...new Set(explanation.parts.map((part) => part.chapter))];
  return make("ol", { class: "step-values" }, sections.map((section) => make("li", {},
    make("details", { open: true },
      make("summary", {}, make("h3", {}, capitalise(section))),
      explanation.parts.filter((part) => part.chapter === section).map(stepValue)))));
}

const capitalise = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function stepValue(part) {
  return make("div", { class: "step-value" },
    make("div", { class: "step-value-header" },
      make("b", {}, part.name), make("span", { class: "formula" }, part.formula),
      make("span", { class: "shape" }, part.shape.length ? part.shape.join(" × ") : "scalar")),
    renderValue(part),
    part.note && make("p", { class: "note" }, part.note));
}

function renderValue(part) {
  const { values, shape } = part, labels = part.labels.map((label) => displayPiece(label));
  if (!shape.length) return make("p", { class: "scalar" }, formatNumber(values));
  if (labels.length && shape.length === 1) return scrollable(part.name, scalarTable(labels, values));
  if (labels.length && shape[1] <= MAX_WRITTEN) return vectorTable(labels, values);
  if (labels.length) return make("div", {}, vectorTable(labels, values), numberList(part));
  if (values.length <= MAX_WRITTEN) return make("p", { class: "scalar" }, formatVector(values));
  if (values.length <= MAX_DRAWN) return make("div", {}, vectorStrip(values), numberList(part));
  const finite = values.filter((value) => value !== null);
  return make("div", {}, make("p", { class: "note" }, `${values.length} numbers between ${formatNumber(smallest(finite))} and ${formatNumber(largest(finite))}`), numberList(part));
}

function scrollable(name, table) {
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${capitalise(name)} of each token` }, table);
}

/** The numbers of a value, listed when it is opened. */
function numberList({ values, name }) {
  const flat = values.flat(), hidden = flat.length - MAX_LISTED;
  const list = make("p", { class: "digits", tabindex: "0", role: "region", "aria-label": `Numbers of ${name}` });
  const details = make("details", {}, make("summary", {}, `Numbers of ${name}`), list);
  details.addEventListener("toggle", () => {
    list.textContent ||= flat.slice(0, MAX_LISTED).map((value) => formatNumber(value)).join("  ") + (hidden > 0 ? `  … and ${hidden} more` : "");
  });
  return details;
}
