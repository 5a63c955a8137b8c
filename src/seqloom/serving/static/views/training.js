// Training view: loss, score, learning-rate and speed curves of a run, updated while the run trains.

import { make } from "../components/dom.js";
import { selectField } from "../components/controls.js";
import { lineChart } from "../shared/chart.js";
import { compactNumber } from "../shared/runs.js";
import { request } from "../shared/api-client.js";
import { emptyMessage, resultArea, viewHeader } from "../shared/panels.js";

/** Milliseconds between requests for new events: during training, and after it has ended. */
const POLL_RUNNING = 2_000, POLL_ENDED = 15_000;
/** Milliseconds until the next request after one that failed. */
const POLL_DISCONNECTED = 3_000;
/** A training run without an event for this many seconds is shown as silent. */
const SILENT_AFTER = 180;
const MAX_POINTS = 600;
const NOT_A_SCORE = new Set(["event", "step", "time", "best", "loss"]);
/** The score that is shown by default: the first of these that the run has. */
const PREFERRED_SCORES = ["bleu", "accuracy", "exact-match", "chrf2"];
const SCORE_NAMES = { bleu: "BLEU", chrf2: "chrF2", ter: "TER", perplexity: "Perplexity", accuracy: "Accuracy" };

export const training = {
  name: "train",
  title: "Training",
  isAvailable: (catalogue) => catalogue.trainings.length > 0,
  render(container, context) {
    const { settings, signal, catalogue } = context;
    const result = resultArea({ class: "result curves" });
    const names = catalogue.trainings.map((each) => each.run);
    let run = names.includes(settings.training) ? settings.training
      : catalogue.trainings.find((each) => each.state === "running")?.run ?? names[0];
    let events = [], next = 0, timer = 0, latestPoll = 0;

    async function poll() {
      const current = (latestPoll += 1);
      clearTimeout(timer);
      try {
        const hasNewEvents = await readEvents();
        if (current !== latestPoll || signal.aborted) return;
        if (hasNewEvents || !result.element.querySelector(".progress")) show();
      } catch (error) {
        if (current !== latestPoll || signal.aborted) return;
        result.showError(error, poll);
        if (!error.isTemporary) return;
        timer = setTimeout(poll, POLL_DISCONNECTED);
        return;
      }
      result.clearError();
      timer = setTimeout(poll, state() === "ended" ? POLL_ENDED : POLL_RUNNING);
    }

    /** Appends new events. Starts over if the log was truncated because training resumed from a checkpoint. */
    async function readEvents() {
      let more = true, hasNewEvents = false;
      while (more) {
        const response = await request(`/api/trainings/${encodeURIComponent(run)}?after=${next}`, undefined, { signal });
        if (response.begin < next) events = [];
        events.push(...response.events);
        hasNewEvents ||= response.events.length > 0;
        ({ next, more } = response);
      }
      return hasNewEvents;
    }

    const state = () => {
      const last = events.at(-1);
      if (!last || last.event === "end") return "ended";
      return Date.now() / 1000 - last.time < SILENT_AFTER ? "running" : "silent";
    };

    function show() {
      const steps = events.filter((event) => event.event === "step"), evaluations = events.filter((event) => event.event === "evaluate");
      if (!steps.length && !evaluations.length) {
        result.show(events.length > 0 && progressCard(events, state(), steps), emptyMessage("This training has just started. Its curves appear here."));
        return;
      }
      const scores = [...new Set(evaluations.flatMap((event) => Object.keys(event)))].filter((name) => !NOT_A_SCORE.has(name) && typeof evaluations.at(-1)[name] === "number");
      const score = [settings.score, ...PREFERRED_SCORES, scores[0]].find((name) => scores.includes(name));
      const scoreName = (name) => SCORE_NAMES[name] ?? name;
      result.show(
        progressCard(events, state(), steps),
        make("section", { class: "card" }, make("h2", {}, "Loss"),
          lineChart([{ name: "training", points: curve(steps, "loss") }, { name: "validation", points: curve(evaluations, "loss") }], { xLabel: "step", yLabel: "loss per token", size: "wide" })),
        make("div", { class: "three" },
          score && make("section", { class: "card" },
            make("div", { class: "titled" }, make("h2", {}, "Validation"),
              scores.length > 1 && selectField("Score", scores.map((name) => [name, scoreName(name)]), score, (name) => {
                context.update({ score: name });
                show();
              })),
            lineChart([{ name: scoreName(score), points: curve(evaluations, score) }], { xLabel: "step", yLabel: scoreName(score) })),
          make("section", { class: "card" }, make("h2", {}, "Learning rate"),
            lineChart([{ name: "learning rate", points: curve(steps, "learning_rate") }], { xLabel: "step", yLabel: "learning rate", zero: true })),
          make("section", { class: "card" }, make("h2", {}, "Speed"),
            lineChart([{ name: "tokens per second", points: curve(steps, "tokens_per_second") }], { xLabel: "step", yLabel: "tokens per second", zero: true }))));
    }

    container.append(
      viewHeader("Training", "Training curves from the event log in the run folder. The page follows a training in progress.",
        names.length > 1 ? make("div", { class: "run" }, selectField("Run", names.map((name) => [name, name]), run, (name) => {
          run = name;
          context.update({ training: run, score: null });
          [events, next] = [[], 0];
          result.show();
          result.showLoading("Reading the event log …");
          poll();
        })) : make("span", { class: "chip" }, run)),
      result.element);
    signal.addEventListener("abort", () => clearTimeout(timer));
    result.showLoading("Reading the event log …");
    poll();
  },
};

