// A worked example of attention on small matrices that the user can edit, for every score function.

import { make } from "../components/dom.js";
import { button, segmentedControl, selectField, sliderField } from "../components/controls.js";
import { copyLinkButton } from "../shared/fields.js";
import { onThemeChange } from "../components/colours.js";
import { debounce, latestOnly } from "../shared/scheduling.js";
import { attentionDiagram, findAttentions } from "../shared/attention-diagram.js";
import { request } from "../shared/api-client.js";
import { editableMatrix, packMatrix, resizeMatrix, unpackMatrix } from "../shared/editable-matrix.js";
import { resultArea } from "../shared/panels.js";
import { stepValues } from "../shared/step-values.js";
import { formatNumber } from "../components/vector.js";

/** Name in the API, formula, what is always true of the score, and what it shows with the numbers of the lecture. */
const SCORES = [
  ["dot", "q · k", "The score is the dot product of query and key.", "The scores are so far apart that the softmax puts all weight on the largest one."],
  ["identity", "h · h", "The states are compared directly, without projection matrices.", "h₂ has the largest score with itself."],
  ["sqrt", "q · k / √d", "The dot product is divided by √d. With wide vectors this scaling keeps the softmax from saturating.", "Here the largest score still leads by 143."],
  ["width", "q · k / d", "The dot product is divided by d, so that no key can take all the weight when vectors are wide.", "Here d is only 2."],
  ["bilinear", "hᵀ W h", "One matrix W = Wqᵀ Wk replaces the two projections. The scores are the same as those of q · k.", ""],
  ["nonlinear", "σ(q) · σ(k)", "The sigmoid keeps the values of query and key between 0 and 1, so the scores are close.", "Every key gets some weight."],
  ["additive", "v · tanh(Wq h + Wk h)", "A small feed-forward network computes the score. All values of v are 1.", "These numbers saturate its tanh, so all keys get the same score."],
  ["rbf", "−γ‖q − k‖²", "The score is the negative squared distance, multiplied by γ. The nearest key has the largest score.", "It is the same key as for the dot product."],
];
const SELECTIONS = [
  ["softmax", "softmax", ""],
  ["argmax", "argmax", "The context is the value whose key has the highest score."],
  ["nearest", "nearest", "The context is the value whose key is nearest to the query. The score function is not used."],
  ["exact", "exact", "The context is the value whose key equals the query, and zero if there is no such key. The score function is not used."],
];
/** Name in the API, name in links, symbol, and the numbers of the lecture. */
const MATRICES = [
  ["states", "h", "h", "5,1;4,3;-2,6"],
  ["to_query", "wq", "Wq", "1,0;2,9"],
  ["to_key", "wk", "Wk", "0,1;6,0"],
  ["to_value", "wv", "Wv", "4,3;9,1"],
];
const DEFAULTS = { score: "dot", choice: "softmax", query: "2", gamma: 1 };
/** Sizes for which the diagram writes every vector as numbers. */
const MAX_STATES = 6, MAX_WIDTH = 4;

