// A search step by step: its tree with playback controls, the candidates of the current step, and the outputs.

import { make } from "./dom.js";
import { button, sliderField } from "./controls.js";
import { cssColour } from "./colours.js";
import { fileName, savePng, saveSvg, withComputedStyle } from "./download.js";
import { icon } from "./icons.js";
import { candidateTable, searchTree } from "./search-tree.js";
import { formatScore, outputText } from "./words.js";

const MILLISECONDS_PER_STEP = 900;
/** Percent. Narrow screens scroll instead of making the tokens smaller than MIN_PHONE_ZOOM. */
const MIN_ZOOM = 15, MIN_PHONE_ZOOM = 85;
const NARROW_SCREEN = 832;
/** Maximum height of the tree as a fraction of the window, as in the style sheet. */
const TREE_HEIGHT = 0.74;

/**
 * response: { tree, outputs, length_counts_end }, as from /api/search/tree
 * options: step (the step to show first; default: the last), onStep(step), called with null for the last step,
 *   onSelect(tokens), called with the tokens up to the node that the user selects; default: nodes cannot be selected
 *   keys: the element whose arrow keys change the step; default: the drawing; signal: ends the playback
 */
export function searchPlayer(response, { step: wantedStep, onStep, onSelect, keys, signal }) {
  const tree = searchTree(response.tree, onSelect);
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
    onStep?.(step === tree.last ? null : step);
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
  signal?.addEventListener("abort", pause);
  slider.addEventListener("input", () => {
    pause();
    showStep(Number(slider.value), true);
  });
  (keys ?? scroller).addEventListener("keydown", (event) => {
    // The key has moved the focus from node to node, or belongs to a control.
    if (event.defaultPrevented || event.target.closest?.("input, button, summary")) return;
    const current = Number(slider.value);
    if (keys && event.key === " ") {
      event.preventDefault();
      playButton.click();
    }
    const next = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: tree.last }[event.key];
    if (next === undefined || next < 0 || next > tree.last) return;
    event.preventDefault();
    pause();
    showStep(next, true);
  });
  setPlayButton("play", "Play");
  const firstStep = Number(wantedStep ?? tree.last);
  requestAnimationFrame(() => {
    fit();
    showStep(Math.min(Math.max(firstStep || 0, 0), tree.last), true);
  });
  return make("div", { class: "search-player" },
    make("div", { class: "toolbar playback" }, playButton, slider, stepLabel),
    scroller,
    make("div", { class: "toolbar spread tree-tools" }, make("div", { class: "toolbar" }, zoom, button("Fit", fit)),
      make("div", { class: "downloads" },
        button("SVG", () => saveSvg(withComputedStyle(tree.svg), name), { iconName: "save", title: "Download as SVG" }),
        button("PNG", () => savePng(withComputedStyle(tree.svg), name, cssColour("--card")), { iconName: "save", title: "Download as PNG" }))),
    legend(onSelect),
    make("div", { class: "two uneven" },
      make("section", { class: "card" }, make("h2", {}, "Outputs"), outputs, outputsLater,
        make("p", { class: "note" }, `END ${response.length_counts_end ? "counts" : "does not count"} in the length of an output.`)),
      make("section", { class: "card" }, candidatesTitle, candidates)));
}

function legend(onSelect) {
  const entries = [["kept", "kept"], ["finished", "finished"], ["stopped", "stopped: the search had ended"], ["dropped", "dropped"], ["wins", "best output, known after the last step"]];
  return make("div", {},
    make("ul", { class: "key" }, entries.map(([name, text]) => make("li", {}, make("i", { class: name }), text))),
    make("p", { class: "note tree-note" }, "Below a token: its probability, then Σ log p of the output up to it, and the score, which is Σ log p / length^penalty."
      + (onSelect ? " Select a token to decode from there." : "")));
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
