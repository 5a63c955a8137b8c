// From subword pieces to words: the pieces of each word, its probability, and its span in the text.

import { make } from "./dom.js";

export const END = "</s>";
export const UNKNOWN = "<unk>";

/** A piece as displayed text, without the markers ▁ and ￭. markContinuation: "…" before pieces inside a word. */
export function displayPiece(piece, markContinuation = false) {
  if (piece === END) return "end";
  if (piece === UNKNOWN) return "unknown";
  const plain = withoutMarkers(piece);
  if (!plain) return "␣";
  const continues = markContinuation && !piece.startsWith("▁") && /^\p{L}/u.test(plain);
  return continues ? `…${plain}` : plain;
}

const withoutMarkers = (piece) => piece.replaceAll("▁", " ").replaceAll("￭", "").trim();

export const formatPercent = (fraction) =>
  fraction >= 0.995 ? "100 %" : fraction < 0.005 ? "< 1 %" : `${Math.round(100 * fraction)} %`;

/** Formats a log-probability or score; null is the logarithm of zero. */
export const formatScore = (value, decimals = 2) =>
  value === null || !Number.isFinite(value) ? "−∞" : value.toFixed(decimals).replace("-", "−");

/** The words of a text, split at white space, with their spans. */
export function splitWords(text) {
  return [...text.matchAll(/\S+/gu)].map((match) => ({
    text: match[0], begin: match.index, end: match.index + match[0].length, pieces: [], logProbability: 0,
  }));
}

/** The span of each piece in the text of an output; null for a piece that is not in the text, such as END. */
export function pieceSpans(output) {
  const text = withoutCopiedParts(output);
  let from = 0;
  return output.pieces.map((piece) => {
    const span = findPiece(text, piece, from);
    from = span?.end ?? from;
    return span;
  });
}

/** The text of an output with spaces in place of the parts that were copied from the source, which have no pieces. */
function withoutCopiedParts(output) {
  let { text } = output, from = 0;
  for (const part of output.copied_parts ?? []) {
    const begin = text.indexOf(part, from);
    if (begin < 0) continue;
    from = begin + part.length;
    text = text.slice(0, begin) + " ".repeat(part.length) + text.slice(from);
  }
  return text;
}

/** The words of an output, each with the indices of its pieces and its log-probability. */
export function wordsOf(output) {
  const words = splitWords(output.text);
  pieceSpans(output).forEach((span, index) => {
    const word = span && words.find((each) => span.begin < each.end);
    if (!word) return;
    word.pieces.push(index);
    word.logProbability += output.log_probabilities[index] ?? -Infinity;
  });
  return words;
}

/** The pieces of an output in the form of `wordsOf`. */
export function piecesOf(output) {
  return pieceSpans(output).flatMap((span, index) => (span ? [{
    text: output.text.slice(span.begin, span.end), ...span, pieces: [index],
    logProbability: output.log_probabilities[index] ?? -Infinity,
  }] : []));
}

/** Characters that may lie between two pieces, besides white space. */
const MAX_GAP = 3;

/** The span of a piece at or shortly after `from`; null if it is not there. */
function findPiece(text, piece, from) {
  const plain = piece === END ? "" : withoutMarkers(piece);
  if (!plain) return null;
  let start = from;
  while (start < text.length && /\s/u.test(text[start])) start += 1;
  const index = text.indexOf(plain, start);
  return index < 0 || index > start + MAX_GAP ? null : { begin: index, end: index + plain.length };
}

/** Words with a smaller probability are marked. */
export const LOW_PROBABILITY = 0.2;

export const isUncertain = (word) => word.pieces.length > 0 && Math.exp(word.logProbability) < LOW_PROBABILITY;

/**
 * A button for a word, with a bar as long as its probability.
 * It is a <span>, because browsers do not let users select the text of a <button>.
 */
export function wordButton(word, { class: className = "word", on: { click, ...listeners } = {}, ...attributes } = {}) {
  const probability = Math.exp(word.logProbability);
  return make("span", {
    role: "button", class: `${className}${isUncertain(word) ? " uncertain" : ""}`, vars: { probability: probability.toFixed(3) }, tabindex: "-1",
    title: word.pieces.length ? formatPercent(probability) : null, ...attributes,
    on: {
      ...listeners,
      click(event) {
        const isSelecting = event.detail > 0 && !getSelection().isCollapsed; // the click ends the selection of text
        if (!isSelecting) click?.(event);
      },
      keydown(event) {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.currentTarget.click();
      },
    },
  }, word.text);
}

/** The text of an output for a list or a table, where an empty text would not be visible. */
export const outputText = (output) => output.text || "(empty output)";

/** The text of an output as nodes: each word replaced by a button, the white space between them kept. */
export function textWithButtons(text, words, buttons) {
  return buttons.flatMap((button, index) => [text.slice(index ? words[index - 1].end : 0, words[index].begin), button]);
}

/** Makes a group of controls one tab stop; arrow keys, Home and End move between them (roving tabindex). */
export function enableRovingFocus(group, selector, first = group.querySelector(selector)) {
  const controls = [...group.querySelectorAll(selector)];
  const moveTo = (control) => {
    for (const each of controls) each.tabIndex = each === control ? 0 : -1;
  };
  moveTo(first);
  group.addEventListener("focusin", (event) => {
    if (controls.includes(event.target)) moveTo(event.target);
  });
  group.addEventListener("keydown", (event) => {
    const current = controls.indexOf(document.activeElement);
    const next = { ArrowRight: current + 1, ArrowDown: current + 1, ArrowLeft: current - 1, ArrowUp: current - 1, Home: 0, End: controls.length - 1 }[event.key];
    if (current < 0 || next === undefined || !controls[next]) return;
    event.preventDefault();
    controls[next].focus();
  });
}

/** Like `enableRovingFocus`, for words that may be replaced later. The vertical arrow keys keep scrolling the page. */
export function enableArrowKeys(group, signal) {
  const words = () => [...group.querySelectorAll(".word")];
  const first = words()[0];
  if (first) first.tabIndex = 0;
  group.addEventListener("focusin", (event) => {
    if (!event.target.classList.contains("word")) return;
    for (const word of words()) word.tabIndex = word === event.target ? 0 : -1;
  }, { signal });
  group.addEventListener("keydown", (event) => {
    const all = words(), current = all.indexOf(document.activeElement);
    const next = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: all.length - 1 }[event.key];
    if (current < 0 || next === undefined || !all[next]) return;
    event.preventDefault();
    all[next].focus();
  }, { signal });
}

export function probabilityLegend() {
  return make("p", { class: "legend" },
    make("span", {},
      make("span", { class: "word sample", vars: { probability: 0.25 } }, "25 %"),
      make("span", { class: "word sample", vars: { probability: 1 } }, "100 %"),
      "The bar under a word is its probability."),
    make("span", {},
      make("span", { class: "word sample uncertain", vars: { probability: LOW_PROBABILITY } }, `below ${100 * LOW_PROBABILITY} %`),
      "The model is uncertain."));
}

/** A horizontal bar that shows a probability. */
export function probabilityBar(probability) {
  return make("span", { class: "probability-bar", vars: { fraction: probability }, "aria-hidden": "true" }, make("i"));
}
