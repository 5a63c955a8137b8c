// Finds whole words that could stand in place of a word of an output.

import { request } from "./api-client.js";
import { END, wordsOf } from "../components/words.js";

/** Maximum number of alternatives to a word. Each needs a request, and browsers send at most six requests to a server at the same time. */
const MAX_ALTERNATIVES = 6;

/**
 * Returns the word itself and its alternatives, most probable first. Each has
 *   text, probability     the word and its probability after the words before it
 *   isCurrent             true for the word of the output
 *   output, forcedLength  the output with this word, and the number of tokens up to the end of the word
 * The decoder completes each of the most probable pieces to a word, because a piece alone is often not a word.
 * fields: run, target, beam and text of the requests
 */
export async function findWordAlternatives(fields, output, word, signal) {
  const tokens = output.tokens.filter((_, index) => output.pieces[index] !== END);
  const { steps } = await request("/api/alternatives", { ...fields, tokens }, { signal });
  const begins = listBegins(output, word, steps);
  const completed = await Promise.all(begins.map(async (begin) => {
    const response = await request("/api/continue", { ...fields, begin }, { signal });
    return describeWord(response.output, word.pieces[0], begin);
  }));
  const current = { ...describeWord(output, word.pieces[0], output.tokens), text: word.text, isCurrent: true };
  const byText = new Map([[current.text, current]]);
  for (const each of completed.sort((first, second) => second.probability - first.probability))
    if (!byText.has(each.text)) byText.set(each.text, each);
  return [...byText.values()].sort((first, second) => second.probability - first.probability);
}

/** The most probable beginnings of outputs that differ from the output inside the word. */
function listBegins(output, word, steps) {
  const begins = word.pieces.flatMap((step) => {
    const before = sum(output.log_probabilities.slice(word.pieces[0], step));
    return steps[step].filter(({ token }) => token !== output.tokens[step]).map(({ token, log_probability: log }) => ({
      tokens: [...output.tokens.slice(0, step), token], logProbability: before + (log ?? -Infinity),
    }));
  });
  begins.sort((first, second) => second.logProbability - first.logProbability);
  return begins.slice(0, MAX_ALTERNATIVES).map((begin) => begin.tokens);
}

/** The word of an output that contains the piece at an index. */
function describeWord(output, piece, begin) {
  const word = wordsOf(output).find((each) => each.pieces.includes(piece));
  const end = Math.max(begin.length, (word?.pieces.at(-1) ?? piece) + 1);
  const last = word ? word.pieces.at(-1) + 1 : piece + 1;
  return {
    text: word?.text ?? (output.pieces[piece] === END ? "end of text" : output.pieces[piece] ?? ""),
    probability: Math.exp(sum(output.log_probabilities.slice(piece, last))),
    isCurrent: false, output, forcedLength: end,
  };
}

const sum = (values) => values.reduce((total, value) => total + (value ?? -Infinity), 0);
