// Label: what a text is, or what each of its words is, and how sure that is.

import { make, say } from "../shared/dom.js";
import { button, linkButton, runChoice } from "../shared/controls.js";
import { latest, patient } from "../shared/latest.js";
import { language } from "../shared/runs.js";
import { ask } from "../shared/server.js";
import { empty, heading, stage } from "../shared/states.js";
import { typed } from "../shared/typed.js";
import { percent } from "../shared/words.js";

const SHOWN = 12;
const EXAMPLES = ["Das gefällt mir.", "I like it.", "Ça me plaît."];

export const label = {
  name: "label",
  title: "Label",
  available: (catalogue) => catalogue.of("labels").length > 0,
  takes: (catalogue) => catalogue.of("labels"),
  show(place, context) {
    const { settings, signal, catalogue } = context;
    const runs = catalogue.of("labels");
    let run = catalogue.named(runs, settings.run);
    const result = stage({ class: "stage output" });
    const question = latest(signal);
    const later = patient(look, 160);
    const source = typed("Text", settings.text ?? "", {
      most: catalogue.limits.characters, placeholder: "Type or paste a text …",
      changed(text) {
        context.keep({ text, run: run.name });
        later();
      },
    });

    function look() {
      const text = source.input.value;
      if (!text.trim()) {
        question.drop();
        result.show(empty("Its label appears here while you type.",
          make("div", { class: "examples" }, EXAMPLES.map((words) => button(words, () => source.put(words))))));
        return;
      }
      result.wait("Reading …");
      question((inner) => ask("/api/label", { run: run.name, texts: [text], every: true }, { signal: inner }), {
        found: ({ labels }) => present(labels[0], text), failed: (error) => result.fail(error, look),
      });
    }

    function present(labels, text) {
      const words = text.trim().split(/\s+/), tags = labels[0].label.split(/\s+/);
      result.show(tags.length > 1 && tags.length === words.length ? tagged(words, tags, labels[0].probability) : shares(labels));
      say(`${labels[0].label}, ${percent(labels[0].probability)}`);
    }

    place.append(
      heading("Label", "Every label with its probability, while you type.", runChoice(context, runs, run, (next) => {
        run = next;
        context.keep({ run: run.name });
        look();
      })),
      make("div", { class: "panes" },
        make("div", { class: "card pane" },
          make("div", { class: "pane-head" }, make("h2", {}, source.title, "Text"), button("Clear", () => source.put(""), { kind: "quiet" })), source.place),
        make("div", { class: "card pane" }, make("div", { class: "pane-head" }, make("h2", {}, "Labels"), linkButton()), result.place)));
    look();
  },
};

/** "de" may be a label; if all of them are languages, people read their names. */
function spelled(name, all) {
  return all.every((one) => /^[a-z]{2,3}$/.test(one) && language(one) !== one) ? `${language(name)} (${name})` : name;
}

function shares(labels) {
  const names = labels.map((one) => one.label);
  return make("div", {}, make("ul", { class: "shares" }, labels.slice(0, SHOWN).map((one, place) => make("li", { class: place ? null : "top" },
    make("span", { dir: "auto" }, spelled(one.label, names)),
    make("span", { class: "share", vars: { share: one.probability }, "aria-hidden": "true" }, make("i")),
    make("span", { class: "percent" }, percent(one.probability))))),
  labels.length > SHOWN && make("p", { class: "note" }, `and ${labels.length - SHOWN} labels that are less likely`));
}

function tagged(words, tags, probability) {
  return make("div", {},
    make("p", { class: "words tagged" }, words.map((word, place) => make("span", { class: "tagged-word" }, make("span", {}, word), make("small", {}, tags[place])))),
    make("p", { class: "note" }, `all of them together: ${percent(probability)}`));
}
