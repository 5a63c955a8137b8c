// Beam search view: the search tree step by step, with kept and dropped candidates.

import { make } from "../shared/dom.js";
import { button, copyLinkButton, runSelect, segmentedControl, sliderField, targetLanguageSelect, textField } from "../shared/controls.js";
import { exampleSentences } from "../shared/examples.js";
import { icon } from "../shared/icons.js";
import { debounce, latestOnly } from "../shared/scheduling.js";
import { request } from "../shared/api-client.js";
import { emptyMessage, resultArea, viewHeader, warningList } from "../shared/panels.js";
import { candidateTable, searchTree } from "../shared/search-tree.js";
import { formatScore } from "../shared/words.js";

const MILLISECONDS_PER_STEP = 900;
const searchableRuns = (catalogue) => catalogue.ofKind("translation", "language-model");

export const beamSearch = {
  name: "search",
  title: "Beam search",
  isAvailable: (catalogue) => searchableRuns(catalogue).length > 0,
  runs: searchableRuns,
  render(container, context) {
    const { settings, signal, catalogue } = context;
    const runs = searchableRuns(catalogue);
    let run = catalogue.findRun(runs, settings.run);
    const result = resultArea();
    const requests = latestOnly(signal);
    const loadLater = debounce(load, 250);
    const targetField = make("div");
    const beamWidth = () => Math.min(Number(settings.beam ?? 3), catalogue.limits.beam);
    const lengthPenalty = () => Number(settings.exponent ?? 1);
    const text = () => settings.text ?? exampleSentences(run)[0] ?? (run.kind === "language-model" ? "I think" : "");

    function load() {
      if (!text().trim() && run.kind === "translation") {
        requests.cancel();
        result.show(emptyMessage("Enter a sentence to see the beam search for its translation."));
        return;
      }
      result.showLoading("Searching …");
      const body = {
        run: run.name, text: text(), beam: beamWidth(), length_penalty: lengthPenalty(), n_best: beamWidth(),
        ...(settings.end && { length_counts_end: settings.end === "yes" }),
        ...(run.targets.length > 1 && { target: settings.target ?? run.targets[0] }),
      };
      requests.run((inner) => request("/api/search/tree", body, { signal: inner }), {
        onResult: (response) => result.show(warningList(response.warnings), ...playback(response, settings, context, signal)),
        onError: (error) => result.showError(error, load),
      });
    }

    function updateTargetField() {
      targetField.replaceChildren(targetLanguageSelect(run, settings.target ?? run.targets[0], (target) => {
        context.update({ target, step: null });
        load();
      }) ?? "");
    }
    updateTargetField();
    container.append(
      viewHeader("Beam search", "At each step the search keeps the best continuations and drops the others. The width of a line shows the probability of its token.",
        runSelect(context, runs, run, (next) => {
          run = next;
          context.update({ run: run.name, step: null, target: null });
          updateTargetField();
          load();
        })),
      make("div", { class: "inputs" },
        textField("Source text", text(), (value) => {
          context.update({ text: value, run: run.name, step: null });
          loadLater();
        }, { maxLength: catalogue.limits.characters }), make("div", { class: "toolbar" }, targetField, copyLinkButton()),
        make("div", { class: "toolbar wide" },
          sliderField("Beam width", { min: 1, max: catalogue.limits.beam, value: beamWidth() }, (beam) => {
            context.update({ beam, step: null });
            loadLater();
          }),
          sliderField("Length penalty", { min: 0, max: 2, step: 0.1, value: lengthPenalty(), format: (value) => value.toFixed(1) }, (value) => {
            context.update({ exponent: value, step: null });
            loadLater();
          }),
          segmentedControl("Length", [["", "as in the run"], ["no", "without END"], ["yes", "with END"]], settings.end ?? "", (end) => {
            context.update({ end: end || null, step: null });
            loadLater();
          }),
          make("p", { class: "note" }, "score = log p / length^penalty. 0 favours short outputs; 1 ranks by the mean log p per token."))),
      result.element);
    load();
  },
};