/** The points [step, value] of the events that have this value. At most about MAX_POINTS, evenly selected, and the last one. */
function curve(events, name) {
  const points = events.filter((event) => typeof event[name] === "number").map((event) => [event.step, event[name]]);
  const stride = Math.ceil(points.length / MAX_POINTS);
  return points.filter((_, index) => index % stride === 0 || index === points.length - 1);
}

function progressCard(events, state, steps) {
  const last = events.at(-1), start = events.find((event) => event.event === "start");
  const total = steps.at(-1)?.steps ?? start?.steps ?? last.step ?? 0;
  const secondsLeft = steps.at(-1)?.seconds_left;
  const best = events.filter((event) => event.event === "evaluate" && event.best).at(-1);
  const status = {
    running: `Training: step ${last.step} of ${total}${secondsLeft ? `, about ${formatDuration(secondsLeft)} left` : ""}`,
    silent: `Step ${last.step} of ${total}; no new events for ${formatDuration(Date.now() / 1000 - last.time)}`,
    ended: `Ended at step ${last.step} of ${total}${last.reason && last.reason !== "done" ? `: ${last.reason}` : ""}`,
  }[state];
  const facts = [
    ["Parameters", start?.parameters && compactNumber(start.parameters)], ["Examples", start?.examples && compactNumber(start.examples)],
    ["Device", start?.device], ["Best step", best?.step],
    ["Duration", start && formatDuration(trainingSeconds(events))],
  ].filter(([, value]) => value !== undefined && value !== null);
  return make("section", { class: "card progress" },
    make("div", { class: "toolbar spread" },
      make("p", { role: "status" }, make("i", { class: `status-dot ${state}` }), status),
      make("dl", {}, facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value)))))),
    make("progress", { max: Math.max(total, 1), value: Math.min(last.step, total), "aria-label": "Completed steps" }));
}

/** Seconds of training, without the pauses between an interruption and the resumption of training. */
function trainingSeconds(events) {
  const starts = events.flatMap((event, index) => (event.event === "start" ? [index] : []));
  return starts.reduce((sum, from, number) => sum + events[(starts[number + 1] ?? events.length) - 1].time - events[from].time, 0);
}

function formatDuration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}
