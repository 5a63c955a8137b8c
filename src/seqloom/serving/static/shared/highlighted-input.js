// A text area that grows with its text and can highlight parts of it.

import { make, uniqueId } from "./dom.js";

/**
 * Returns { label, element, input, highlight, setText }.
 * highlight([{ begin, end }]) highlights parts of the text; an empty list removes the highlights.
 * A copy of the text behind the text area carries the highlights and sets its height.
 */
export function highlightedInput(labelText, value, { onChange, placeholder = "", maxLength, rows = 3 }) {
  const id = uniqueId("input");
  const background = make("div", { class: "highlights", "aria-hidden": "true" });
  const input = make("textarea", {
    id, rows, placeholder, value, maxlength: maxLength, dir: "auto", spellcheck: "false", autocapitalize: "off",
  });
  // The zero-width space gives a trailing line break its height.
  const copyText = () => background.replaceChildren(`${input.value}\u200b`);
  input.addEventListener("input", () => {
    copyText();
    onChange(input.value);
  });
  copyText();

  function highlight(spans) {
    if (!spans.length) {
      copyText();
      return;
    }
    const text = input.value, content = [];
    let position = 0;
    for (const { begin, end } of [...spans].sort((first, second) => first.begin - second.begin)) {
      content.push(text.slice(position, begin), make("mark", {}, text.slice(begin, end)));
      position = end;
    }
    background.replaceChildren(...content, `${text.slice(position)}\u200b`);
  }

  function setText(text) {
    input.value = text;
    copyText();
    onChange(text);
    input.focus();
  }

  const label = make("label", { for: id }, labelText);
  return { label, element: make("div", { class: "highlighted-input words" }, background, input), input, highlight, setText };
}
