// Creates elements without parsing markup: text from users and models only ever becomes text nodes.

const SVG = "http://www.w3.org/2000/svg";

function setAttribute(element, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (name === "on") {
    for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
  } else if (name === "vars") {
    for (const [key, number] of Object.entries(value)) element.style.setProperty(`--${key}`, number);
  } else if (name === "value") element.value = value;
  else element.setAttribute(name, value === true ? "" : value);
}

function fill(element, attributes, children) {
  // The value of a <select> is set last, because its options must exist before.
  const { value, ...others } = attributes;
  for (const [name, each] of Object.entries(others)) setAttribute(element, name, each);
  const present = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  element.append(...present);
  setAttribute(element, "value", value);
  return element;
}

/** Creates an HTML element: make("p", { class: "lead", on: { click } }, "text", child) */
export function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Creates an SVG element, with the same arguments as `make`. */
export function makeSvg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

let timer = 0;

/** Announces a text to screen readers, through the live region of the page. */
export function announce(text) {
  const live = document.getElementById("live");
  clearTimeout(timer);
  live.textContent = "";
  timer = setTimeout(() => (live.textContent = text), 60);
}

let count = 0;

/** Returns an id that no other element of the page has. */
export function uniqueId(prefix) {
  count += 1;
  return `${prefix}-${count}`;
}

export const prefersReducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
