// A text area that grows with its text and can highlight parts of it.

import { make, uniqueId } from "../components/dom.js";
import { characterCounter } from "./fields.js";

/**
 * limit(): maximum number of characters. The field accepts longer texts, and its counter says that they are too long.
 * Returns { label, element, counter, input, highlight, markUnknown, setText, updateLimit }.
 * highlight([{ begin, end }]) highlights parts of the text; an empty list removes the highlights.
 * markUnknown([{ begin, end }]) marks parts that the model does not know, until the text changes.
 * A copy of the text behind the text area carries the highlights and sets its height.
 */
export function highlightedInput(labelText, value, { onChange, placeholder = "", limit, rows = 3 }) {
  const id = uniqueId("input");
  const background = make("div", { class: "highlights", "aria-hidden": "true" });
  const counter = characterCounter(limit);
  const input = make("textarea", {
    id, rows, placeholder, value, "aria-describedby": counter.element.id, dir: "auto", spellcheck: "false", autocapitalize: "off",
  });
  // The zero-width space gives a trailing line break its height.
  let unknown = [], highlighted = [];
  const copyText = () => {
    unknown = highlighted = [];
    counter.show(input.value);
    render();
  };
  input.addEventListener("input", () => {
    copyText();
    onChange(input.value);
  });
  copyText();

  function render() {
    const text = input.value, content = [];
    let position = 0;
    const spans = [...highlighted, ...unknown.map((span) => ({ ...span, isUnknown: true }))];
    for (const { begin, end, isUnknown } of spans.sort((first, second) => first.begin - second.begin)) {
      if (begin < position) continue; // the part is highlighted already
      content.push(text.slice(position, begin), make("mark", { class: isUnknown ? "unknown" : null }, text.slice(begin, end)));
      position = end;
    }
    background.replaceChildren(...content, `${text.slice(position)}\u200b`);
  }

  function highlight(spans) {
    highlighted = spans;
    render();
  }

  function markUnknown(spans) {
    unknown = spans;
    render();
  }

  function setText(text) {
    input.value = text;
    copyText();
    onChange(text);
    input.focus();
  }

  const label = make("label", { for: id }, labelText);
  return { label, element: make("div", { class: "highlighted-input words" }, background, input), counter: counter.element, input, highlight, markUnknown, setText, updateLimit: () => counter.show(input.value) };
}
