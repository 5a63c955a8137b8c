// The few controls that all views are made of. Each has a label, and works with keys alone.

import { make, say, unique } from "./dom.js";
import { icon } from "./icons.js";
import { facts } from "./runs.js";

/** Milliseconds for which a button says what it has done. */
const TOLD = 1600;

export function field(label, control, note) {
  control.id ||= unique("field");
  return make("div", { class: "field" }, make("label", { for: control.id }, label), control, note);
}

/** One of several, from a list: options are [value, words]. */
export function choice(label, options, value, chosen) {
  const list = make("select", { on: { change: () => chosen(list.value) }, value },
    options.map(([each, words]) => make("option", { value: each }, words)));
  return field(label, list);
}

/** One of a few, side by side: options are [value, words]. */
export function segments(label, options, value, chosen) {
  const name = unique("segments");
  const inputs = options.map(([each, words]) => {
    const input = make("input", { type: "radio", name, value: each, on: { change: () => chosen(each) } });
    input.checked = String(each) === String(value);
    return make("label", {}, input, make("span", {}, words));
  });
  return make("fieldset", { class: "segments" }, make("legend", {}, label), make("div", {}, inputs));
}

/** A number on a scale. */
export function slider(label, { min, max, step = 1, value, format = String }, changed) {
  const shown = make("output", {}, format(value));
  const input = make("input", { type: "range", min, max, step, value });
  input.addEventListener("input", () => {
    shown.textContent = format(Number(input.value));
    changed(Number(input.value));
  });
  const whole = field(label, input, shown);
  whole.classList.add("slider");
  shown.setAttribute("for", input.id);
  return whole;
}

export function button(words, act, { kind = "", picture, title } = {}) {
  return make("button", { type: "button", class: kind, on: { click: act }, title, "aria-label": words ? null : title },
    picture && icon(picture, 18), words);
}

export function tick(label, value, changed) {
  const input = make("input", { type: "checkbox", on: { change: () => changed(input.checked) } });
  input.checked = value;
  return make("label", { class: "tick" }, input, make("span", {}, label));
}

/** Which run is asked. A single one needs no list, only its name. */
export function runChoice(context, runs, run, chosen, label = "Run") {
  const about = make("p", { class: "facts" }, facts(run));
  if (runs.length === 1) return make("div", { class: "run" }, make("span", { class: "chip" }, run.name), about);
  const list = choice(label, runs.map((one) => [one.name, one.name]), run.name, (name) => {
    const next = context.catalogue.named(runs, name);
    about.textContent = facts(next);
    chosen(next);
  });
  return make("div", { class: "run" }, list, about);
}

/** Where a run has several languages to translate into. */
export function targetChoice(run, value, language, chosen) {
  if (run.targets.length < 2) return null;
  return choice("Into", run.targets.map((one) => [one, language(one)]), value, chosen);
}

/** A line of text that is asked about. */
export function sentence(label, value, changed, { placeholder = "", most } = {}) {
  const input = make("input", {
    type: "text", class: "sentence", value, placeholder, maxlength: most, dir: "auto",
    autocomplete: "off", spellcheck: "false", on: { input: () => changed(input.value) },
  });
  return field(label, input);
}

/** Copies the address of what is shown. */
export function linkButton() {
  const words = make("span", {}, "Copy link");
  function tell(told) {
    words.textContent = told;
    say(told);
    setTimeout(() => (words.textContent = "Copy link"), TOLD);
  }
  return button(words, () => {
    // Without encryption, browsers lend the clipboard to nobody but this machine.
    const copied = navigator.clipboard?.writeText(location.href) ?? Promise.reject(new Error("no clipboard"));
    copied.then(() => tell("Copied"), () => tell("It is in the address bar"));
  }, { kind: "quiet", picture: "link" });
}
