// Elements without markup: what people type is put into text, never parsed.

const SVG = "http://www.w3.org/2000/svg";

function set(element, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (name === "on") {
    for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
  } else if (name === "vars") {
    for (const [key, number] of Object.entries(value)) element.style.setProperty(`--${key}`, number);
  } else if (name === "value") element.value = value;
  else element.setAttribute(name, value === true ? "" : value);
}

function fill(element, attributes, children) {
  // The value of a list is one of its options, which must be there before.
  const { value, ...others } = attributes;
  for (const [name, each] of Object.entries(others)) set(element, name, each);
  const kept = children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false);
  element.append(...kept);
  set(element, "value", value);
  return element;
}

/** An element: make("p", { class: "lead", on: { click } }, "words", another) */
export function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for pictures. */
export function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

let timer = 0;

/** Tell people who listen rather than look. */
export function say(words) {
  const live = document.getElementById("live");
  clearTimeout(timer);
  live.textContent = "";
  timer = setTimeout(() => (live.textContent = words), 60);
}

let count = 0;

/** A name that nothing else on the page has. */
export function unique(stem) {
  count += 1;
  return `${stem}-${count}`;
}

export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