export function renderLectureExample(body, context) {
  const { settings, signal } = context;
  const requests = latestOnly(signal);
  const result = resultArea({ class: "result step-result" });
  const loadLater = debounce(load, 250);
  const inputs = make("section", { class: "card example-inputs" });
  const diagram = make("div", { class: "card scroll example-diagram", tabindex: "0", role: "group", "aria-label": "Attention diagram" });
  const remark = make("p", { class: "remark", role: "status" });
  const gamma = sliderField("γ", { min: -5, max: 5, step: 0.25, value: Math.log2(positiveNumber(settings.gamma)), format: (value) => formatNumber(2 ** value) }, (value) => change({ gamma: 2 ** value }));
  let matrices = readMatrices(), shown = null;

  const oneOf = (name, options) => (options.some(([each]) => each === settings[name]) ? settings[name] : DEFAULTS[name]);
  const score = () => oneOf("score", SCORES), selection = () => oneOf("choice", SELECTIONS);
  const query = () => Math.min(Math.max(1, Math.round(Number(settings.query)) || Number(DEFAULTS.query)), matrices.states.length);

  function readMatrices() {
    return Object.fromEntries(MATRICES.map(([name, key, , lecture]) => [name, unpackMatrix(settings[key] || lecture)]));
  }

  /** Writes the matrices that differ from the lecture to the link. */
  function change(changes) {
    const packed = MATRICES.map(([name, key, , lecture]) => [key, packMatrix(matrices[name]) === lecture ? null : packMatrix(matrices[name])]);
    context.update({ ...Object.fromEntries(packed), ...changes });
    loadLater();
  }

  function load() {
    gamma.hidden = score() !== "rbf";
    result.showLoading("Computing …");
    const fields = { ...matrices, query: query(), score: score(), selection: selection(), gamma: positiveNumber(settings.gamma) };
    requests.run((inner) => request("/api/explain/example", fields, { signal: inner }), {
      onResult: ({ explanation }) => show((shown = explanation)), onError: (error) => result.showError(error, load),
    });
  }

  function show(explanation) {
    const [attention] = findAttentions(explanation);
    remark.textContent = describeChoice();
    diagram.replaceChildren(attentionDiagram(attention.values, attention.labels));
    result.show(remark, diagram,
      make("section", { class: "card" }, make("h2", {}, "All values in order of computation"), stepValues(explanation)));
  }

  function describeChoice() {
    const [, , always, ofLecture] = SCORES.find(([name]) => name === score());
    const [, , chosen] = SELECTIONS.find(([name]) => name === selection());
    if (selection() === "argmax") return `${always} ${chosen}`;
    if (selection() !== "softmax") return chosen;
    const isLecture = query() === Number(DEFAULTS.query) && MATRICES.every(([name, , , lecture]) => packMatrix(matrices[name]) === lecture);
    return isLecture ? `${always} ${ofLecture}` : always;
  }

  /** Gives the matrices new sizes. New entries are 0. */
  function resize({ states = matrices.states.length, width = matrices.states[0].length, inner = matrices.to_query.length, outer = matrices.to_value.length }) {
    matrices = {
      states: resizeMatrix(matrices.states, states, width), to_query: resizeMatrix(matrices.to_query, inner, width),
      to_key: resizeMatrix(matrices.to_key, inner, width), to_value: resizeMatrix(matrices.to_value, outer, width),
    };
    change({ query: query() });
    showInputs();
  }

  function showInputs() {
    const sizeField = (label, name, value, largest) => selectField(label, Array.from({ length: Math.max(largest, value) }, (_, index) => [index + 1, index + 1]), value, (size) => resize({ [name]: Number(size) }));
    inputs.replaceChildren(
      make("div", { class: "inputs-header" }, make("h2", {}, "Inputs"), button("Restore the numbers of the lecture", () => {
        context.update({ ...Object.fromEntries(MATRICES.map(([, key]) => [key, null])), query: null });
        matrices = readMatrices();
        showInputs();
        load();
      })),
      make("div", { class: "matrices" }, MATRICES.map(([name, , symbol]) => editableMatrix(symbol, matrices[name], {
        rowNames: name === "states" ? matrices.states.map((_, index) => `h${subscript(index + 1)}`) : null,
        onChange(rows) {
          matrices[name] = rows;
          change({});
        },
      }))),
      make("div", { class: "toolbar" },
        segmentedControl("Query from", matrices.states.map((_, index) => [index + 1, `h${subscript(index + 1)}`]), query(), (number) => change({ query: number })),
        sizeField("States", "states", matrices.states.length, MAX_STATES),
        sizeField("Width of h", "width", matrices.states[0].length, MAX_WIDTH),
        sizeField("Width of q and k", "inner", matrices.to_query.length, MAX_WIDTH),
        sizeField("Width of v", "outer", matrices.to_value.length, MAX_WIDTH)));
  }

  onThemeChange(() => shown && show(shown), signal);
  showInputs();
  body.replaceChildren(
    make("div", { class: "toolbar" },
      segmentedControl("Score function", SCORES.map(([name, formula]) => [name, formula]), score(), (name) => change({ score: name })),
      segmentedControl("Weights", SELECTIONS.map(([name, label]) => [name, label]), selection(), (choice) => change({ choice })),
      gamma, copyLinkButton()),
    inputs, result.element);
  load();
}

const positiveNumber = (text) => (Number(text) > 0 ? Number(text) : DEFAULTS.gamma);
const subscript = (number) => [...String(number)].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]).join("");
