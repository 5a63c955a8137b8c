// Fields of the views for runs, languages and texts, and buttons that copy.

import { announce, make, uniqueId } from "../components/dom.js";
import { button, labelledField, selectField } from "../components/controls.js";
import { languageName, runSummary } from "./runs.js";
import { countCharacters, splitSentences } from "./sentences.js";

/** Milliseconds for which a button shows that it has been activated. */
const FEEDBACK_MILLISECONDS = 1600;

/** A list of runs; a single run is shown by its name. */
export function runSelect(context, runs, run, onChange, label = "Run") {
  const summary = make("p", { class: "facts" }, runSummary(run));
  if (runs.length === 1) return make("div", { class: "run" }, make("span", { class: "chip" }, run.name), summary);
  const list = selectField(label, runs.map((each) => [each.name, each.name]), run.name, (name) => {
    const next = context.catalogue.findRun(runs, name);
    summary.textContent = runSummary(next);
    onChange(next);
  });
  return make("div", { class: "run" }, list, summary);
}

/** A list of target languages; null if there is only one. targets: default: all of the run */
export function targetLanguageSelect(run, value, onChange, targets = run.targets) {
  if (run.targets.length < 2) return null;
  return selectField("Target language", targets.map((code) => [code, languageName(code)]), value, onChange);
}

/** The number of characters of a text and their limit, which getLimit() returns. show(text) updates it. */
export function characterCounter(getLimit) {
  const element = make("p", { class: "counter", id: uniqueId("counter") });
  return {
    element,
    show(text) {
      const count = countCharacters(text), limit = getLimit(), isOver = count > limit;
      element.classList.toggle("over", isOver);
      element.textContent = isOver
        ? `${count.toLocaleString("en")} characters: ${(count - limit).toLocaleString("en")} more than the limit of ${limit.toLocaleString("en")}`
        : `${count.toLocaleString("en")} / ${limit.toLocaleString("en")}`;
    },
  };
}

/**
 * A field for the source text of an analysis view. If the run splits texts into sentences and the text has several,
 * a list selects the sentence to analyse.
 * getRun(): the current run; onChange(changes): called with the changed settings `text` or `sentence`
 * Returns { element, sentence(), update() }: sentence() is the selected sentence, update() follows a change of the run.
 */
export function sourceField(label, text, { settings, getRun, limit, onChange }) {
  const area = make("textarea", { class: "text-field source-field", rows: 1, value: text, dir: "auto", spellcheck: "false", autocomplete: "off" });
  const chooser = make("div", { class: "sentence-chooser" }), counter = characterCounter(() => limit);
  let sentences = [];
  const number = () => Math.min(Math.max(Number(settings.sentence) || 1, 1), sentences.length);
  const sentence = () => (sentences.length > 1 ? sentences[number() - 1] : area.value);
  function update() {
    sentences = getRun().split_sentences ? splitSentences(area.value) : [];
    chooser.replaceChildren(sentences.length > 1 ? selectField(`Sentence (${sentences.length})`,
      sentences.map((each, index) => [index + 1, `${index + 1}. ${each.length > 60 ? `${each.slice(0, 59)}…` : each}`]), number(), (value) => {
        onChange({ sentence: Number(value) });
        counter.show(sentence());
      }) : "");
    counter.show(sentence());
  }
  area.addEventListener("input", () => {
    onChange({ text: area.value, sentence: null });
    update();
  });
  area.setAttribute("aria-describedby", counter.element.id);
  update();
  return { element: make("div", { class: "source" }, labelledField(label, area, counter.element), chooser), sentence, update };
}

/** A single line of text. */
export function textField(label, value, onChange, { placeholder = "" } = {}) {
  const input = make("input", {
    type: "text", class: "text-field", value, placeholder, dir: "auto",
    autocomplete: "off", spellcheck: "false", on: { input: () => onChange(input.value) },
  });
  return labelledField(label, input);
}

/**
 * A button that copies a text.
 * getText(): the text to copy; onFailure(): called if the browser does not allow it; returns the feedback for the user
 */
export function copyButton(name, getText, { iconName, onFailure }) {
  const label = make("span", {}, name);
  function showFeedback(text) {
    label.textContent = text;
    announce(text);
    setTimeout(() => (label.textContent = name), FEEDBACK_MILLISECONDS);
  }
  return button(label, () => {
    // Browsers provide the clipboard only to https pages and to localhost.
    const copied = navigator.clipboard?.writeText(getText()) ?? Promise.reject(new Error("no clipboard"));
    copied.then(() => showFeedback("Copied"), () => showFeedback(onFailure()));
  }, { kind: "quiet", iconName });
}

/** Copies the link to the current state. */
export function copyLinkButton() {
  return copyButton("Copy link", () => location.href, { iconName: "link", onFailure: () => "Copy it from the address bar" });
}
