// Search: a beam step by step; what was kept, what was dropped, and why.

import { make } from "../shared/dom.js";
import { button, linkButton, runChoice, sentence, slider, targetChoice } from "../shared/controls.js";
import { examplesFor } from "../shared/examples.js";
import { icon } from "../shared/icons.js";
import { latest, patient } from "../shared/latest.js";
import { language } from "../shared/runs.js";
import { ask } from "../shared/server.js";
import { empty, heading, stage } from "../shared/states.js";
import { candidates, tree } from "../shared/tree.js";
import { signed } from "../shared/words.js";

const PACE = 900;
const speakers = (catalogue) => catalogue.of("translation", "language-model");

export const search = {
  name: "search",
  title: "Search",
  available: (catalogue) => speakers(catalogue).length > 0,
  takes: speakers,
  show(place, context) {
    const { settings, signal, catalogue } = context;
    const runs = speakers(catalogue);
    let run = catalogue.named(runs, settings.run);
    const result = stage();
    const question = latest(signal);
    const later = patient(look, 250);
    const into = make("div");
    const width = () => Math.min(Number(settings.beam ?? 3), catalogue.limits.beam);
    const exponent = () => Number(settings.exponent ?? 1);
    const text = () => settings.text ?? examplesFor(run)[0] ?? (run.kind === "language-model" ? "I think" : "");

    function look() {
      if (!text().trim() && run.kind === "translation") {
        question.drop();
        result.show(empty("Give it a sentence, and follow the search for its translation."));
        return;
      }
      result.wait("Searching …");
      const body = {
        run: run.name, text: text(), beam: width(), length_exponent: exponent(), n_best: width(),
        ...(run.targets.length > 1 && { target: settings.target ?? run.targets[0] }),
      };
      question((inner) => ask("/api/search/tree", body, { signal: inner }), {
        found: (found) => result.show(...player(found, settings, context, signal)),
        failed: (error) => result.fail(error, look),
      });
    }

    function offer() {
      into.replaceChildren(targetChoice(run, settings.target ?? run.targets[0], language, (target) => {
        context.keep({ target, step: null });
        look();
      }) ?? "");
    }
    offer();
    place.append(
      heading("Search", "At every step the best continuations are kept, and the rest is dropped. The wider a line, the likelier its token.",
        runChoice(context, runs, run, (next) => {
          run = next;
          context.keep({ run: run.name, step: null, target: null });
          offer();
          look();
        })),
      make("div", { class: "asks" },
        sentence("Text", text(), (words) => {
          context.keep({ text: words, run: run.name, step: null });
          later();
        }, { most: catalogue.limits.characters }), make("div", { class: "bar" }, into, linkButton()),
        make("div", { class: "bar wide" },
          slider("Beam width", { min: 1, max: catalogue.limits.beam, value: width() }, (beam) => {
            context.keep({ beam, step: null });
            later();
          }),
          slider("Length exponent", { min: 0, max: 2, step: 0.1, value: exponent(), format: (one) => one.toFixed(1) }, (one) => {
            context.keep({ exponent: one, step: null });
            later();
          }),
          make("p", { class: "note" }, "score = log p / length^exponent. With 0 short outputs win; with 1 every word counts alike."))),
      result.place);
    look();
  },
};

/** The tree with its controls, the candidates of a step, and the outputs. */
function player(found, settings, context, signal) {
  const picture = tree(found.tree);
  const board = make("div", { class: "scroll card growing-tree", tabindex: "0", role: "group", "aria-label": "Tree of the search" }, picture.svg);
  const where = make("output", { class: "where" });
  const rows = make("div", { class: "scroll rows", tabindex: "0", role: "region", "aria-label": "Candidates of the step" });
  const title = make("h2");
  const scrub = make("input", { type: "range", min: 0, max: picture.last, step: 1, "aria-label": "Step" });
  const play = button("", () => (timer ? pause() : start()), { kind: "round", title: "Play" });
  let timer = 0;

  function show(step, follow) {
    scrub.value = step;
    where.textContent = step ? `step ${step} of ${picture.last}` : "before step 1";
    picture.show(step, follow ? board : null);
    title.textContent = step ? `All ${found.tree.steps[step - 1].length} candidates of step ${step}` : "Candidates";
    rows.replaceChildren(candidates(found.tree, step));
    context.keep({ step: step === picture.last ? null : step });
  }
  function dress(name, words) {
    play.replaceChildren(icon(name, 18));
    play.title = words;
    play.setAttribute("aria-label", words);
  }
  function pause() {
    clearInterval(timer);
    timer = 0;
    dress("play", "Play");
  }
  function start() {
    if (Number(scrub.value) === picture.last) show(0, true);
    dress("pause", "Pause");
    timer = setInterval(() => {
      if (!board.isConnected || Number(scrub.value) >= picture.last) pause();
      else show(Number(scrub.value) + 1, true);
    }, PACE);
  }
  signal.addEventListener("abort", pause);
  scrub.addEventListener("input", () => {
    pause();
    show(Number(scrub.value), true);
  });
  board.addEventListener("keydown", (event) => {
    const now = Number(scrub.value);
    const next = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: picture.last }[event.key];
    if (next === undefined || next < 0 || next > picture.last) return;
    event.preventDefault();
    pause();
    show(next, true);
  });
  dress("play", "Play");
  const wanted = settings.step === undefined || settings.step === null ? picture.last : Number(settings.step);
  requestAnimationFrame(() => show(Math.min(Math.max(wanted || 0, 0), picture.last), true));
  return [
    make("div", { class: "bar player" }, play, scrub, where),
    board,
    key(),
    make("div", { class: "two uneven" },
      make("section", { class: "card" }, make("h2", {}, "Outputs"), outputs(found)),
      make("section", { class: "card" }, title, rows)),
  ];
}

function key() {
  const kinds = [["kept", "kept"], ["finished", "finished"], ["stopped", "stopped: its source was done"], ["dropped", "dropped"], ["wins", "the best output"]];
  return make("ul", { class: "key" }, kinds.map(([name, words]) => make("li", {}, make("i", { class: name }), words)));
}

function outputs(found) {
  const rows = found.outputs.map((one, place) => make("tr", {},
    make("td", {}, place + 1),
    make("td", {}, signed(one.score, 3)),
    make("td", {}, signed(one.log_probabilities.reduce((sum, each) => sum + (each ?? -Infinity), 0))),
    make("td", { dir: "auto" }, one.text, one.finished ? "" : make("span", { class: "note" }, " without end"))));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Outputs" }, make("table", { class: "outputs" },
    make("thead", {}, make("tr", {}, ["", "Score", "log p", "Text"].map((words) => make(words ? "th" : "td", words ? { scope: "col" } : {}, words)))),
    make("tbody", {}, rows)));
}
