// Diagram of one attention step. From bottom to top: tokens, keys, scores with the query, weights, context.

import { makeSvg } from "../components/dom.js";
import { displayPiece } from "../components/words.js";
import { formatNumber, largestMagnitude, MAX_WRITTEN, vectorBox } from "../components/vector.js";

const SCORE_RADIUS = 21;
/** Width of the names and the query on the left; smaller on narrow screens. */
const LEFT = 210, LEFT_NARROW = 148, NARROW_SCREEN = 832;
/** Width of a column if the numbers of the keys are written. */
const WRITTEN_COLUMN = 128, WRITTEN_COLUMN_NARROW = 102;
/** Vertical positions: bottom of the weights, centre of the scores, top of the keys, baseline of the tokens. */
const ROWS = { weights: 196, scores: 268, keys: 330, tokens: 396 };
const WEIGHT_HEIGHT = 96;
/** The context is drawn at most this far to the right, so that it is visible without scrolling. */
const MAX_CONTEXT_X = 300, MAX_CONTEXT_X_NARROW = 106;

/** Sources with more tokens are drawn without the tokens that have the smallest weights. */
export const MAX_DRAWN_TOKENS = 40;

/** The attention with only the tokens that have the largest weights, in their order. */
function withLargestWeights(values, labels) {
  if (labels.length <= MAX_DRAWN_TOKENS) return { values, labels };
  const byWeight = labels.map((_, index) => index).sort((first, second) => values.weights.values[second] - values.weights.values[first]);
  const kept = byWeight.slice(0, MAX_DRAWN_TOKENS).sort((first, second) => first - second);
  const select = (part) => ({ ...part, values: kept.map((index) => part.values[index]) });
  return {
    values: { ...values, keys: select(values.keys), scores: select(values.scores), weights: select(values.weights) },
    labels: kept.map((index) => labels[index]),
  };
}

/** values: { query, keys, scores, weights, context }, each with formula and values */
export function attentionDiagram(allValues, allLabels) {
  const { values: { query, keys, scores, weights, context }, labels } = withLargestWeights(allValues, allLabels);
  const [left, writtenColumn, maxContextX] = innerWidth > NARROW_SCREEN
    ? [LEFT, WRITTEN_COLUMN, MAX_CONTEXT_X] : [LEFT_NARROW, WRITTEN_COLUMN_NARROW, MAX_CONTEXT_X_NARROW];
  const count = labels.length, column = keys.values[0].length <= MAX_WRITTEN ? writtenColumn : count > 4 ? 67 : 84;
  const width = left + column * count + 8, height = ROWS.tokens + 18;
  const centre = (index) => left + column * (index + 0.5);
  const svg = makeSvg("svg", { class: "attention-diagram", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": describe(weights, labels) });
  const contextBox = { x: left + Math.min((column * count) / 2, maxContextX) - 66, y: 14, width: 132, height: 40 };
  const largestWeight = Math.max(...weights.values);

  svg.append(vectorBox(context.values, { ...contextBox, magnitude: largestMagnitude(context.values) }));
  drawName(svg, "context", context.formula, 32);
  drawName(svg, "weights", weights.formula, ROWS.weights - 48);
  drawName(svg, "scores", scores.formula, ROWS.scores - 50);
  drawName(svg, "query", query.formula, ROWS.scores + 39);
  drawName(svg, "keys", keys.formula, ROWS.keys + 26);

  svg.append(makeSvg("path", { class: "query-line", d: `M132,${ROWS.scores}H${centre(count - 1)}` }));
  const magnitude = largestMagnitude(keys.values);
  labels.forEach((label, index) => drawColumn(svg, {
    label, boxWidth: column - 11, x: centre(index), key: keys.values[index], magnitude,
    score: scores.values[index], weight: weights.values[index], isLargest: weights.values[index] === largestWeight,
  }));
  weights.values.forEach((weight, index) => {
    const x = centre(index), from = ROWS.weights - WEIGHT_HEIGHT * weight, to = contextBox.y + contextBox.height, middle = (from + to) / 2;
    const end = contextBox.x + 14 + (contextBox.width - 28) * (count === 1 ? 0.5 : index / (count - 1));
    svg.append(makeSvg("path", {
      class: weight === largestWeight ? "flow best" : "flow", d: `M${x},${from}C${x},${middle} ${end},${middle} ${end},${to}`,
      "stroke-width": (0.6 + 9 * weight).toFixed(2), opacity: (0.25 + 0.75 * weight).toFixed(2),
    }));
  });
  svg.append(vectorBox(query.values, { x: 12, y: ROWS.scores - 20, width: 120, height: 40, magnitude: largestMagnitude(query.values) }));
  return svg;
}

/** Draws the weight, score, key and label of one token. */
function drawColumn(svg, { label, boxWidth, x, key, magnitude, score, weight, isLargest }) {
  const barHeight = WEIGHT_HEIGHT * weight, best = isLargest ? " best" : "";
  const token = displayPiece(label);
  svg.append(
    makeSvg("rect", { class: "track", x: x - 13, y: ROWS.weights - WEIGHT_HEIGHT, width: 26, height: WEIGHT_HEIGHT, rx: 5 }),
    makeSvg("rect", { class: `weight${best}`, x: x - 13, y: ROWS.weights - barHeight, width: 26, height: Math.max(barHeight, 1), rx: Math.min(5, barHeight / 2) }),
    makeSvg("text", { class: `weight-label${best}`, x, y: ROWS.weights + 16 }, formatWeight(weight)),
    makeSvg("circle", { class: "score-circle", cx: x, cy: ROWS.scores, r: SCORE_RADIUS }),
    makeSvg("text", { class: "score", x, y: ROWS.scores + 4.5 }, formatNumber(score, 2)),
    makeSvg("path", { class: "key-line", d: `M${x},${ROWS.keys}V${ROWS.scores + SCORE_RADIUS}` }),
    vectorBox(key, { x: x - boxWidth / 2, y: ROWS.keys, width: boxWidth, height: 40, magnitude }),
    makeSvg("text", { class: `token-label${best}`, x, y: ROWS.tokens }, token.length > 10 ? `${token.slice(0, 9)}…` : token));
}

function formatWeight(weight) {
  if (weight === 0) return "0 %";
  if (weight < 0.001) return "≈ 0";
  return `${(100 * weight).toFixed(weight < 0.1 ? 1 : 0)} %`;
}

function drawName(svg, name, formula, y) {
  svg.append(makeSvg("text", { class: "name", x: 12, y }, name), makeSvg("text", { class: "formula", x: 12, y: y + 16 }, formula));
}

/** A text alternative: the five largest weights. */
function describe(weights, labels) {
  const sorted = weights.values.map((weight, index) => [weight, displayPiece(labels[index])]).sort(([first], [second]) => second - first);
  return `Attention weights: ${sorted.slice(0, 5).map(([weight, token]) => `${token} ${formatWeight(weight)}`).join(", ")}`;
}

/** The attention steps of an explanation: its sections that have a query and keys. */
export function findAttentions(explanation) {
  const sections = [...new Set(explanation.parts.map((part) => part.chapter))];
  return sections.flatMap((section) => {
    const parts = explanation.parts.filter((part) => part.chapter === section);
    const find = (name) => parts.find((part) => part.name === name);
    const values = { query: find("query"), keys: find("keys"), scores: find("scores"), weights: find("weights"), context: find("context") };
    return values.query && values.keys ? [{ section, values, labels: values.keys.labels }] : [];
  });
}
