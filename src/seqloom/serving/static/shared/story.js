// Every value of a step, in the order in which they come about, each with its formula.

import { make } from "./dom.js";
import { readable } from "./words.js";
import { FEW, lineOf, number, rowsOf, strip, tuple } from "./vector.js";

/** More numbers than this are no picture any more. */
const DRAWN = 1200;
const LISTED = 400;

export function story(explanation) {
  const chapters = [...new Set(explanation.parts.map((one) => one.chapter))];
  return make("ol", { class: "story" }, chapters.map((chapter) => make("li", {},
    make("h3", {}, capital(chapter)),
    explanation.parts.filter((one) => one.chapter === chapter).map(told))));
}

const capital = (words) => words.charAt(0).toUpperCase() + words.slice(1);

function told(part) {
  return make("div", { class: "told" },
    make("div", { class: "told-head" },
      make("b", {}, part.name), make("span", { class: "formula" }, part.formula),
      make("span", { class: "shape" }, part.shape.length ? part.shape.join(" × ") : "a number")),
    shown(part),
    part.note && make("p", { class: "note" }, part.note));
}

function shown(part) {
  const { values, shape } = part, labels = part.labels.map((one) => readable(one));
  if (!shape.length) return make("p", { class: "figure" }, number(values));
  if (labels.length && shape.length === 1) return scrolled(part.name, lineOf(labels, values));
  if (labels.length && shape[1] <= FEW) return rowsOf(labels, values);
  if (labels.length) return make("div", {}, rowsOf(labels, values), digits(part));
  if (values.length <= FEW) return make("p", { class: "figure" }, tuple(values));
  if (values.length <= DRAWN) return make("div", {}, strip(values), digits(part));
  return make("div", {}, make("p", { class: "note" }, `${values.length} numbers, between ${number(lowest(values))} and ${number(Math.max(...values))}`), digits(part));
}

const lowest = (values) => Math.min(...values.filter((one) => one !== null));

function scrolled(name, table) {
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${capital(name)} of each word` }, table);
}

/** The numbers behind a picture, for whoever wants them. */
function digits({ values, name }) {
  const flat = values.flat(), more = flat.length - LISTED;
  const list = make("p", { class: "digits", tabindex: "0", role: "region", "aria-label": `Numbers of ${name}` });
  const whole = make("details", {}, make("summary", {}, `Numbers of ${name}`), list);
  whole.addEventListener("toggle", () => {
    list.textContent ||= flat.slice(0, LISTED).map((one) => number(one)).join("  ") + (more > 0 ? `  … and ${more} more` : "");
  });
  return whole;
}
