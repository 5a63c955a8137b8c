// Controls for options of predictions. The server describes them (GET /api/runs); every other interface has the same options.

import { make } from "../components/dom.js";
import { labelledField, sliderField } from "../components/controls.js";

/**
 * The controls of a view for options.
 * getRun(): the current run; onChange(): called after a change
 * Returns { elements, fields() }: fields() are the fields of a request. Values come from the link, the run or the default.
 */
export function optionControls(view, { settings, catalogue, update }, { getRun, onChange }) {
  const controls = catalogue.controls.filter((each) => each.view === view);
  const largest = ({ at_most: most, limit }) => Math.min(most ?? Infinity, catalogue.limits[limit] ?? Infinity);
  const number = (each) => Math.min(Number(settings[each.field] ?? getRun()[each.field] ?? each.default), largest(each));
  const change = (field, value) => {
    update({ [field]: value });
    onChange();
  };
  const elements = controls.map((each) => {
    if (each.kind === "slider") {
      const { label, at_least: min, step } = each;
      return sliderField(label, { min, max: largest(each), step, value: number(each), format: (value) => formatValue(each, value) }, (value) => change(each.field, value));
    }
    const box = make("input", { type: "checkbox", on: { change: () => change(each.field, box.checked ? "yes" : null) } });
    box.checked = settings[each.field] === "yes";
    return labelledField(each.label, box);
  });
  elements.forEach((element, index) => (element.title = controls[index].help));
  const fields = () => Object.fromEntries(controls
    .filter(({ kind, field }) => kind === "slider" || settings[field] === "yes")
    .map((each) => [each.field, each.kind === "slider" ? number(each) : true]));
  return { elements, fields };
}

function formatValue({ percent, zero, unit, step }, value) {
  if (percent) return `${Math.round(100 * value)} %`;
  if (value === 0 && zero) return zero;
  const text = step < 1 ? value.toFixed(1) : String(value);
  return unit ? `${text} ${unit}` : text;
}
