// Form controls of the views. Each has a label and works with the keyboard.

import { announce, make, uniqueId } from "./dom.js";
import { icon } from "./icons.js";
import { languageName, runSummary } from "./runs.js";

/** Milliseconds for which a button shows that it has been activated. */
const FEEDBACK_MILLISECONDS = 1600;

export function labelledField(label, control, note) {
  control.id ||= uniqueId("field");
  return make("div", { class: "field" }, make("label", { for: control.id }, label), control, note);
}

/** A drop-down list; options are [value, label]. */
export function selectField(label, options, value, onChange) {
  const list = make("select", { on: { change: () => onChange(list.value) }, value },
    options.map(([each, text]) => make("option", { value: each }, text)));
  return labelledField(label, list);
}

/** A few choices side by side; options are [value, label]. */
export function segmentedControl(label, options, value, onChange) {
  const name = uniqueId("segments");
  const inputs = options.map(([each, text]) => {
    const input = make("input", { type: "radio", name, value: each, on: { change: () => onChange(each) } });
    input.checked = String(each) === String(value);
    return make("label", {}, input, make("span", {}, text));
  });
  return make("fieldset", { class: "segments" }, make("legend", {}, label), make("div", {}, inputs));
}

export function sliderField(label, { min, max, step = 1, value, format = String }, onChange) {
  const output = make("output", {}, format(value));
  const input = make("input", { type: "range", min, max, step, value });
  input.addEventListener("input", () => {
    output.textContent = format(Number(input.value));
    onChange(Number(input.value));
  });
  const field = labelledField(label, input, output);
  field.classList.add("slider");
  output.setAttribute("for", input.id);
  return field;
}

/** A button with an icon, a text, or both. Without a text, `title` is its accessible name. */
export function button(text, onClick, { kind = "", iconName, title } = {}) {
  return make("button", { type: "button", class: kind, on: { click: onClick }, title, "aria-label": text ? null : title },
    iconName && icon(iconName, 18), text);
}

/** A list of runs; a single run is shown by its name. */
export function runSelect(context, runs, run, onChange, label = "Run") {
  const summary = make("p", { class: "facts" }, runSummary(run));
  if (runs.length === 1) return make("div", { class: "run" }, make("span", { class: "chip" }, run.name), summary);
  const list = selectField(label, runs.map((each) => [each.name, each.name]), run.name, (name) => {
    const next = context.catalogue.findRun(runs, name);
    summary.textContent = runSummary(next);
    onChange(next);
  });
  return make("div", { class: "run" }, list, summary);
}

/** A list of target languages; null if the run has only one. */
export function targetLanguageSelect(run, value, onChange) {
  if (run.targets.length < 2) return null;
  return selectField("Target language", run.targets.map((code) => [code, languageName(code)]), value, onChange);
}

/** A single line of text. */
export function textField(label, value, onChange, { placeholder = "", maxLength } = {}) {
  const input = make("input", {
    type: "text", class: "text-field", value, placeholder, maxlength: maxLength, dir: "auto",
    autocomplete: "off", spellcheck: "false", on: { input: () => onChange(input.value) },
  });
  return labelledField(label, input);
}

/** Copies the link to the current state. */
export function copyLinkButton() {
  const label = make("span", {}, "Copy link");
  function showFeedback(text) {
    label.textContent = text;
    announce(text);
    setTimeout(() => (label.textContent = "Copy link"), FEEDBACK_MILLISECONDS);
  }
  return button(label, () => {
    // Browsers provide the clipboard only to https pages and to localhost.
    const copied = navigator.clipboard?.writeText(location.href) ?? Promise.reject(new Error("no clipboard"));
    copied.then(() => showFeedback("Copied"), () => showFeedback("Copy it from the address bar"));
  }, { kind: "quiet", iconName: "link" });
}
