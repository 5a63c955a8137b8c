// Translate view: translates while the user types; words show probabilities and alignments and can be replaced.

import { announce, make } from "../components/dom.js";
import { button, selectField } from "../components/controls.js";
import { copyButton, copyLinkButton, runSelect, targetLanguageSelect } from "../shared/fields.js";
import { exampleSentences } from "../shared/examples.js";
import { optionControls } from "../shared/option-controls.js";
import { debounce, latestOnly } from "../shared/scheduling.js";
import { findReverse, languageName, sourceLanguages, targetLanguages } from "../shared/runs.js";
import { request, streamEvents } from "../shared/api-client.js";
import { emptyMessage, resultArea, viewHeader, warningList } from "../shared/panels.js";
import { highlightedInput } from "../shared/highlighted-input.js";
import { textParts } from "../shared/sentences.js";
import { trainingNote } from "../shared/training-note.js";
import { probabilityLegend, splitWords } from "../components/words.js";
import { TranslationOutput } from "./translation-output.js";

const TYPING_PAUSE = 160;
const MAX_OUTPUTS = 4;
/** Texts are translated in parts of about this many characters, so that the first sentences appear early. */
const PART_LENGTH = 1000;
/** Only a single sentence is streamed. The stream is greedy, because beam search revises its output until the end. */
const SINGLE_SENTENCE = /^[^.!?…。！？\n]*[.!?…。！？]*\s*$/u;

