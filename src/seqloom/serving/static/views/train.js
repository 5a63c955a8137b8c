// Train: the curves of a run, and how far it is. What is still learning is followed.

import { make } from "../shared/dom.js";
import { choice } from "../shared/controls.js";
import { lines } from "../shared/chart.js";
import { short } from "../shared/runs.js";
import { ask } from "../shared/server.js";
import { empty, heading, stage } from "../shared/states.js";

const OFTEN = 2_000, SELDOM = 15_000;
const POINTS = 600;
const NO_SCORE = new Set(["event", "step", "time", "best", "loss"]);
/** Of several scores, what people ask for first. */
const FIRST = ["bleu", "accuracy", "exact-match", "chrf2"];
const NAMES = { bleu: "BLEU", chrf2: "chrF2", ter: "TER", perplexity: "Perplexity", accuracy: "Accuracy" };

export const train = {
  name: "train",
  title: "Train",
  available: (catalogue) => catalogue.trainings.length > 0,
  show(place, context) {
    const { settings, signal, catalogue } = context;
    const result = stage({ class: "stage curves" });
    const names = catalogue.trainings.map((one) => one.run);
    let run = names.includes(settings.training) ? settings.training
      : catalogue.trainings.find((one) => one.state === "running")?.run ?? names[0];
    let events = [], next = 0, timer = 0, asked = 0;

    async function follow() {
      const mine = (asked += 1);
      clearTimeout(timer);
      try {
        const fresh = await read();
        if (mine !== asked || signal.aborted) return;
        if (fresh || !result.place.querySelector(".progress")) present();
      } catch (error) {
        if (mine === asked && !signal.aborted) result.fail(error, follow);
        return;
      }
      timer = setTimeout(follow, state() === "ended" ? SELDOM : OFTEN);
    }

    /** What is new; all of it again where training went back to a checkpoint. */
    async function read() {
      let more = true, fresh = false;
      while (more) {
        const found = await ask(`/api/trainings/${encodeURIComponent(run)}?after=${next}`, undefined, { signal });
        if (found.begin < next) events = [];
        events.push(...found.events);
        fresh ||= found.events.length > 0;
        ({ next, more } = found);
      }
      return fresh;
    }

    const state = () => {
      const last = events.at(-1);
      if (!last || last.event === "end") return "ended";
      return Date.now() / 1000 - last.time < 180 ? "running" : "silent";
    };

    function present() {
      const steps = events.filter((one) => one.event === "step"), looks = events.filter((one) => one.event === "evaluate");
      if (!steps.length && !looks.length) {
        result.show(empty("This training has only begun. Its curves appear here as it goes."));
        return;
      }
      const scores = [...new Set(looks.flatMap((one) => Object.keys(one)))].filter((name) => !NO_SCORE.has(name) && typeof looks.at(-1)[name] === "number");
      const score = [settings.score, ...FIRST, scores[0]].find((one) => scores.includes(one));
      result.show(
        progress(events, state(), steps),
        make("section", { class: "card" }, make("h2", {}, "Loss"),
          lines([{ name: "training", points: thin(steps, "loss") }, { name: "held out", points: thin(looks, "loss") }], { xLabel: "step", yLabel: "loss per token", wide: true })),
        make("div", { class: "three" },
          score && make("section", { class: "card" },
            make("div", { class: "titled" }, make("h2", {}, "Held-out data"),
              scores.length > 1 && choice("Score", scores.map((one) => [one, NAMES[one] ?? one]), score, (name) => {
                context.keep({ score: name });
                present();
              })),
            lines([{ name: NAMES[score] ?? score, points: thin(looks, score) }], { xLabel: "step", yLabel: NAMES[score] ?? score })),
          make("section", { class: "card" }, make("h2", {}, "Learning rate"),
            lines([{ name: "learning rate", points: thin(steps, "learning_rate") }], { xLabel: "step", yLabel: "learning rate", zero: true })),
          make("section", { class: "card" }, make("h2", {}, "Speed"),
            lines([{ name: "tokens a second", points: thin(steps, "tokens_per_second") }], { xLabel: "step", yLabel: "tokens a second", zero: true }))));
    }

    place.append(
      heading("Train", "How a run has learned, from the journal that training writes into its folder. What is still learning is followed.",
        names.length > 1 ? make("div", { class: "run" }, choice("Run", names.map((one) => [one, one]), run, (name) => {
          run = name;
          context.keep({ training: run, score: null });
          [events, next] = [[], 0];
          result.show();
          result.wait("Reading the journal …");
          follow();
        })) : make("span", { class: "chip" }, run)),
      result.place);
    signal.addEventListener("abort", () => clearTimeout(timer));
    result.wait("Reading the journal …");
    follow();
  },
};

/** A point for each event that has the number; of very many, every so manieth and the last. */
function thin(events, name) {
  const points = events.filter((one) => typeof one[name] === "number").map((one) => [one.step, one[name]]);
  const every = Math.ceil(points.length / POINTS);
  return points.filter((_, place) => place % every === 0 || place === points.length - 1);
}

function progress(events, state, steps) {
  const last = events.at(-1), begun = events.find((one) => one.event === "start");
  const total = steps.at(-1)?.steps ?? begun?.steps ?? last.step;
  const left = steps.at(-1)?.seconds_left;
  const best = events.filter((one) => one.event === "evaluate" && one.best).at(-1);
  const words = {
    running: `Learning: step ${last.step} of ${total}${left ? `, about ${time(left)} left` : ""}`,
    silent: `Step ${last.step} of ${total}; nothing was written for ${time(Date.now() / 1000 - last.time)}`,
    ended: `Ended at step ${last.step} of ${total}${last.reason && last.reason !== "done" ? `: ${last.reason}` : ""}`,
  }[state];
  const facts = [
    ["Parameters", begun?.parameters && short(begun.parameters)], ["Examples", begun?.examples && short(begun.examples)],
    ["Device", begun?.device], ["Best at step", best?.step],
    ["Took", begun && time(took(events))],
  ].filter(([, value]) => value !== undefined && value !== null);
  return make("section", { class: "card progress" },
    make("div", { class: "bar spread" },
      make("p", { role: "status" }, make("i", { class: `lamp ${state}` }), words),
      make("dl", {}, facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value)))))),
    make("progress", { max: total, value: Math.min(last.step, total), "aria-label": "Steps done" }));
}

/** Seconds of work: what lies between the end of one stretch and the start of the next is none. */
function took(events) {
  const starts = events.flatMap((one, place) => (one.event === "start" ? [place] : []));
  return starts.reduce((sum, from, number) => sum + events[(starts[number + 1] ?? events.length) - 1].time - events[from].time, 0);
}

function time(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}
