// Beam search view: the search tree step by step, with kept and dropped candidates.

import { make } from "../shared/dom.js";
import { button, copyLinkButton, runSelect, segmentedControl, sliderField, sourceField, targetLanguageSelect } from "../shared/controls.js";
import { exampleSentences } from "../shared/examples.js";
import { cssColour } from "../shared/colours.js";
import { fileName, savePng, saveSvg, withComputedStyle } from "../shared/download.js";
import { icon } from "../shared/icons.js";
import { debounce, latestOnly } from "../shared/scheduling.js";
import { request, searchFields } from "../shared/api-client.js";
import { emptyMessage, resultArea, viewHeader, warningList } from "../shared/panels.js";
import { candidateTable, searchTree } from "../shared/search-tree.js";
import { displayPiece, formatScore, outputText } from "../shared/words.js";

const MILLISECONDS_PER_STEP = 900;
/** Percent. Narrow screens scroll instead of making the tokens smaller than MIN_PHONE_ZOOM. */
const MIN_ZOOM = 15, MIN_PHONE_ZOOM = 85;
const NARROW_SCREEN = 832;
/** Maximum height of the tree as a fraction of the window, as in the style sheet. */
const TREE_HEIGHT = 0.74;
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
    const beamWidth = () => Math.min(Number(settings.beam ?? run.beam ?? 5), catalogue.limits.beam);
    const source = sourceField("Source text", settings.text ?? exampleSentences(run)[0] ?? (run.kind === "language-model" ? "I think" : ""), {
      settings, getRun: () => run, limit: catalogue.limits.characters,
      onChange(changes) {
        context.update({ ...changes, run: run.name, step: null, begin: null });
        loadLater();
      },
    });
    const text = () => source.sentence();
    const penaltySlider = sliderField("Length penalty", { min: 0, max: 2, step: 0.1, value: Number(settings.exponent ?? 1), format: (value) => value.toFixed(1) }, (value) => {
      context.update({ exponent: value, step: null });
      loadLater();
    });
    /** The tokens that every output starts with; from a click on a node, or from a link. */
    const begin = () => (settings.begin ?? "").split(".").filter(Boolean).map(Number);

    function load() {
      if (!text().trim() && run.kind === "translation") {
        requests.cancel();
        result.show(emptyMessage("Enter a sentence to see the beam search for its translation."));
        return;
      }
      result.showLoading("Searching …");
      const body = {
        run: run.name, text: text(), ...searchFields(settings, catalogue), beam: beamWidth(), n_best: beamWidth(), begin: begin(),
        ...(run.targets.length > 1 && { target: settings.target ?? run.targets[0] }),
      };
      requests.run((inner) => request("/api/search/tree", body, { signal: inner }), {
        onResult: show, onError: (error) => result.showError(error, load),
      });
    }

    function show(response) {
      const hadFocus = result.element.contains(document.activeElement);
      // Without a setting, the slider shows the value of the run.
      penaltySlider.querySelector("input").value = response.length_penalty;
      penaltySlider.querySelector("output").textContent = response.length_penalty.toFixed(1);
      result.show(warningList(response.warnings), forcedBegin(response), ...playback(response, settings, context, decodeFrom));
      if (hadFocus) result.element.querySelector(".tree-scroll").focus({ preventScroll: true });
    }

    function decodeFrom(tokens) {
      context.update({ begin: tokens.join(".") || null, step: null });
      load();
    }

    /** Says which tokens the outputs start with, if the user or the link has fixed some. */
    function forcedBegin(response) {
      const count = begin().length;
      if (!count) return null;
      const fixed = response.outputs[0].pieces.slice(0, count).map((piece) => displayPiece(piece)).join(" ");
      return make("p", { class: "forced-output" }, "Every output starts with: ", make("b", { dir: "auto" }, fixed),
        button("Search from the start", () => decodeFrom([]), { kind: "quiet" }));
    }

    function updateTargetField() {
      targetField.replaceChildren(targetLanguageSelect(run, settings.target ?? run.targets[0], (target) => {
        context.update({ target, step: null, begin: null });
        load();
      }) ?? "");
    }
    updateTargetField();
    container.append(
      viewHeader("Beam search", "At each step the search keeps the best continuations and drops the others. The width of a line shows the probability of its token.",
        runSelect(context, runs, run, (next) => {
          run = next;
          context.update({ run: run.name, step: null, target: null, begin: null });
          updateTargetField();
          source.update();
          load();
        })),
      make("div", { class: "inputs" },
        source.element, make("div", { class: "toolbar" }, targetField, copyLinkButton()),
        make("div", { class: "toolbar wide" },
          sliderField("Beam width", { min: 1, max: catalogue.limits.beam, value: beamWidth() }, (beam) => {
            context.update({ beam, step: null });
            loadLater();
          }),
          penaltySlider,
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
function playback(response, settings, context, decodeFrom) {
  const { signal } = context;
  const tree = searchTree(response.tree, decodeFrom);
  const scroller = make("div", { class: "scroll card tree-scroll", tabindex: "0", role: "group", "aria-label": "Search tree" }, tree.svg);
  const stepLabel = make("output", { class: "step-label" });
  const candidates = make("div", { class: "scroll candidates", tabindex: "0", role: "region", "aria-label": "Candidates of the step" });
  const candidatesTitle = make("h2");
  const outputs = outputTable(response), outputsLater = make("p", { class: "facts" }, "The outputs appear after the last step.");
  const name = `search-${fileName(response.outputs[0]?.text ?? "")}`;
  const zoom = sliderField("Zoom", { min: MIN_ZOOM, max: 150, value: 100, format: (percent) => `${percent} %` }, (percent) => tree.zoomTo(percent / 100));
  /** Shows the whole tree if it stays legible on this screen. */
  function fit() {
    const narrowest = innerWidth < NARROW_SCREEN ? MIN_PHONE_ZOOM : MIN_ZOOM;
    const fraction = Math.min(1, (scroller.clientWidth - 16) / tree.width, (TREE_HEIGHT * innerHeight - 16) / tree.height);
    const percent = Math.max(narrowest, Math.floor(100 * fraction));
    zoom.querySelector("input").value = percent;
    zoom.querySelector("output").textContent = `${percent} %`;
    tree.zoomTo(percent / 100);
  }
  const slider = make("input", { type: "range", min: 0, max: tree.last, step: 1, "aria-label": "Step" });
  const playButton = button("", () => (timer ? pause() : play()), { kind: "round", title: "Play" });
  let timer = 0;

  function showStep(step, scroll) {
    slider.value = step;
    stepLabel.textContent = step ? `step ${step} of ${tree.last}` : "before step 1";
    tree.showStep(step, scroll ? scroller : null);
    outputs.hidden = step < tree.last;
    outputsLater.hidden = step === tree.last;
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
    if (event.defaultPrevented) return; // the key has moved the focus from node to node
    const current = Number(slider.value);
    const next = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: tree.last }[event.key];
    if (next === undefined || next < 0 || next > tree.last) return;
    event.preventDefault();
    pause();
    showStep(next, true);
  });
  setPlayButton("play", "Play");
  const firstStep = settings.step === undefined || settings.step === null ? tree.last : Number(settings.step);
  requestAnimationFrame(() => {
    fit();
    showStep(Math.min(Math.max(firstStep || 0, 0), tree.last), true);
  });
  return [
    make("div", { class: "toolbar playback" }, playButton, slider, stepLabel),
    scroller,
    make("div", { class: "toolbar spread tree-tools" }, make("div", { class: "toolbar" }, zoom, button("Fit", fit)),
      make("div", { class: "downloads" },
        button("SVG", () => saveSvg(withComputedStyle(tree.svg), name), { iconName: "save", title: "Download as SVG" }),
        button("PNG", () => savePng(withComputedStyle(tree.svg), name, cssColour("--card")), { iconName: "save", title: "Download as PNG" }))),
    legend(),
    make("div", { class: "two uneven" },
      make("section", { class: "card" }, make("h2", {}, "Outputs"), outputs, outputsLater,
        make("p", { class: "note" }, `END ${response.length_counts_end ? "counts" : "does not count"} in the length of an output.`)),
      make("section", { class: "card" }, candidatesTitle, candidates)),
  ];
}

function legend() {
  const entries = [["kept", "kept"], ["finished", "finished"], ["stopped", "stopped: the search had ended"], ["dropped", "dropped"], ["wins", "best output, known after the last step"]];
  return make("div", {},
    make("ul", { class: "key" }, entries.map(([name, text]) => make("li", {}, make("i", { class: name }), text))),
    make("p", { class: "note tree-note" }, "Below a token: its probability, then Σ log p of the output up to it, and the score, which is Σ log p / length^penalty. "
      + "Select a token to decode from there."));
}

function outputTable(response) {
  const rows = response.outputs.map((output, index) => make("tr", {},
    make("td", {}, index + 1),
    make("td", {}, formatScore(output.score, 3)),
    make("td", {}, formatScore(output.log_probabilities.reduce((sum, log) => sum + (log ?? -Infinity), 0))),
    make("td", { dir: "auto" }, outputText(output), output.finished ? "" : make("span", { class: "note" }, " without END"))));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Outputs" }, make("table", { class: "outputs" },
    make("thead", {}, make("tr", {}, ["", "Score", "log p", "Text"].map((text) => make(text ? "th" : "td", text ? { scope: "col" } : {}, text)))),
    make("tbody", {}, rows)));
}
