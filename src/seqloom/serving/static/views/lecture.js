// The example that lectures work out by hand, with every score function in its place.

import { make } from "../shared/dom.js";
import { segments } from "../shared/controls.js";
import { onColours } from "../shared/colour.js";
import { latest } from "../shared/latest.js";
import { lookPicture, looksOf } from "../shared/look.js";
import { ask } from "../shared/server.js";
import { stage } from "../shared/states.js";
import { story } from "../shared/story.js";
import { number } from "../shared/vector.js";

const SCORES = [
  ["dot", "q · k", "The lecture’s own. The products are so far apart that the softmax is as hard as taking the best."],
  ["identity", "h · h", "Without matrices, states are compared as they are: h₂ likes itself best."],
  ["sqrt", "q · k / √d", "Divided by √2 the best is still 143 ahead. With many numbers in a vector, this is what keeps the softmax soft."],
  ["width", "q · k / d", "Divided by d, no key can win all the weight when vectors are wide. These are only 2 wide."],
  ["bilinear", "hᵀ W h", "One matrix, W = Wqᵀ Wk, does what two did: the scores are the same, digit for digit."],
  ["nonlinear", "σ(q) · σ(k)", "Squeezed between 0 and 1, the scores stay close together, and a little of everything is read."],
  ["additive", "v · tanh(Wq h + Wk h)", "A small network. Numbers as large as these saturate its tanh, so that all keys look alike."],
  ["rbf", "−‖q − k‖²", "By distance: the nearest key wins, and it is the same one."],
];

export function lecture(body, context) {
  const { settings, signal } = context;
  const question = latest(signal);
  const result = stage({ class: "stage told-stage" });
  let shown = null;

  function look() {
    const score = SCORES.some(([name]) => name === settings.score) ? settings.score : "dot";
    const choice = settings.choice === "argmax" ? "argmax" : "softmax";
    result.wait("Working it out …");
    question((inner) => ask(`/api/explain/lecture?score=${score}&choice=${choice}`, undefined, { signal: inner }), {
      found: ({ explanation }) => present((shown = [explanation, score])), failed: (error) => result.fail(error, look),
    });
  }

  function present([explanation, score]) {
    const [first] = looksOf(explanation);
    const [, , remark] = SCORES.find(([name]) => name === score);
    const part = (name) => explanation.parts.find((one) => one.name === name);
    result.show(
      make("p", { class: "remark", role: "status" }, remark),
      make("div", { class: "laid-open" },
        make("div", { class: "card scroll", tabindex: "0", role: "group", "aria-label": "The look" }, lookPicture(first.parts, first.labels)),
        make("section", { class: "card givens" }, make("h2", {}, "What is given"),
          ["states", "to queries", "to keys", "to values"].map((name) => bracketed(part(name))))),
      make("section", { class: "card" }, make("h2", {}, "Every value, in order"), story(explanation)));
  }

  onColours(() => shown && present(shown), signal);
  body.replaceChildren(
    make("div", { class: "bar" },
      segments("Score", SCORES.map(([name, words]) => [name, words]), settings.score ?? "dot", (score) => {
        context.keep({ score });
        look();
      }),
      segments("Choose", [["softmax", "softly"], ["argmax", "the best alone"]], settings.choice ?? "softmax", (choice) => {
        context.keep({ choice });
        look();
      })),
    result.place);
  look();
}

/** A small matrix in brackets, under its letter. */
function bracketed({ formula, values, labels }) {
  const named = labels[0]?.startsWith("h");
  return make("div", { class: "lettered" }, make("b", {}, formula),
    make("table", { class: "bracketed" }, make("tbody", {}, values.map((row, place) => make("tr", {},
      named && make("th", { scope: "row" }, labels[place]),
      row.map((one) => make("td", {}, number(one))))))));
}
