// Form controls. Each has a label and works with the keyboard.

import { make, uniqueId } from "./dom.js";
import { icon } from "./icons.js";

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