export const translate = {
  name: "translate",
  title: "Translate",
  isAvailable: (catalogue) => catalogue.ofKind("translation").length > 0,
  runs: (catalogue) => catalogue.ofKind("translation"),
  render(container, context) {
    const { settings, signal, catalogue } = context;
    const { limits } = catalogue;
    const runs = catalogue.ofKind("translation");
    let run = catalogue.findRun(runs, settings.run);
    const requests = latestOnly(signal);
    const loadLater = debounce(load, TYPING_PAUSE);
    // The first visit starts with an example, so that the page shows a result.
    const initialText = settings.text ?? (context.isFirstVisit ? exampleSentences(run)[0] : null) ?? "";
    const source = highlightedInput("Source text", initialText, {
      // A run that splits texts into sentences translates a long text in several requests.
      limit: () => (run.split_sentences ? limits.characters * limits.texts : limits.characters),
      placeholder: "Enter or paste a text …",
      onChange(text) {
        context.update({ text, run: run.name, begin: null, sentence: null });
        source.highlight([]);
        loadLater();
      },
    });
    const result = resultArea({ class: "result output" });
    const below = make("div", { class: "below" }), note = make("div");
    const sourceHeader = make("div", { class: "language" }), targetHeader = make("div", { class: "language" }), swapField = make("div", { class: "swap" });
    const options = optionControls("translate", context, { getRun: () => run, onChange: loadLater });
    let output = null;

    const sourceLanguage = () => (run.languages.length > 1 ? sourceLanguages(run).find((code) => code === settings.source) ?? run.languages[0].source : undefined);
    const targets = () => targetLanguages(run, sourceLanguage());
    const targetLanguage = () => (run.targets.length > 1 ? targets().find((code) => code === settings.target) ?? targets()[0] : undefined);
    /** The fields of the analysis requests; `translationFields` adds the source language. */
    const requestFields = () => ({ run: run.name, ...(targetLanguage() && { target: targetLanguage() }) });
    const translationFields = () => ({ ...requestFields(), ...(sourceLanguage() && { source: sourceLanguage() }) });

    function updateLanguages() {
      const [pair] = run.languages.length === 1 ? run.languages : [];
      const sources = sourceLanguages(run);
      sourceHeader.replaceChildren(sources.length > 1
        ? selectField("Source language", sources.map((code) => [code, languageName(code)]), sourceLanguage(), (code) => changeLanguages({ source: code }))
        : make("span", {}, pair ? languageName(pair.source) : "Source"));
      targetHeader.replaceChildren(targetLanguageSelect(run, targetLanguage(), (target) => changeLanguages({ target }), targets())
        ?? make("span", {}, pair ? languageName(pair.target) : "Translation"));
      updateSwap(sourceLanguage() ?? pair?.source, targetLanguage() ?? pair?.target);
      note.replaceChildren();
      trainingNote(catalogue, run, signal).then((element) => element && note.replaceChildren(element));
    }

    function changeLanguages(changes) {
      context.update({ ...changes, begin: null });
      updateLanguages();
      loadLater.runNow();
    }

    function updateSwap(from, to) {
      const reverse = findReverse(runs, run, from, to);
      const swap = button("", () => {
        const text = output?.text() || source.input.value;
        location.hash = context.link("translate", { ...settings, ...reverse, text, begin: null, sentence: null });
      }, { kind: "quiet", iconName: "swap", title: reverse ? "Swap the languages and the texts" : "No run translates in the opposite direction" });
      swap.disabled = !reverse;
      swapField.replaceChildren(swap);
    }

    /** Translates the text part by part. Shows each part when it arrives. */
    async function translateText(inner) {
      const text = source.input.value, started = performance.now();
      const parts = run.split_sentences ? textParts(text, Math.min(PART_LENGTH, limits.characters)) : [text];
      const details = { warnings: [] };
      for (const [index, part] of parts.entries()) {
        if (parts.length === 1 && SINGLE_SENTENCE.test(part) && !settings.begin) await streamTranslation(part, inner);
        const fields = options.fields(), count = parts.length > 1 ? 1 : Math.min(fields.beam, MAX_OUTPUTS, limits.alternatives + 1);
        const response = await request("/api/translate", { ...translationFields(), texts: [part], ...fields, n_best: count }, { signal: inner });
        if (inner.aborted) return details;
        details.warnings.push(...response.warnings.filter((warning) => !details.warnings.includes(warning)));
        details.milliseconds = performance.now() - started;
        showPart(response.translations[0].parts, index, parts.length, details);
      }
      return details;
    }

    async function streamTranslation(text, inner) {
      const line = make("p", { class: "words streaming", dir: "auto", "aria-hidden": "true" });
      for await (const { name, content } of streamEvents("/api/translate/stream", { ...translationFields(), texts: [text] }, { signal: inner })) {
        if (name !== "token") continue;
        line.textContent = content.text;
        if (!line.isConnected) result.show(line);
      }
    }

    function load() {
      if (!source.input.value.trim()) {
        requests.cancel();
        output = null;
        below.replaceChildren();
        showExamples();
        return;
      }
      result.showLoading("Translating …");
      requests.run(translateText, { onResult: finish, onError: (error) => result.showError(error, load) });
    }

    function showPart(parts, index, count, details) {
      if (index === 0) {
        output = new TranslationOutput(parts, {
          run, signal, limits, highlightSource, requestFields: () => ({ ...requestFields(), beam: options.fields().beam }),
          onError: (error, retry) => result.showError(error, retry),
          onChange: (begin) => {
            result.clearError();
            context.update({ begin });
            showDetails(details);
          },
          onSelect: (number) => {
            context.update({ sentence: number ? number + 1 : null });
            showDetails(details);
          },
        });
        result.show(output.element);
      } else output.append(parts);
      output.showProgress(index + 1 < count ? `Part ${index + 1} of ${count} is translated …` : "");
      source.markUnknown(unknownSpans(output.sentences));
      showDetails(details);
    }

    function finish() {
      const text = output.text();
      announce(text.length > 300 ? `${output.sentences.length} sentences translated` : text);
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

    /** Other translations, and links to the analysis views for the same sentence and the same output. */
    function showDetails({ warnings, milliseconds }) {
      const { sentences } = output, number = Math.min(Math.max(Number(settings.sentence) || 1, 1), sentences.length);
      const sentence = sentences[number - 1], forced = sentence.output.tokens.slice(0, sentence.forcedLength);
      const changed = forced.length ? { output: sentence.output.text } : {};
      const links = [["attention", "Attention", changed], ["search", "Beam search", { begin: output.forcedTokens(sentence).join(".") }],
        ["inside", "Decoder step", changed], ["compare", "Compare runs", {}]]
        .filter(([name]) => context.hasView(name) && (name !== "attention" || run.attention));
      below.replaceChildren(
        warningList(warnings) ?? "",
        make("div", { class: "below-bar" }, probabilityLegend(),
          make("p", { class: "facts" }, `beam ${options.fields().beam} · ${Math.round(milliseconds)} ms`)),
        sentences.length === 1 ? output.otherOutputs() : "",
        make("div", { class: "toolbar analysis" },
          sentences.length > 1 && selectField("Sentence to analyse", sentences.map((each, index) =>
            [index + 1, `${index + 1}. ${each.source.length > 50 ? `${each.source.slice(0, 49)}…` : each.source}`]), number, (value) => {
            context.update({ sentence: Number(value) });
            showDetails({ warnings, milliseconds });
            below.querySelector(".analysis select")?.focus();
          }),
          make("p", { class: "view-links" }, links.map(([name, title, more]) =>
            make("a", { href: context.link(name, { ...requestFields(), text: sentence.source, beam: options.fields().beam, ...more }) }, title)))));
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
          context.update({ run: run.name, begin: null, source: null, target: null });
          updateLanguages();
          source.updateLimit();
          loadLater.runNow();
        })),
      note,
      make("div", { class: "panes with-swap" },
        make("div", { class: "card pane" },
          make("div", { class: "pane-header" }, make("h2", {}, source.label, " ", sourceHeader),
            button("Clear", () => source.setText(""), { kind: "quiet" })),
          source.element, source.counter),
        swapField,
        make("div", { class: "card pane" },
          make("div", { class: "pane-header" }, make("h2", {}, targetHeader),
            copyButton("Copy", () => output?.text() ?? "", { iconName: "copy", onFailure: () => (output ? output.select() : "Nothing to copy") }),
            copyLinkButton()),
          result.element)),
      make("div", { class: "toolbar" }, options.elements),
      below);
    load();
  },
};
