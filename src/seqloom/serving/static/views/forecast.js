// Forecast view: continues observed rows of numbers.

import { announce, make } from "../components/dom.js";
import { button, labelledField } from "../components/controls.js";
import { copyLinkButton, runSelect } from "../shared/fields.js";
import { lineChart } from "../shared/chart.js";
import { debounce, latestOnly } from "../shared/scheduling.js";
import { trajectoryPlot } from "../shared/trajectory-plot.js";
import { request } from "../shared/api-client.js";
import { resultArea, viewHeader } from "../shared/panels.js";

export const forecast = {
  name: "forecast",
  title: "Forecast",
  isAvailable: (catalogue) => catalogue.ofKind("forecast").length > 0,
  render(container, context) {
    const { settings, signal, catalogue } = context;
    const runs = catalogue.ofKind("forecast");
    let run = catalogue.findRun(runs, settings.run);
    const result = resultArea();
    const requests = latestOnly(signal);
    const loadLater = debounce(load, 250);
    const body = make("div", { class: "forecast-layout" });
    let observed, plot = null;

    const observedField = make("textarea", { rows: 9, class: "numbers", spellcheck: "false", on: { input: () => onEdit() } });
    const contextField = make("textarea", { rows: 5, class: "numbers", spellcheck: "false", on: { input: () => onEdit() } });

    function onEdit() {
      context.update({ rows: packRows(observedField.value), known: run.context.length ? packRows(contextField.value) : null });
      loadLater();
    }

    function setRows(observedRows, contextRows) {
      observedField.value = observedRows.map((row) => row.map(formatNumber).join(", ")).join("\n");
      contextField.value = contextRows.map((row) => row.map(formatNumber).join(", ")).join("\n");
    }

    function load() {
      observed = parseRows(observedField.value);
      result.showLoading("Forecasting …");
      const window = { observed, ...(run.context.length && { context: parseRows(contextField.value) }) };
      requests.run((inner) => request("/api/forecast", { run: run.name, windows: [window] }, { signal: inner }), {
        onResult: ({ forecasts }) => show(forecasts[0]), onError: (error) => result.showError(error, load),
      });
    }

    function show(rows) {
      if (isPlanar(run)) {
        if (!plot?.element.isConnected) plot = trajectoryPlot({ observe: run.observe, predict: run.predict, columns: run.columns, onDraw, signal });
        result.show(plot.element);
        plot.show(observed, rows);
      } else {
        result.show(make("div", { class: "three" }, run.columns.map((name, column) => make("section", { class: "card" }, make("h2", {}, name), lineChart([
          { name: "forecast", points: [observed.at(-1), ...rows].map((row, at) => [observed.length - 1 + at, row[column]]) },
          { name: "observed", points: observed.map((row, at) => [at, row[column]]) },
        ], { xLabel: "row", yLabel: name, size: run.columns.length === 1 ? "medium" : "narrow" })))));
      }
      const last = rows.at(-1).map((value, at) => `${run.columns[at]} ${formatNumber(value)}`).join(", ");
      announce(`Forecast of ${rows.length} rows. Last row: ${last}`);
    }

    function onDraw(rows) {
      setRows(rows, []);
      onEdit();
    }

    async function loadExample() {
      try {
        const example = await request(`/api/forecast/example?run=${encodeURIComponent(run.name)}`, undefined, { signal });
        setRows(example.observed, run.context.length ? example.context : []);
        context.update({ rows: null, known: null });
        load();
      } catch (error) {
        if (!signal.aborted) result.showError(error, loadExample);
      }
    }

    function renderFields() {
      plot = null;
      const columns = [...run.columns, ...run.context].join(", ");
      body.replaceChildren(
        result.element,
        make("div", { class: "card forecast-input" },
          labelledField(`Observed: ${run.observe} rows of ${columns}`, observedField),
          run.context.length > 0 && labelledField(`Context of the next ${run.predict} rows: ${run.context.join(", ")}`, contextField),
          make("div", { class: "tools" }, button("Load an example", loadExample), copyLinkButton())));
    }

    container.append(
      viewHeader("Forecast", `Predicts the next rows of a series. ${runs.some(isPlanar) ? "Draw a path, or enter" : "Enter"} the observed numbers.`,
        runSelect(context, runs, run, (next) => {
          run = next;
          context.update({ run: run.name, rows: null, known: null });
          renderFields();
          loadExample();
        })),
      body);
    renderFields();
    if (settings.rows) {
      observedField.value = unpackRows(settings.rows);
      contextField.value = unpackRows(settings.known ?? "");
      load();
    } else loadExample();
  },
};

/** Two columns without context are drawn as a path in the plane. */
const isPlanar = (run) => run.columns.length === 2 && run.context.length === 0;
const formatNumber = (value) => String(Number(value.toPrecision(5)));
/** Rows in a link: commas between numbers, semicolons between rows. */
const packRows = (text) => text.trim().replace(/[ \t]*,[ \t]*/g, ",").replace(/\n+/g, ";");
const unpackRows = (text) => text.replaceAll(";", "\n");

/** Rows of numbers, separated by commas, tabs or spaces. Other text stays as it is, and the server reports it. */
function parseRows(text) {
  return text.split("\n").filter((line) => line.trim()).map((line) =>
    line.split(/[,\t ]+/).filter(Boolean).map((cell) => (Number.isFinite(Number(cell)) ? Number(cell) : cell)));
}
