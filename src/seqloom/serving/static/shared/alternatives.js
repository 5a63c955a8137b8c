// A panel with the most probable tokens at a decoder step, and a field for a different word.

import { announce, make, uniqueId } from "./dom.js";
import { button, segmentedControl } from "./controls.js";
import { displayPiece, formatPercent, probabilityBar } from "./words.js";

/**
 * Opens the panel below a word.
 * word: text and piece indices; pieces: all pieces of the output; steps: the most probable tokens at each step
 * onToken(step, token), onText(text): called with the choice; onClose(): called when the panel closes
 */
export function openAlternatives(anchor, { word, pieces, steps, onToken, onText, onClose }) {
  const titleId = uniqueId("alternatives");
  const options = make("div", { class: "options" });
  const input = make("input", { type: "text", "aria-label": "Other word", placeholder: "type another word …", autocomplete: "off" });
  const form = make("form", {}, input, button("Insert", () => insertText(), {}));
  const panel = make("div", { class: "alternatives", role: "dialog", "aria-labelledby": titleId },
    make("h3", { id: titleId }, make("span", {}, `Alternatives to “${word.text}”`),
      button("", () => close(), { kind: "quiet", iconName: "close", title: "Close" })),
    word.pieces.length > 1 && segmentedControl("Replace from piece", word.pieces.map((piece) => [piece, displayPiece(pieces[piece])]),
      word.pieces[0], (piece) => listTokens(Number(piece))),
    options, form);

  function listTokens(step) {
    options.replaceChildren(...steps[step].map((alternative) => {
      const probability = Math.exp(alternative.log_probability ?? -Infinity);
      return make("button", {
        type: "button", "aria-current": alternative.piece === pieces[step] ? "true" : null,
        on: { click: () => onToken(step, alternative.token) },
      },
      make("span", { dir: "auto" }, alternative.piece === "</s>" ? "end of text" : displayPiece(alternative.piece, true)),
      probabilityBar(probability),
      make("span", { class: "percent" }, formatPercent(probability)));
    }));
  }

  function insertText() {
    if (input.value.trim()) onText(input.value.trim());
  }

  function close(restoreFocus = true) {
    panel.remove();
    anchor.setAttribute("aria-expanded", "false");
    document.removeEventListener("pointerdown", closeOutside);
    if (restoreFocus) anchor.focus();
    onClose?.();
  }

  const closeOutside = (event) => {
    if (!panel.contains(event.target) && event.target !== anchor) close(false);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    insertText();
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      close();
    }
    const all = [...options.children], current = all.indexOf(document.activeElement);
    const next = { ArrowDown: current + 1, ArrowUp: current - 1 }[event.key];
    if (next === undefined || !all[next]) return;
    event.preventDefault();
    all[next].focus();
  });
  listTokens(word.pieces[0]);
  anchor.setAttribute("aria-expanded", "true");
  anchor.offsetParent.append(panel);
  positionBelow(panel, anchor);
  document.addEventListener("pointerdown", closeOutside);
  (options.querySelector("[aria-current]") ?? options.firstElementChild)?.focus();
  announce(`${options.childElementCount} alternatives to ${word.text}`);
  return { close };
}

function positionBelow(panel, anchor) {
  const maxLeft = anchor.offsetParent.clientWidth - panel.offsetWidth;
  panel.style.left = `${Math.max(0, Math.min(anchor.offsetLeft - 12, maxLeft))}px`;
  panel.style.top = `${anchor.offsetTop + anchor.offsetHeight + 6}px`;
}
