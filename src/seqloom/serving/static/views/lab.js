// Lab view: reports of `seqloom lab`, with verdicts, charts and tables.

import { make } from "../components/dom.js";
import { segmentedControl } from "../components/controls.js";
import { barChart, lineChart } from "../shared/chart.js";
import { latestOnly } from "../shared/scheduling.js";
import { request } from "../shared/api-client.js";
import { resultArea, viewHeader } from "../shared/panels.js";

export const lab = {
  name: "lab",
  title: "Lab",
  isAvailable: (catalogue) => catalogue.reports.length > 0,
  render(container, context) {
    if (context.settings.claim) renderReport(container, context);
    else renderIndex(container, context, context.catalogue.reports);
  },
};

function renderIndex(container, context, reports) {
  const list = make("ul", { class: "claims" });
  const states = ["confirmed", "refuted", "undecided"].filter((state) => reports.some((report) => report.state === state));
  function listReports(state) {
    list.replaceChildren(...reports.filter((report) => state === "all" || report.state === state).map((report) => make("li", {},
      make("a", { class: "card", href: context.link("lab", { claim: report.claim }) },
        badge(report.state), make("h2", {}, report.sentence), make("p", { class: "note" }, `${report.claim} · ${report.size}${report.published ? "" : " · measured here"}`)))));
  }
  container.append(
    viewHeader("Lab", "Claims from lectures, tested as experiments over several seeds with a decision rule fixed in advance. The published reports are part of seqloom; the command “seqloom lab” repeats an experiment.",
      states.length > 1 && segmentedControl("Show", [["all", "All"], ...states.map((state) => [state, state])], context.settings.state ?? "all", (state) => {
        context.update({ state });
        listReports(state);
      })),
    list);
  listReports(context.settings.state ?? "all");
}

const badge = (state) => make("span", { class: `badge ${state}` }, state);

function renderReport(container, context) {
  const { settings, signal } = context;
  const result = resultArea({ class: "result report" });
  const requests = latestOnly(signal);
  const backLink = make("a", { class: "back", href: context.link("lab") }, "← All claims");
  container.append(backLink, result.element);
  function load() {
    result.showLoading("Loading the report …");
    requests.run((inner) => request(`/api/lab/${encodeURIComponent(settings.claim)}`, undefined, { signal: inner }), {
      onResult: ({ report }) => result.show(...reportSections(report)), onError: (error) => result.showError(error, load),
    });
  }
  load();
}

function reportSections(report) {
  return [
    make("header", {}, badge(report.verdict.state), make("h1", { tabindex: "-1" }, report.sentence), make("p", { class: "lead" }, report.source)),
    make("section", { class: "card" }, make("h2", {}, "Reasons"),
      make("ul", { class: "reasons" }, report.verdict.reason.split("; ").map((reason) => make("li", {}, reason)))),
    ...(report.charts ?? []).map((chart) => make("section", { class: "card" }, renderChart(chart))),
    report.table && make("section", { class: "card" }, make("h2", {}, "Results"), renderTable(report.table),
      make("p", { class: "note" }, `Mean over ${report.seeds.length} seeds, ± standard deviation.`)),
    ...(report.published ?? []).map(publishedSection),
    make("section", { class: "card" }, make("h2", {}, "Experiment"), make("dl", { class: "setup" },
      [["Setup", report.setup], ["Confirmed if", report.confirms], ["Refuted if", report.refutes], ["Decision rule", report.rule],
        ["Command", `seqloom lab ${report.claim} --size ${report.size} --seeds ${report.seeds.length}`]]
        .map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text))))),
  ];
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

function renderChart(chart) {
  if (chart.kind === "bars") return barChart(chart.names, chart.values, chart.label);
  const series = chart.series.map(({ name, x: xs, values }) => ({
    name,
    points: xs.map((x, index) => [x, mean(values[index])]),
    band: values.some((seeds) => seeds.length > 1) ? xs.map((x, index) => [x, Math.min(...values[index]), Math.max(...values[index])]) : undefined,
  }));
  return lineChart(series, { xLabel: chart.x_label, yLabel: chart.y_label, logX: chart.logarithmic_x, logY: chart.logarithmic_y, zero: chart.zero, size: "wide" });
}

function renderTable([header, ...rows]) {
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers" }, make("table", {},
    make("thead", {}, make("tr", {}, header.map((text) => make(text ? "th" : "td", text ? { scope: "col" } : {}, text)))),
    make("tbody", {}, rows.map(([name, ...cells]) => make("tr", {}, make("th", { scope: "row" }, name), cells.map((text) => make("td", {}, text)))))));
}

function publishedSection(published) {
  return make("section", { class: "card" }, make("h2", {}, "Published results"),
    make("p", {}, `${published.what} (${published.where}). The model sizes differ, so only the order is comparable. ${published.order}`),
    renderTable([["", "published", "here"], ...published.figures.map((figure) => [figure.label, String(figure.theirs), figure.ours.toPrecision(4)])]));
}
