// What else could stand at a step: the best tokens with their probabilities, or a word of one's own.

import { make, say, unique } from "./dom.js";
import { button, segments } from "./controls.js";
import { percent, readable } from "./words.js";

/**
 * word: its words and the numbers of its pieces; pieces: of the whole output
 * steps: for each piece what could stand there; choose(step, token), write(text) take a choice
 */
export function instead(anchor, { word, pieces, steps, choose, write, closed }) {
  const title = unique("instead");
  const options = make("div", { class: "options" });
  const own = make("input", { type: "text", "aria-label": "Another word", placeholder: "another word …", autocomplete: "off" });
  const form = make("form", {}, own, button("Put", () => put(), {}));
  const panel = make("div", { class: "instead", role: "dialog", "aria-labelledby": title },
    make("h3", { id: title }, make("span", {}, `Instead of “${word.text}”`),
      button("", () => close(), { kind: "quiet", picture: "close", title: "Close" })),
    word.pieces.length > 1 && segments("From the piece", word.pieces.map((piece) => [piece, readable(pieces[piece])]),
      word.pieces[0], (piece) => list(Number(piece))),
    options, write && form);

  function list(step) {
    options.replaceChildren(...steps[step].map((one) => {
      const share = Math.exp(one.log_probability ?? -Infinity);
      return make("button", {
        type: "button", "aria-current": one.piece === pieces[step] ? "true" : null,
        on: { click: () => choose(step, one.token) },
      },
      make("span", { dir: "auto" }, one.piece === "</s>" ? "end here" : readable(one.piece, true)),
      make("span", { class: "share", vars: { share }, "aria-hidden": "true" }, make("i")),
      make("span", { class: "percent" }, percent(share)));
    }));
  }

  function put() {
    if (own.value.trim()) write(own.value.trim());
  }

  function close(back = true) {
    panel.remove();
    anchor.setAttribute("aria-expanded", "false");
    document.removeEventListener("pointerdown", away);
    if (back) anchor.focus();
    closed?.();
  }

  const away = (event) => {
    if (!panel.contains(event.target) && event.target !== anchor) close(false);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    put();
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      close();
    }
    const all = [...options.children], here = all.indexOf(document.activeElement);
    const next = { ArrowDown: here + 1, ArrowUp: here - 1 }[event.key];
    if (next === undefined || !all[next]) return;
    event.preventDefault();
    all[next].focus();
  });
  list(word.pieces[0]);
  anchor.setAttribute("aria-expanded", "true");
  anchor.offsetParent.append(panel);
  place(panel, anchor);
  document.addEventListener("pointerdown", away);
  (options.querySelector("[aria-current]") ?? options.firstElementChild)?.focus();
  say(`${options.childElementCount} choices instead of ${word.text}`);
  return { close };
}

function place(panel, anchor) {
  const room = anchor.offsetParent.clientWidth - panel.offsetWidth;
  panel.style.left = `${Math.max(0, Math.min(anchor.offsetLeft - 12, room))}px`;
  panel.style.top = `${anchor.offsetTop + anchor.offsetHeight + 6}px`;
}
