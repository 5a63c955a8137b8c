// A worked example of attention with small integers, for every score function.

import { make } from "../shared/dom.js";
import { segmentedControl } from "../shared/controls.js";
import { onThemeChange } from "../shared/colours.js";
import { latestOnly } from "../shared/scheduling.js";
import { attentionDiagram, findAttentions } from "../shared/attention-diagram.js";
import { request } from "../shared/api-client.js";
import { resultArea } from "../shared/panels.js";
import { stepValues } from "../shared/step-values.js";
import { formatNumber } from "../shared/vector.js";

/** Name in the API, formula, and what the example shows with this score. */
const SCORES = [
  ["dot", "q · k", "Dot product, as in the lecture. The scores are so far apart that the softmax puts all weight on the largest one."],
  ["identity", "h · h", "Without projection matrices the states are compared directly. h₂ has the largest score with itself."],
  ["sqrt", "q · k / √d", "Scaled by √2, the largest score still leads by 143. With wide vectors this scaling keeps the softmax from saturating."],
  ["width", "q · k / d", "Scaled by d, no key can take all the weight when vectors are wide. Here d is only 2."],
  ["bilinear", "hᵀ W h", "One matrix W = Wqᵀ Wk replaces the two projections. The scores are identical."],
  ["nonlinear", "σ(q) · σ(k)", "The sigmoid keeps query and key values between 0 and 1, so the scores are close and every key gets some weight."],
  ["additive", "v · tanh(Wq h + Wk h)", "A small feed-forward network. These values saturate its tanh, so all keys get the same score."],
  ["rbf", "−‖q − k‖²", "Negative squared distance. The nearest key gets the largest score; it is the same key as for the dot product."],
];

export function renderLectureExample(body, context) {
  const { settings, signal } = context;
  const requests = latestOnly(signal);
  const result = resultArea({ class: "result step-result" });
  let shown = null;

  function load() {
    const score = SCORES.some(([name]) => name === settings.score) ? settings.score : "dot";
    const choice = settings.choice === "argmax" ? "argmax" : "softmax";
    result.showLoading("Computing …");
    requests.run((inner) => request(`/api/explain/lecture?score=${score}&choice=${choice}`, undefined, { signal: inner }), {
      onResult: ({ explanation }) => show((shown = [explanation, score])), onError: (error) => result.showError(error, load),
    });
  }

  function show([explanation, score]) {
    const [attention] = findAttentions(explanation);
    const [, , remark] = SCORES.find(([name]) => name === score);
    const findPart = (name) => explanation.parts.find((part) => part.name === name);
    result.show(
      make("p", { class: "remark", role: "status" }, remark),
      make("div", { class: "step-layout" },
        make("div", { class: "card scroll", tabindex: "0", role: "group", "aria-label": "Attention diagram" }, attentionDiagram(attention.values, attention.labels)),
        make("section", { class: "card example-inputs" }, make("h2", {}, "Inputs"),
          ["states", "to queries", "to keys", "to values"].map((name) => matrixTable(findPart(name))))),
      make("section", { class: "card" }, make("h2", {}, "All values in order of computation"), stepValues(explanation)));
  }

  onThemeChange(() => shown && show(shown), signal);
  body.replaceChildren(
    make("div", { class: "toolbar" },
      segmentedControl("Score function", SCORES.map(([name, formula]) => [name, formula]), settings.score ?? "dot", (score) => {
        context.update({ score });
        load();
      }),
      segmentedControl("Weights", [["softmax", "softmax"], ["argmax", "argmax"]], settings.choice ?? "softmax", (choice) => {
        context.update({ choice });
        load();
      })),
    result.element);
  load();
}

/** A small matrix in brackets, with its name. */
function matrixTable({ formula, values, labels }) {
  const hasRowNames = labels[0]?.startsWith("h");
  return make("div", { class: "named-matrix" }, make("b", {}, formula),
    make("table", { class: "matrix" }, make("tbody", {}, values.map((row, index) => make("tr", {},
      hasRowNames && make("th", { scope: "row" }, labels[index]),
      row.map((value) => make("td", {}, formatNumber(value))))))));
}
