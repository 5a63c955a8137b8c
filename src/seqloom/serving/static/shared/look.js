// One look, as lectures draw it: words below, their keys, how well they match the query, how much
// weight that is, and what is read of them above.

import { draw } from "./dom.js";
import { readable } from "./words.js";
import { boxed, FEW, largest, number } from "./vector.js";

const KNOT = 21;
/** Room for names and the query; less of it on screens on which nothing is wide. */
const BESIDE = 210, BESIDE_SLIM = 148, SLIM = 832;
/** Where rows stand: the foot of the weights, the middle of the scores, the top of the keys. */
const ROWS = { weights: 196, scores: 268, keys: 330, words: 396 };
const TALL = 96;
/** What is read stays in sight, however long the sentence. */
const IN_SIGHT = 300;

/** parts: { query, keys, scores, weights, values, context }, each with formula and values */
export function lookPicture({ query, keys, scores, weights, context }, labels) {
  const left = innerWidth > SLIM ? BESIDE : BESIDE_SLIM;
  const count = labels.length, column = keys.values[0].length <= FEW ? 128 : count > 4 ? 67 : 84;
  const width = left + column * count + 8, height = ROWS.words + 18;
  const middle = (place) => left + column * (place + 0.5);
  const svg = draw("svg", { class: "look", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": spoken(weights, labels) });
  const top = { x: left + Math.min((column * count) / 2, IN_SIGHT) - 66, y: 14, width: 132, height: 40 };
  const best = Math.max(...weights.values);

  svg.append(boxed(context.values, { ...top, most: largest(context.values) }));
  side(svg, "context", context.formula, 32);
  side(svg, "weights", weights.formula, ROWS.weights - 48);
  side(svg, "scores", scores.formula, ROWS.scores - 50);
  side(svg, "query", query.formula, ROWS.scores + 39);
  side(svg, "keys", keys.formula, ROWS.keys + 26);

  svg.append(draw("path", { class: "rail", d: `M132,${ROWS.scores}H${middle(count - 1)}` }));
  const most = largest(keys.values);
  labels.forEach((words, place) => stand(svg, { words, box: column - 11, x: middle(place), key: keys.values[place], most, score: scores.values[place], weight: weights.values[place], best }));
  weights.values.forEach((weight, place) => {
    const x = middle(place), from = ROWS.weights - TALL * weight, to = top.y + top.height, half = (from + to) / 2;
    const end = top.x + 14 + (top.width - 28) * (count === 1 ? 0.5 : place / (count - 1));
    svg.append(draw("path", {
      class: weight === best ? "flow best" : "flow", d: `M${x},${from}C${x},${half} ${end},${half} ${end},${to}`,
      "stroke-width": (0.6 + 9 * weight).toFixed(2), opacity: (0.25 + 0.75 * weight).toFixed(2),
    }));
  });
  svg.append(boxed(query.values, { x: 12, y: ROWS.scores - 20, width: 120, height: 40, most: largest(query.values) }));
  return svg;
}

function stand(svg, { words, box, x, key, most, score, weight, best }) {
  const tall = TALL * weight, chosen = weight === best ? " best" : "";
  const name = readable(words);
  svg.append(
    draw("rect", { class: "track", x: x - 13, y: ROWS.weights - TALL, width: 26, height: TALL, rx: 5 }),
    draw("rect", { class: `weight${chosen}`, x: x - 13, y: ROWS.weights - tall, width: 26, height: Math.max(tall, 1), rx: Math.min(5, tall / 2) }),
    draw("text", { class: `share${chosen}`, x, y: ROWS.weights + 16 }, share(weight)),
    draw("circle", { class: "knot", cx: x, cy: ROWS.scores, r: KNOT }),
    draw("text", { class: "score", x, y: ROWS.scores + 4.5 }, number(score, 2)),
    draw("path", { class: "rise", d: `M${x},${ROWS.keys}V${ROWS.scores + KNOT}` }),
    boxed(key, { x: x - box / 2, y: ROWS.keys, width: box, height: 40, most }),
    draw("text", { class: `below${chosen}`, x, y: ROWS.words }, name.length > 10 ? `${name.slice(0, 9)}…` : name));
}

function share(weight) {
  if (weight === 0) return "0 %";
  if (weight < 0.001) return "≈ 0";
  const words = (100 * weight).toFixed(weight < 0.1 ? 1 : 0);
  return `${words} %`;
}

function side(svg, name, formula, y) {
  svg.append(draw("text", { class: "name", x: 12, y }, name), draw("text", { class: "formula", x: 12, y: y + 16 }, formula));
}

function spoken(weights, labels) {
  const order = weights.values.map((weight, place) => [weight, readable(labels[place])]).sort(([one], [other]) => other - one);
  return `Weights: ${order.slice(0, 5).map(([weight, words]) => `${words} ${share(weight)}`).join(", ")}`;
}

/** The looks of an explanation: the chapters in which a query meets keys. */
export function looksOf(explanation) {
  const chapters = [...new Set(explanation.parts.map((one) => one.chapter))];
  return chapters.flatMap((chapter) => {
    const mine = explanation.parts.filter((one) => one.chapter === chapter);
    const of = (name) => mine.find((one) => one.name === name);
    const parts = { query: of("query"), keys: of("keys"), scores: of("scores"), weights: of("weights"), values: of("values"), context: of("context") };
    return parts.query && parts.keys ? [{ chapter, parts, labels: parts.keys.labels }] : [];
  });
}
