// A panel with alternatives to a word, and a field for a different word.

import { announce, make, uniqueId } from "../components/dom.js";
import { button } from "../components/controls.js";
import { formatPercent, probabilityBar } from "../components/words.js";

/**
 * Opens the panel below a word.
 * options: { text, probability, isCurrent, onSelect() } of each alternative
 * onText(text): called with a word that the user types; onClose(): called when the panel closes
 */
export function openAlternatives(anchor, { title, options, onText, onClose }) {
  const titleId = uniqueId("alternatives");
  const list = make("div", { class: "options" }, options.map(({ text, probability, isCurrent, onSelect }) => make("button", {
    type: "button", tabindex: "-1", "aria-current": isCurrent ? "true" : null, on: { click: onSelect },
  },
  make("span", { dir: "auto" }, text), probabilityBar(probability), make("span", { class: "percent" }, formatPercent(probability)))));
  const input = make("input", { type: "text", "aria-label": "Other word", placeholder: "type another word …", autocomplete: "off" });
  const form = make("form", {}, input, button("Insert", () => insertText(), {}));
  const panel = make("div", { class: "alternatives", role: "dialog", "aria-modal": "true", "aria-labelledby": titleId },
    make("h3", { id: titleId }, make("span", {}, `Alternatives to “${title}”`),
      button("", () => close(), { kind: "quiet", iconName: "close", title: "Close" })),
    list, form);

  function moveTo(option) {
    for (const each of list.children) each.tabIndex = each === option ? 0 : -1;
    option?.focus();
  }

  /** Keeps the focus inside the panel: after its last control comes its first one. */
  function trapFocus(event) {
    const stops = [...panel.querySelectorAll("button, input")].filter((each) => each.tabIndex === 0);
    const last = event.shiftKey ? stops[0] : stops.at(-1);
    if (document.activeElement !== last) return;
    event.preventDefault();
    (event.shiftKey ? stops.at(-1) : stops[0]).focus();
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
    if (event.key === "Tab") trapFocus(event);
    const all = [...list.children], current = all.indexOf(document.activeElement);
    const next = { ArrowDown: current + 1, ArrowUp: current - 1, Home: 0, End: all.length - 1 }[event.key];
    if (current < 0 || next === undefined || !all[next]) return;
    event.preventDefault();
    moveTo(all[next]);
  });
  anchor.setAttribute("aria-expanded", "true");
  anchor.offsetParent.append(panel);
  positionBelow(panel, anchor);
  document.addEventListener("pointerdown", closeOutside);
  moveTo(list.querySelector("[aria-current]") ?? list.firstElementChild);
  panel.scrollIntoView({ block: "nearest" });
  announce(`${options.length} alternatives to ${title}`);
  return { close };
}

function positionBelow(panel, anchor) {
  const maxLeft = anchor.offsetParent.clientWidth - panel.offsetWidth;
  panel.style.left = `${Math.max(0, Math.min(anchor.offsetLeft - 12, maxLeft))}px`;
  panel.style.top = `${anchor.offsetTop + anchor.offsetHeight + 6}px`;
}
