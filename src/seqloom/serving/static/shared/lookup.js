// Looks up a query in a table of keys and values: exactly, by the nearest key, or softly.
// The same formulas as seqloom.analysis.lookup, which `seqloom lookup` uses.

const dot = (first, second) => first.reduce((sum, value, index) => sum + value * second[index], 0);
const minus = (first, second) => first.map((value, index) => value - second[index]);
const squaredDistance = (first, second) => minus(first, second).reduce((sum, value) => sum + value * value, 0);

function softmax(scores) {
  const largest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - largest));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}

/** All weight on one key; no weight at all if the index is -1. */
const oneHot = (length, index) => Array.from({ length }, (_, at) => Number(at === index));

/**
 * table: keys (one vector each), values (one number each), query, score ("dot" or "rbf"), gamma, temperature
 * method: "exact", "nearest" or "soft"
 * Returns scores and weights of the keys, the result, and its gradients with respect to the query and to each key.
 */
export function lookUp({ keys, values, query, score, gamma, temperature }, method) {
  const noGradients = { queryGradient: query.map(() => 0), keyGradients: keys.map((key) => key.map(() => 0)) };
  if (method === "exact") {
    const scores = keys.map((key) => Number(key.every((value, index) => value === query[index])));
    const weights = oneHot(keys.length, scores.indexOf(1));
    return { scores, weights, result: dot(weights, values), ...noGradients };
  }
  if (method === "nearest") {
    const scores = keys.map((key) => -squaredDistance(query, key));
    const weights = oneHot(keys.length, scores.indexOf(Math.max(...scores)));
    return { scores, weights, result: dot(weights, values), ...noGradients };
  }
  const scores = keys.map((key) => (score === "dot" ? dot(query, key) : -gamma * squaredDistance(query, key)));
  const weights = softmax(scores.map((each) => each / temperature));
  const result = dot(weights, values);
  // ∂r/∂e_i = α_i (v_i - r) / T, and ∂e_i/∂q = k_i or -2γ(q - k_i), ∂e_i/∂k_i = q or 2γ(q - k_i)
  const toScores = weights.map((weight, index) => (weight * (values[index] - result)) / temperature);
  const difference = (key, axis) => 2 * gamma * (query[axis] - key[axis]);
  return {
    scores, weights, result,
    queryGradient: query.map((_, axis) => keys.reduce((sum, key, index) => sum + toScores[index] * (score === "dot" ? key[axis] : -difference(key, axis)), 0)),
    keyGradients: keys.map((key, index) => key.map((_, axis) => toScores[index] * (score === "dot" ? query[axis] : difference(key, axis)))),
  };
}
