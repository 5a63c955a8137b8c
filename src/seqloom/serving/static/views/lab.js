// Lab: what the lectures claim, put to the test, with verdicts, charts and numbers.

import { make } from "../shared/dom.js";
import { segments } from "../shared/controls.js";
import { bars, lines } from "../shared/chart.js";
import { latest } from "../shared/latest.js";
import { ask } from "../shared/server.js";
import { heading, stage } from "../shared/states.js";

export const lab = {
  name: "lab",
  title: "Lab",
  available: (catalogue) => catalogue.reports.length > 0,
  show(place, context) {
    const { settings, catalogue } = context;
    if (settings.claim) report(place, context);
    else index(place, context, catalogue.reports);
  },
};

function index(place, context, reports) {
  const list = make("ul", { class: "claims" });
  const states = ["confirmed", "refuted", "undecided"].filter((state) => reports.some((one) => one.state === state));
  function fill(state) {
    list.replaceChildren(...reports.filter((one) => state === "all" || one.state === state).map((one) => make("li", {},
      make("a", { class: "card", href: context.link("lab", { claim: one.claim }) },
        badge(one.state), make("h2", {}, one.sentence), make("p", { class: "note" }, `${one.claim} · ${one.size}`)))));
  }
  place.append(
    heading("Lab", "Sentences of the lectures as experiments: several seeds each, and a rule that was fixed before.",
      states.length > 1 && segments("Show", [["all", "All"], ...states.map((one) => [one, one])], context.settings.state ?? "all", (state) => {
        context.keep({ state });
        fill(state);
      })),
    list);
  fill(context.settings.state ?? "all");
}

const badge = (state) => make("span", { class: `badge ${state}` }, state);

function report(place, context) {
  const { settings, signal } = context;
  const result = stage({ class: "stage report" });
  const question = latest(signal);
  const back = make("a", { class: "back", href: context.link("lab") }, "← All claims");
  place.append(back, result.place);
  function look() {
    result.wait("Fetching the report …");
    question((inner) => ask(`/api/lab/${encodeURIComponent(settings.claim)}`, undefined, { signal: inner }), {
      found: ({ report: found }) => result.show(...page(found)), failed: (error) => result.fail(error, look),
    });
  }
  look();
}

function page(one) {
  return [
    make("header", {}, badge(one.verdict.state), make("h1", { tabindex: "-1" }, one.sentence), make("p", { class: "lead" }, one.source)),
    make("section", { class: "card" }, make("h2", {}, "Why"),
      make("ul", { class: "reasons" }, one.verdict.reason.split("; ").map((words) => make("li", {}, words)))),
    ...(one.charts ?? []).map((each) => make("section", { class: "card" }, chart(each))),
    one.table && make("section", { class: "card" }, make("h2", {}, "Numbers"), table(one.table),
      make("p", { class: "note" }, `Mean over ${one.seeds.length} seeds, ± their standard deviation.`)),
    ...(one.published ?? []).map(published),
    make("section", { class: "card" }, make("h2", {}, "The experiment"), make("dl", { class: "setup" },
      [["What is done", one.setup], ["What would confirm it", one.confirms], ["What would refute it", one.refutes], ["The rule", one.rule],
        ["Again", `seqloom lab ${one.claim} --size ${one.size} --seeds ${one.seeds.length}`]]
        .map(([name, words]) => make("div", {}, make("dt", {}, name), make("dd", {}, words))))),
  ];
}

const average = (values) => values.reduce((sum, one) => sum + one, 0) / values.length;

function chart(one) {
  if (one.kind === "bars") return bars(one.names, one.values, one.label);
  const series = one.series.map((each) => ({
    name: each.name,
    points: each.x.map((x, place) => [x, average(each.values[place])]),
    band: each.values.some((several) => several.length > 1) ? each.x.map((x, place) => [x, Math.min(...each.values[place]), Math.max(...each.values[place])]) : undefined,
  }));
  return lines(series, { xLabel: one.x_label, yLabel: one.y_label, logX: one.logarithmic_x, logY: one.logarithmic_y, zero: one.zero, wide: true });
}

function table([head, ...rows]) {
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers" }, make("table", {},
    make("thead", {}, make("tr", {}, head.map((words) => make(words ? "th" : "td", words ? { scope: "col" } : {}, words)))),
    make("tbody", {}, rows.map(([name, ...cells]) => make("tr", {}, make("th", { scope: "row" }, name), cells.map((words) => make("td", {}, words)))))));
}

function published(one) {
  return make("section", { class: "card" }, make("h2", {}, "Published"),
    make("p", {}, `${one.what} (${one.where}). The sizes differ, so only the order is compared. ${one.order}`),
    table([["", "published", "here"], ...one.figures.map((each) => [each.label, String(each.theirs), each.ours.toPrecision(4)])]));
}
