// Beam search view: the search tree step by step, with kept and dropped candidates.

import { make } from "../components/dom.js";
import { button, segmentedControl, sliderField } from "../components/controls.js";
import { copyLinkButton, runSelect, sourceField, targetLanguageSelect } from "../shared/fields.js";
import { exampleSentences } from "../shared/examples.js";
import { searchPlayer } from "../components/search-player.js";
import { optionControls } from "../shared/option-controls.js";
import { debounce, latestOnly } from "../shared/scheduling.js";
import { request, searchFields } from "../shared/api-client.js";
import { emptyMessage, resultArea, viewHeader, warningList } from "../shared/panels.js";
import { displayPiece } from "../components/words.js";

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
    const options = optionControls("search", context, {
      getRun: () => run,
      onChange() {
        context.update({ step: null });
        loadLater();
      },
    });
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
        run: run.name, text: text(), ...searchFields(settings, catalogue), ...options.fields(), n_best: options.fields().beam, begin: begin(),
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
      result.show(warningList(response.warnings), forcedBegin(response), searchPlayer(response, {
        step: settings.step, signal, onStep: (step) => context.update({ step }), onSelect: decodeFrom,
      }));
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
          options.elements,
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
