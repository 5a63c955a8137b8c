// Translate view: translates while the user types; words show probabilities and alignments and can be replaced.

import { announce, make } from "../shared/dom.js";
import { button, copyLinkButton, runSelect, sliderField, targetLanguageSelect } from "../shared/controls.js";
import { exampleSentences } from "../shared/examples.js";
import { debounce, latestOnly } from "../shared/scheduling.js";
import { languageName } from "../shared/runs.js";
import { request, streamEvents } from "../shared/api-client.js";
import { emptyMessage, resultArea, viewHeader, warningList } from "../shared/panels.js";
import { highlightedInput } from "../shared/highlighted-input.js";
import { probabilityLegend, splitWords } from "../shared/words.js";
import { TranslationOutput } from "./translation-output.js";

const TYPING_PAUSE = 160;
const MAX_OUTPUTS = 4;
/** Only a single sentence is streamed. The stream is greedy, because beam search revises its output until the end. */
const SINGLE_SENTENCE = /^[^.!?…。！？\n]*[.!?…。！？]*\s*$/u;

export const translate = {
  name: "translate",
  title: "Translate",
  isAvailable: (catalogue) => catalogue.ofKind("translation").length > 0,
  runs: (catalogue) => catalogue.ofKind("translation"),
  render(container, context) {
    const { settings, signal, catalogue } = context;
    const runs = catalogue.ofKind("translation");
    let run = catalogue.findRun(runs, settings.run);
    const requests = latestOnly(signal);
    const loadLater = debounce(load, TYPING_PAUSE);
    // The first visit starts with an example, so that the page shows a result.
    const initialText = settings.text ?? (context.isFirstVisit ? exampleSentences(run)[0] : null) ?? "";
    const source = highlightedInput("Source text", initialText, {
      maxLength: catalogue.limits.characters, placeholder: "Enter or paste a text …",
      onChange(text) {
        context.update({ text, run: run.name, begin: null });
        source.highlight([]);
        loadLater();
      },
    });
    const result = resultArea({ class: "result output" });
    const below = make("div", { class: "below" });
    const sourceName = make("span"), targetName = make("span"), targetField = make("div");
    const beam = () => Number(settings.beam ?? run.beam ?? Math.min(5, catalogue.limits.beam));
    let output = null;

    function updateLanguages() {
      const [pair] = run.languages.length === 1 ? run.languages : [];
      sourceName.textContent = pair ? languageName(pair.source) : "Source";
      targetName.textContent = pair ? languageName(pair.target) : "Translation";
      targetField.replaceChildren(targetLanguageSelect(run, settings.target ?? run.targets[0], (target) => {
        context.update({ target, begin: null });
        loadLater.runNow();
      }) ?? "");
    }

    const target = () => (run.targets.length > 1 ? settings.target ?? run.targets[0] : undefined);
    const requestFields = () => ({ run: run.name, ...(target() && { target: target() }) });

    async function translateText(inner) {
      const texts = [source.input.value], started = performance.now();
      if (SINGLE_SENTENCE.test(texts[0]) && !settings.begin) await streamTranslation(texts, inner);
      const width = beam(), count = Math.min(width, MAX_OUTPUTS, catalogue.limits.alternatives + 1);
      const { translations, warnings } = await request("/api/translate", { ...requestFields(), texts, beam: width, n_best: count }, { signal: inner });
      return { ...translations[0], warnings, milliseconds: performance.now() - started };
    }

    async function streamTranslation(texts, inner) {
      const line = make("p", { class: "words streaming", dir: "auto", "aria-hidden": "true" });
      for await (const { name, content } of streamEvents("/api/translate/stream", { ...requestFields(), texts }, { signal: inner })) {
        if (name !== "token") continue;
        line.textContent = content.text;
        if (!line.isConnected) result.show(line);
      }
    }

    function load() {
      below.replaceChildren();
      if (!source.input.value.trim()) {
        requests.cancel();
        showExamples();
        return;
      }
      result.showLoading("Translating …");
      requests.run(translateText, { onResult: show, onError: (error) => result.showError(error, load) });
    }

    function show(translation) {
      output = new TranslationOutput(translation.parts, {
        run, signal, highlightSource, requestFields: () => ({ ...requestFields(), beam: beam() }), onError: (error) => result.showError(error, load),
        onChange: (begin) => {
          context.update({ begin });
          showDetails(translation);
        },
      });
      result.show(output.element);
      source.markUnknown(unknownSpans(translation.parts));
      showDetails(translation);
      announce(translation.text);
      if (settings.begin) output.restore(settings.begin);
    }

    /** The spans of the characters or words of the source that the model does not know. */
    function unknownSpans(parts) {
      let position = 0;
      return parts.flatMap(({ before, source: sentence, unknown }) => {
        const begin = position + before.length;
        position = begin + sentence.length;
        let from = 0;
        return unknown.flatMap((part) => {
          const index = sentence.indexOf(part, from);
          if (index < 0) return [];
          from = index + part.length;
          return [{ begin: begin + index, end: begin + from }];
        });
      });
    }

    /** Highlights words of a sentence in the source text. */
    function highlightSource(number, words) {
      const begin = output.sentences.slice(0, number).reduce((sum, sentence) => sum + sentence.before.length + sentence.source.length, 0)
        + (output.sentences[number]?.before.length ?? 0);
      const spans = splitWords(output.sentences[number]?.source ?? "");
      source.highlight(words.filter((word) => spans[word]).map((word) => ({ begin: begin + spans[word].begin, end: begin + spans[word].end })));
    }

    /** Other translations, and links to the analysis views for the same text. */
    function showDetails(translation) {
      const text = output.sentences[0].source;
      const links = [["attention", "Attention"], ["search", "Beam search"], ["inside", "Decoder step"], ["compare", "Compare runs"]]
        .filter(([name]) => context.hasView(name) && (name !== "attention" || run.attention));
      below.replaceChildren(
        warningList(translation.warnings) ?? "",
        make("div", { class: "below-bar" }, probabilityLegend(),
          make("p", { class: "facts" }, `beam ${beam()} · ${Math.round(translation.milliseconds)} ms`)),
        output.sentences.length === 1 ? output.otherOutputs() : "",
        make("p", { class: "view-links" }, links.map(([name, title]) =>
          make("a", { href: context.link(name, { run: run.name, text, target: target() }) }, title))));
    }

    function showExamples() {
      source.highlight([]);
      result.show(emptyMessage("The translation appears here as you type.",
        make("div", { class: "examples" }, exampleSentences(run).map((example) => button(example, () => source.setText(example))))));
    }

    for (const name of ["keyup", "click"])
      source.input.addEventListener(name, () => output?.highlightAlignedWith(source.input.selectionStart), { signal });
    updateLanguages();
    container.append(
      viewHeader("Translate", "Point at a word to see its probability and the source words it is aligned with. Click a word to replace it.",
        runSelect(context, runs, run, (next) => {
          run = next;
          context.update({ run: run.name, begin: null, target: null });
          updateLanguages();
          loadLater.runNow();
        })),
      make("div", { class: "panes" },
        make("div", { class: "card pane" },
          make("div", { class: "pane-header" }, make("h2", {}, source.label, " ", sourceName), targetField,
            button("Clear", () => source.setText(""), { kind: "quiet" })),
          source.element),
        make("div", { class: "card pane" },
          make("div", { class: "pane-header" }, make("h2", {}, targetName), copyLinkButton()),
          result.element)),
      make("div", { class: "toolbar" }, sliderField("Beam width", { min: 1, max: catalogue.limits.beam, value: beam() }, (width) => {
        context.update({ beam: width, begin: null });
        loadLater();
      })),
      below);
    load();
  },
};
