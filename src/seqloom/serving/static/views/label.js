// Label view: the labels of a text, or of each of its words or characters, with their probabilities.

import { announce, make } from "../components/dom.js";
import { button } from "../components/controls.js";
import { copyLinkButton, runSelect } from "../shared/fields.js";
import { debounce, latestOnly } from "../shared/scheduling.js";
import { languageName } from "../shared/runs.js";
import { request } from "../shared/api-client.js";
import { emptyMessage, resultArea, viewHeader, warningList } from "../shared/panels.js";
import { highlightedInput } from "../shared/highlighted-input.js";
import { formatPercent, probabilityBar } from "../components/words.js";

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
      result.show(warningList(warnings), taggedText(text.trim(), labels[0]) ?? labelList(labels));
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

/** Sequence labelling: the tags below the words or characters of the text; null if the numbers of tags and parts differ. */
function taggedText(text, { label: tagText, probability }) {
  const tags = tagText.split(/\s+/), words = text.split(/\s+/), characters = [...text];
  if (tags.length < 2 || ![words.length, characters.length].includes(tags.length)) return null;
  const hasWordTags = tags.length === words.length;
  return make("div", {},
    make("p", { class: "words tagged", dir: "auto" }, hasWordTags ? words.map((word, index) => tagged(word, tags[index])) : taggedCharacters(characters, tags)),
    make("p", { class: "note" }, `joint probability: ${formatPercent(probability)}`,
      !hasWordTags && words.length > 1 && " · Neighbouring characters with the same label are grouped. Labels of spaces are not shown."));
}

const tagged = (text, tag) => make("span", { class: "tagged-word" }, make("span", {}, text), make("small", {}, tag));

/** The words of a text with a tag for each character. In a word, characters in a row with the same tag share one tag. */
function taggedCharacters(characters, tags) {
  const words = [[]];
  characters.forEach((character, index) => {
    const word = words.at(-1), last = word.at(-1);
    if (/\s/.test(character)) words.push([]);
    else if (last?.tag === tags[index]) last.text += character;
    else word.push({ text: character, tag: tags[index] });
  });
  return words.filter((word) => word.length).map((word) => make("span", { class: "tagged-group" }, word.map(({ text, tag }) => tagged(text, tag))));
}
