// Inside: one step of a decoder, as lectures draw it, with its numbers.

import { make } from "../shared/dom.js";
import { choice, linkButton, runChoice, segments, sentence, targetChoice } from "../shared/controls.js";
import { onColours } from "../shared/colour.js";
import { examplesFor } from "../shared/examples.js";
import { latest, patient } from "../shared/latest.js";
import { lookPicture, looksOf } from "../shared/look.js";
import { language } from "../shared/runs.js";
import { ask } from "../shared/server.js";
import { empty, heading, stage } from "../shared/states.js";
import { story } from "../shared/story.js";
import { percent, readable } from "../shared/words.js";
import { lecture } from "./lecture.js";

const speakers = (catalogue) => catalogue.of("translation", "language-model", "labels");

export const inside = {
  name: "inside",
  title: "Inside",
  available: () => true,
  takes: speakers,
  show(place, context) {
    const { settings } = context;
    const body = make("div", { class: "inside-body" });
    const some = speakers(context.catalogue).length > 0;
    function fill() {
      if (settings.of === "lecture" || !some) lecture(body, context);
      else ofRun(body, context);
    }
    place.append(
      heading("Inside", "One step, laid open: what is asked, what answers, how much of it is read, and what comes of it.",
        some && segments("Of", [["run", "A run"], ["lecture", "The lecture’s example"]], settings.of ?? "run", (of) => {
          context.keep({ of });
          fill();
        })),
      body);
    fill();
  },
};

function ofRun(body, context) {
  const { settings, signal, catalogue } = context;
  const runs = speakers(catalogue);
  let run = catalogue.named(runs, settings.run);
  const result = stage({ class: "stage told-stage" });
  const question = latest(signal);
  const later = patient(look, 250);
  const into = make("div");
  const text = () => settings.text ?? examplesFor(run)[0] ?? (run.kind === "language-model" ? "I think that" : "");
  let shown = null;

  function look() {
    if (!text().trim() && run.kind !== "language-model") {
      question.drop();
      result.show(empty("Give it a sentence, and choose a step."));
      return;
    }
    result.wait("Laying it open …");
    const request = {
      run: run.name, text: text(), step: Number(settings.step ?? 1),
      ...(settings.layer && { layer: Number(settings.layer) }), ...(settings.head && { head: Number(settings.head) }),
      ...(run.targets.length > 1 && { target: settings.target ?? run.targets[0] }),
    };
    question((inner) => ask("/api/explain", request, { signal: inner }), {
      found: ({ explanation }) => present((shown = explanation)), failed: (error) => result.fail(error, look),
    });
  }

  function change(changes) {
    context.keep(changes);
    look();
  }

  function present(explanation) {
    const looks = looksOf(explanation);
    const chosen = looks.find((one) => one.chapter === settings.look) ?? looks.at(-1);
    result.show(
      make("div", { class: "bar spread" }, steps(explanation, (step) => change({ step })), linkButton()),
      make("div", { class: "bar" },
        looks.length > 1 && segments("Look", looks.map((one) => [one.chapter, one.chapter.replace(/^layer \d+: /, "")]), chosen.chapter, (name) => {
          context.keep({ look: name });
          present(explanation);
        }),
        run.layers > 1 && choice("Layer", numbers(run.layers), explanation.layer ?? run.layers, (layer) => change({ layer, look: null })),
        run.heads > 1 && choice("Head", numbers(run.heads), explanation.head ?? 1, (head) => change({ head }))),
      make("div", { class: "laid-open" },
        chosen ? make("div", { class: "card scroll", tabindex: "0", role: "group", "aria-label": "The look" }, lookPicture(chosen.parts, chosen.labels))
          : make("div", { class: "card" }, empty(`${run.name} has no attention: all it knows of the text is in its state.`)),
        readout(explanation)),
      make("section", { class: "card" }, make("h2", {}, "Every value, in order"), story(explanation)));
  }

  onColours(() => shown && present(shown), signal);
  function offer() {
    into.replaceChildren(targetChoice(run, settings.target ?? run.targets[0], language, (target) => change({ target })) ?? "");
  }
  offer();
  body.replaceChildren(
    make("div", { class: "asks" },
      sentence("Text", text(), (words) => {
        context.keep({ text: words, run: run.name, step: null });
        later();
      }, { most: catalogue.limits.characters }),
      runChoice(context, runs, run, (next) => {
        run = next;
        context.keep({ run: run.name, step: null, layer: null, head: null, look: null, target: null });
        offer();
        look();
      }), into),
    result.place);
  look();
}

const numbers = (count) => Array.from({ length: count }, (_, place) => [place + 1, place + 1]);

/** The output, a step for each piece. */
function steps(explanation, choose) {
  return make("div", { class: "steps", role: "group", "aria-label": "Steps" }, explanation.output.map((piece, place) =>
    make("button", {
      type: "button", "aria-pressed": String(place + 1 === explanation.step), on: { click: () => choose(place + 1) },
      "aria-label": `Step ${place + 1}: ${readable(piece)}`,
    }, make("small", {}, place + 1), readable(piece))));
}

/** What comes out: the likeliest tokens. */
function readout({ best, answer, previous }) {
  return make("section", { class: "card readout" },
    make("h2", {}, "What it says"),
    previous && make("p", { class: "note" }, `after “${previous.piece === "<s>" ? "the start" : readable(previous.piece)}”`),
    make("ul", {}, best.map((one) => make("li", { "aria-current": answer && one.id === answer.id ? "true" : null },
      make("span", { dir: "auto" }, readable(one.piece)),
      make("span", { class: "share", vars: { share: one.probability }, "aria-hidden": "true" }, make("i")),
      make("span", { class: "percent" }, percent(one.probability))))));
}
