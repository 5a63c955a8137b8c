// A text that people type, as high as it is long, with light behind its words.

import { make, unique } from "./dom.js";

/** light([{ begin, end, lit }]) lights up parts of the text; nothing puts it out. */
export function typed(label, value, { changed, placeholder = "", most, rows = 3 }) {
  const id = unique("typed");
  const behind = make("div", { class: "behind", "aria-hidden": "true" });
  const input = make("textarea", {
    id, rows, placeholder, value, maxlength: most, dir: "auto", spellcheck: "false", autocapitalize: "off",
  });
  const mirror = () => behind.replaceChildren(`${input.value}\u200b`);
  input.addEventListener("input", () => {
    mirror();
    changed(input.value);
  });
  mirror();

  function light(spans) {
    if (!spans.length) {
      mirror();
      return;
    }
    const text = input.value, content = [];
    let place = 0;
    for (const { begin, end, lit } of [...spans].sort((one, other) => one.begin - other.begin)) {
      content.push(text.slice(place, begin), make("mark", { vars: { lit } }, text.slice(begin, end)));
      place = end;
    }
    behind.replaceChildren(...content, `${text.slice(place)}\u200b`);
  }

  function put(words) {
    input.value = words;
    mirror();
    changed(words);
    input.focus();
  }

  const title = make("label", { for: id }, label);
  return { title, place: make("div", { class: "typed words" }, behind, input), input, light, put };
}
