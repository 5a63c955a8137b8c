// One of two outputs for the same source: its words, with those that differ marked, and its attention.

import { make } from "./dom.js";
import { attentionMap } from "./attention-map.js";
import { displayPiece, enableArrowKeys, outputText, textWithButtons, wordButton, wordsOf } from "./words.js";

/**
 * output, other: { text, pieces, log_probabilities }
 * options: name and description of the run, facts about the output, attention { outputs, sources, weights } or null, signal
 */
export function comparedOutput(output, other, { name, description, facts, attention, signal }) {
  const words = wordsOf(output), differs = differingWords(words, wordsOf(other));
  const buttons = words.map((word, index) => wordButton(word, { class: differs[index] ? "word differs" : "word" }));
  const group = make("p", { class: "words", dir: "auto", role: "group", "aria-label": `Translation of ${name}` }, words.length ? textWithButtons(output.text, words, buttons) : outputText(output));
  enableArrowKeys(group, signal);
  const labels = (pieces) => pieces.map((piece) => displayPiece(piece));
  return make("section", { class: "card compared" },
    make("h2", {}, name), description && make("p", { class: "facts" }, description),
    group, make("p", { class: "facts" }, facts),
    attention?.sources.length
      ? attentionMap({ outputs: labels(attention.outputs), sources: labels(attention.sources), weights: attention.weights }, { title: output.text, signal, tools: false, availableWidth: Math.min(430, innerWidth - 90) })
      : make("p", { class: "message" }, "This run has no attention. Its decoder sees the source only through the encoder’s final state."));
}

const withoutPunctuation = (word) => word.text.toLowerCase().replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "");

/** For each word, true if it is not in the longest common subsequence of the words of both outputs. */
function differingWords(words, others) {
  const [first, second] = [words, others].map((all) => all.map(withoutPunctuation));
  // lengths[i][j]: length of the longest common subsequence of the words from i and the other words from j
  const lengths = Array.from({ length: first.length + 1 }, () => Array(second.length + 1).fill(0));
  for (let i = first.length - 1; i >= 0; i -= 1)
    for (let j = second.length - 1; j >= 0; j -= 1)
      lengths[i][j] = first[i] === second[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
  const differs = [];
  for (let i = 0, j = 0; i < first.length;) {
    if (j < second.length && first[i] === second[j]) [differs[i], i, j] = [false, i + 1, j + 1];
    else if (j < second.length && lengths[i][j + 1] >= lengths[i + 1][j]) j += 1;
    else [differs[i], i] = [true, i + 1];
  }
  return differs;
}
