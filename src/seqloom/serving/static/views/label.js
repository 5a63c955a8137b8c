// Label view: the labels of a text, or of each of its words, with their probabilities.

import { announce, make } from "../shared/dom.js";
import { button, copyLinkButton, runSelect } from "../shared/controls.js";
import { debounce, latestOnly } from "../shared/scheduling.js";
import { languageName } from "../shared/runs.js";
import { request } from "../shared/api-client.js";
import { emptyMessage, resultArea, viewHeader, warningList } from "../shared/panels.js";
import { highlightedInput } from "../shared/highlighted-input.js";
import { formatPercent, probabilityBar } from "../shared/words.js";

const MAX_LABELS = 12;
const EXAMPLES = ["Das gefällt mir.", "I like it.", "Ça me plaît."];

export const label = {
  name: "label",
  title: "Label",
  isAvailable: (catalogue) => catalogue.ofKind("labels").length > 0,
  runs: (catalogue) => catalogue.ofKind("labels"),
  render(container, context) {
    const { settings, signal, catalogue } = context;
    const runs = catalogue.ofKind("labels");
    let run = catalogue.findRun(runs, settings.run);
    const result = resultArea({ class: "result output" });
    const requests = latestOnly(signal);
    const loadLater = debounce(load, 160);
    const source = highlightedInput("Text", settings.text ?? "", {
      limit: () => catalogue.limits.characters, placeholder: "Enter or paste a text …",
      onChange(text) {
        context.update({ text, run: run.name });
        loadLater();
      },
    });

    function load() {
      const text = source.input.value;
      if (!text.trim()) {
        requests.cancel();
        result.show(emptyMessage("The labels appear here as you type.",
          make("div", { class: "examples" }, EXAMPLES.map((example) => button(example, () => source.setText(example))))));
        return;
      }
      result.showLoading("Labelling …");
      requests.run((inner) => request("/api/label", { run: run.name, texts: [text], every: true }, { signal: inner }), {
        onResult: ({ labels, warnings }) => show(labels[0], text, warnings), onError: (error) => result.showError(error, load),
      });
    }

    function show(labels, text, warnings) {
      const words = text.trim().split(/\s+/), tags = labels[0].label.split(/\s+/);
      result.show(warningList(warnings), tags.length > 1 && tags.length === words.length ? taggedWords(words, tags, labels[0].probability) : labelList(labels));
      announce(`${labels[0].label}, ${formatPercent(labels[0].probability)}`);
    }

    container.append(
      viewHeader("Label", "All labels of a text with their probabilities, updated as you type.", runSelect(context, runs, run, (next) => {
        run = next;
        context.update({ run: run.name });
        load();
      })),
      make("div", { class: "panes" },
        make("div", { class: "card pane" },
          make("div", { class: "pane-header" }, make("h2", {}, source.label, "Text"), button("Clear", () => source.setText(""), { kind: "quiet" })), source.element, source.counter),
        make("div", { class: "card pane" }, make("div", { class: "pane-header" }, make("h2", {}, "Labels"), copyLinkButton()), result.element)));
    load();
  },
};

/** If all labels are language codes, the name of the language and its code: "German (de)". */
function displayLabel(name, all) {
  return all.every((code) => /^[a-z]{2,3}$/.test(code) && languageName(code) !== code) ? `${languageName(name)} (${name})` : name;
}

function labelList(labels) {
  const names = labels.map((each) => each.label);
  return make("div", {}, make("ul", { class: "label-list" }, labels.slice(0, MAX_LABELS).map((each, index) => make("li", { class: index ? null : "top" },
    make("span", { dir: "auto" }, displayLabel(each.label, names)),
    probabilityBar(each.probability),
    make("span", { class: "percent" }, formatPercent(each.probability))))),
  labels.length > MAX_LABELS && make("p", { class: "note" }, `and ${labels.length - MAX_LABELS} less probable labels`));
}

/** Sequence labelling: a tag below each word. */
function taggedWords(words, tags, probability) {
  return make("div", {},
    make("p", { class: "words tagged" }, words.map((word, index) => make("span", { class: "tagged-word" }, make("span", {}, word), make("small", {}, tags[index])))),
    make("p", { class: "note" }, `joint probability: ${formatPercent(probability)}`));
}
