// Decoder step view: one step of a decoder as a diagram, with every intermediate value.

import { make } from "../components/dom.js";
import { button, segmentedControl, selectField } from "../components/controls.js";
import { copyLinkButton, runSelect, sourceField, targetLanguageSelect } from "../shared/fields.js";
import { onThemeChange } from "../components/colours.js";
import { exampleSentences } from "../shared/examples.js";
import { debounce, latestOnly } from "../shared/scheduling.js";
import { attentionDiagram, findAttentions, MAX_DRAWN_TOKENS } from "../shared/attention-diagram.js";
import { request, searchFields } from "../shared/api-client.js";
import { emptyMessage, resultArea, viewHeader, warningList } from "../shared/panels.js";
import { stepValues } from "../shared/step-values.js";
import { displayPiece, enableRovingFocus, formatPercent, probabilityBar } from "../components/words.js";
import { renderLectureExample } from "./lecture-example.js";
import { renderSoftLookup } from "./soft-lookup.js";

const explainableRuns = (catalogue) => catalogue.ofKind("translation", "language-model", "labels");

export const decoderStep = {
  name: "inside", // part of existing links
  title: "Decoder step",
  isAvailable: () => true,
  runs: explainableRuns,
  render(container, context) {
    const { settings } = context;
    const body = make("div", { class: "step-body" });
    const hasRuns = explainableRuns(context.catalogue).length > 0;
    function renderBody() {
      if (settings.of === "lookup") renderSoftLookup(body, context);
      else if (settings.of === "lecture" || !hasRuns) renderLectureExample(body, context);
      else renderRunStep(body, context);
    }
    container.append(
      viewHeader("Decoder step", "Every value of one decoder step: query, keys, scores, attention weights, context and output probabilities.",
        segmentedControl("Show", [...(hasRuns ? [["run", "A run"]] : []), ["lecture", "Worked example"], ["lookup", "Soft lookup"]], settings.of ?? (hasRuns ? "run" : "lecture"), (of) => {
          context.update({ of });
          renderBody();
        })),
      body);
    renderBody();
  },
};

function renderRunStep(body, context) {
  const { settings, signal, catalogue } = context;
  const runs = explainableRuns(catalogue);
  let run = catalogue.findRun(runs, settings.run);
  const result = resultArea({ class: "result step-result" });
  const requests = latestOnly(signal);
  const loadLater = debounce(load, 250);
  const targetField = make("div");
  const source = sourceField("Source text", settings.text ?? exampleSentences(run)[0] ?? (run.kind === "language-model" ? "I think that" : ""), {
    settings, getRun: () => run, limit: catalogue.limits.characters,
    onChange(changes) {
      context.update({ ...changes, run: run.name, step: null, output: null });
      loadLater();
    },
  });
  const text = () => source.sentence();
  let shown = null;

  function load() {
    if (!text().trim() && run.kind !== "language-model") {
      requests.cancel();
      result.show(emptyMessage("Enter a sentence and select a step."));
      return;
    }
    result.showLoading("Computing the step …");
    const body = {
      run: run.name, text: text(), step: Number(settings.step ?? 1),
      ...(settings.layer && { layer: Number(settings.layer) }), ...(settings.head && { head: Number(settings.head) }),
      ...(run.targets.length > 1 && { target: settings.target ?? run.targets[0] }),
      ...(settings.output && { output: settings.output }), ...searchFields(settings, catalogue),
    };
    requests.run((inner) => request("/api/explain", body, { signal: inner }), {
      onResult: ({ explanation, warnings }) => show((shown = { ...explanation, warnings })), onError: (error) => result.showError(error, load),
    });
  }

  function change(changes) {
    context.update(changes);
    load();
  }

  function show(explanation) {
    const hadFocus = result.element.querySelector(".steps")?.contains(document.activeElement);
    const attentions = findAttentions(explanation);
    const chosen = attentions.find((attention) => attention.section === settings.look) ?? attentions.at(-1);
    result.show(
      warningList(explanation.warnings),
      settings.output && make("p", { class: "forced-output" }, "The output is fixed: ", make("b", { dir: "auto" }, settings.output),
        button("Use the model’s output", () => change({ output: null, step: null }), { kind: "quiet" })),
      make("div", { class: "toolbar spread" }, stepButtons(explanation, (step) => change({ step })), copyLinkButton()),
      make("div", { class: "toolbar" },
        attentions.length > 1 && segmentedControl("Attention", attentions.map(({ section }) => [section, section.replace(/^layer \d+: /, "")]), chosen.section, (section) => {
          context.update({ look: section });
          show(explanation);
        }),
        run.layers > 1 && selectField("Layer", numberOptions(run.layers), explanation.layer ?? run.layers, (layer) => change({ layer, look: null })),
        run.heads > 1 && selectField("Head", numberOptions(run.heads), explanation.head ?? 1, (head) => change({ head }))),
      make("div", { class: "step-layout" },
        chosen ? make("div", { class: "card scroll", tabindex: "0", role: "group", "aria-label": "Attention diagram" }, attentionDiagram(chosen.values, chosen.labels),
          chosen.labels.length > MAX_DRAWN_TOKENS && make("p", { class: "note" }, `The diagram shows the ${MAX_DRAWN_TOKENS} of ${chosen.labels.length} source tokens with the largest weights.`))
          : make("div", { class: "card" }, emptyMessage(`${run.name} has no attention. Its decoder uses only its state.`)),
        nextTokens(explanation)),
      make("section", { class: "card" }, make("h2", {}, "All values in order of computation"), stepValues(explanation)));
    // The buttons are new elements. The focus stays on the button of the current step.
    if (hadFocus) result.element.querySelector(".steps [aria-pressed='true']")?.focus();
  }

  onThemeChange(() => shown && show(shown), signal);
  function updateTargetField() {
    targetField.replaceChildren(targetLanguageSelect(run, settings.target ?? run.targets[0], (target) => change({ target })) ?? "");
  }
  updateTargetField();
  body.replaceChildren(
    make("div", { class: "inputs" },
      source.element,
      runSelect(context, runs, run, (next) => {
        run = next;
        context.update({ run: run.name, step: null, layer: null, head: null, look: null, target: null, output: null });
        updateTargetField();
        source.update();
        load();
      }), targetField),
    result.element);
  load();
}

const numberOptions = (count) => Array.from({ length: count }, (_, index) => [index + 1, index + 1]);

/** A button for each output token. */
function stepButtons(explanation, onSelect) {
  const group = make("div", { class: "steps", role: "group", "aria-label": "Steps" }, explanation.output.map((piece, index) =>
    make("button", {
      type: "button", "aria-pressed": String(index + 1 === explanation.step), on: { click: () => onSelect(index + 1) },
      "aria-label": `Step ${index + 1}: ${displayPiece(piece)}`,
    }, make("small", {}, index + 1), displayPiece(piece))));
  enableRovingFocus(group, "button", group.querySelector("[aria-pressed='true']"));
  return group;
}

/** The most probable tokens; the token of the output is marked. */
function nextTokens({ best, answer, previous }) {
  return make("section", { class: "card next-tokens" },
    make("h2", {}, "Most probable tokens"),
    previous && make("p", { class: "note" }, `after “${previous.piece === "<s>" ? "start" : displayPiece(previous.piece)}”`),
    make("ul", {}, best.map((token) => make("li", { "aria-current": answer && token.id === answer.id ? "true" : null },
      make("span", { dir: "auto" }, displayPiece(token.piece)),
      probabilityBar(token.probability),
      make("span", { class: "percent" }, formatPercent(token.probability))))));
}
