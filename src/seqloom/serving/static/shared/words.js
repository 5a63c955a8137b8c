// Pieces as words: which pieces a word is made of, and how sure the model was of it.

import { make } from "./dom.js";

export const END = "</s>";

/** A piece as people read it: ▁word, ￭mark and </s> have signs of their own. */
export function readable(piece, inside = false) {
  if (piece === END) return "end";
  const plain = piece.replaceAll("▁", " ").replaceAll("￭", "").trim();
  if (!plain) return "␣";
  const continues = inside && !piece.startsWith("▁") && /^\p{L}/u.test(plain);
  return continues ? `…${plain}` : plain;
}

export const percent = (share) =>
  share >= 0.995 ? "100 %" : share < 0.005 ? "< 1 %" : `${Math.round(100 * share)} %`;

/** A logarithm or a score; none at all stands for a probability of zero. */
export const signed = (value, decimals = 2) =>
  value === null || !Number.isFinite(value) ? "−∞" : value.toFixed(decimals).replace("-", "−");

/** The words of a text with their places: what stands between white space. */
export function split(text) {
  return [...text.matchAll(/\S+/gu)].map((found) => ({
    text: found[0], begin: found.index, end: found.index + found[0].length, pieces: [], log: 0,
  }));
}

/** Where each piece stands in its text; null: nowhere, as a tag or the end. */
export function placesOf(output) {
  let from = 0;
  return output.pieces.map((piece) => {
    const found = find(output.text, piece, from);
    from = found?.end ?? from;
    return found;
  });
}

/** The words of an output, each with its pieces and their logarithm of probability. */
export function wordsOf(output) {
  const words = split(output.text);
  placesOf(output).forEach((place, number) => {
    const word = place && words.find((one) => place.start < one.end);
    if (!word) return;
    word.pieces.push(number);
    word.log += output.log_probabilities[number] ?? -Infinity;
  });
  return words;
}

/** The same, every piece by itself: what a model of language decides. */
export function piecesOf(output) {
  return placesOf(output).flatMap((place, number) => (place ? [{
    text: output.text.slice(place.start, place.end), begin: place.start, end: place.end, pieces: [number],
    log: output.log_probabilities[number] ?? -Infinity,
  }] : []));
}

const REACH = 3;

/** Where a piece stands in its text, from a place on; null: nowhere, as a tag or the end. */
function find(text, piece, from) {
  const plain = piece === END ? "" : piece.replaceAll("▁", " ").replaceAll("￭", "").trim();
  if (!plain) return null;
  let start = from;
  while (start < text.length && /\s/u.test(text[start])) start += 1;
  const found = text.indexOf(plain, start);
  return found < 0 || found > start + REACH ? null : { start: found, end: found + plain.length };
}

/** A word whose bar is as long as the model was sure. */
export function wordButton(word, attributes = {}) {
  const sure = Math.exp(word.log);
  return make("button", {
    type: "button", class: "word", vars: { sure: sure.toFixed(3) }, tabindex: "-1",
    title: word.pieces.length ? percent(sure) : null, ...attributes,
  }, word.text);
}

/** One stop for the tab key; arrows move among the words. */
export function rove(group, signal) {
  const words = () => [...group.querySelectorAll(".word")];
  const first = words()[0];
  if (first) first.tabIndex = 0;
  group.addEventListener("focusin", (event) => {
    if (!event.target.classList.contains("word")) return;
    for (const each of words()) each.tabIndex = each === event.target ? 0 : -1;
  }, { signal });
  group.addEventListener("keydown", (event) => {
    const all = words(), here = all.indexOf(document.activeElement);
    const next = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: all.length - 1 }[event.key];
    if (here < 0 || next === undefined || !all[next]) return;
    event.preventDefault();
    all[next].focus();
  }, { signal });
}

export function legend() {
  return make("p", { class: "legend" },
    make("span", { class: "word sample", vars: { sure: 0.25 } }, "unsure"),
    make("span", { class: "word sample", vars: { sure: 1 } }, "sure"),
    make("span", {}, "The bar under a word is its probability."));
}