/** The search tree with playback controls, the candidates of the current step, and the outputs. */
function playback(response, settings, context, signal) {
  const tree = searchTree(response.tree);
  const scroller = make("div", { class: "scroll card tree-scroll", tabindex: "0", role: "group", "aria-label": "Search tree" }, tree.svg);
  const stepLabel = make("output", { class: "step-label" });
  const candidates = make("div", { class: "scroll candidates", tabindex: "0", role: "region", "aria-label": "Candidates of the step" });
  const candidatesTitle = make("h2");
  const slider = make("input", { type: "range", min: 0, max: tree.last, step: 1, "aria-label": "Step" });
  const playButton = button("", () => (timer ? pause() : play()), { kind: "round", title: "Play" });
  let timer = 0;

  function showStep(step, scroll) {
    slider.value = step;
    stepLabel.textContent = step ? `step ${step} of ${tree.last}` : "before step 1";
    tree.showStep(step, scroll ? scroller : null);
    candidatesTitle.textContent = step ? `All ${response.tree.steps[step - 1].length} candidates of step ${step}` : "Candidates";
    candidates.replaceChildren(candidateTable(response.tree, step));
    context.update({ step: step === tree.last ? null : step });
  }
  function setPlayButton(iconName, title) {
    playButton.replaceChildren(icon(iconName, 18));
    playButton.title = title;
    playButton.setAttribute("aria-label", title);
  }
  function pause() {
    clearInterval(timer);
    timer = 0;
    setPlayButton("play", "Play");
  }
  function play() {
    if (Number(slider.value) === tree.last) showStep(0, true);
    setPlayButton("pause", "Pause");
    timer = setInterval(() => {
      if (!scroller.isConnected || Number(slider.value) >= tree.last) pause();
      else showStep(Number(slider.value) + 1, true);
    }, MILLISECONDS_PER_STEP);
  }
  signal.addEventListener("abort", pause);
  slider.addEventListener("input", () => {
    pause();
    showStep(Number(slider.value), true);
  });
  scroller.addEventListener("keydown", (event) => {
    const current = Number(slider.value);
    const next = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: tree.last }[event.key];
    if (next === undefined || next < 0 || next > tree.last) return;
    event.preventDefault();
    pause();
    showStep(next, true);
  });
  setPlayButton("play", "Play");
  const firstStep = settings.step === undefined || settings.step === null ? tree.last : Number(settings.step);
  requestAnimationFrame(() => showStep(Math.min(Math.max(firstStep || 0, 0), tree.last), true));
  return [
    make("div", { class: "toolbar playback" }, playButton, slider, stepLabel),
    scroller,
    legend(),
    make("div", { class: "two uneven" },
      make("section", { class: "card" }, make("h2", {}, "Outputs"), outputTable(response),
        make("p", { class: "note" }, `END ${response.length_counts_end ? "counts" : "does not count"} in the length of an output.`)),
      make("section", { class: "card" }, candidatesTitle, candidates)),
  ];
}

function legend() {
  const entries = [["kept", "kept"], ["finished", "finished"], ["stopped", "stopped: the search had ended"], ["dropped", "dropped"], ["wins", "best output"]];
  return make("ul", { class: "key" }, entries.map(([name, text]) => make("li", {}, make("i", { class: name }), text)));
}

function outputTable(response) {
  const rows = response.outputs.map((output, index) => make("tr", {},
    make("td", {}, index + 1),
    make("td", {}, formatScore(output.score, 3)),
    make("td", {}, formatScore(output.log_probabilities.reduce((sum, log) => sum + (log ?? -Infinity), 0))),
    make("td", { dir: "auto" }, output.text, output.finished ? "" : make("span", { class: "note" }, " without END"))));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Outputs" }, make("table", { class: "outputs" },
    make("thead", {}, make("tr", {}, ["", "Score", "log p", "Text"].map((text) => make(text ? "th" : "td", text ? { scope: "col" } : {}, text)))),
    make("tbody", {}, rows)));
}
