// Forecast: what was observed, and the path that the model sees behind it.

import { make, say } from "../shared/dom.js";
import { button, field, linkButton, runChoice } from "../shared/controls.js";
import { lines } from "../shared/chart.js";
import { latest, patient } from "../shared/latest.js";
import { plane } from "../shared/plane.js";
import { ask } from "../shared/server.js";
import { heading, stage } from "../shared/states.js";

export const forecast = {
  name: "forecast",
  title: "Forecast",
  available: (catalogue) => catalogue.of("forecast").length > 0,
  show(place, context) {
    const { settings, signal, catalogue } = context;
    const runs = catalogue.of("forecast");
    let run = catalogue.named(runs, settings.run);
    const result = stage();
    const question = latest(signal);
    const later = patient(look, 250);
    const body = make("div", { class: "forecasting" });
    const flat = () => run.columns.length === 2 && run.context.length === 0;
    let observed, ahead, forecastRows = null, board = null;

    const numbers = make("textarea", { rows: 9, class: "numbers", spellcheck: "false", on: { input: () => typed() } });
    const known = make("textarea", { rows: 5, class: "numbers", spellcheck: "false", on: { input: () => typed() } });

    function typed() {
      context.keep({ rows: packed(numbers.value), known: run.context.length ? packed(known.value) : null });
      later();
    }

    function write(rows, context_) {
      numbers.value = rows.map((row) => row.map(short).join(", ")).join("\n");
      known.value = context_.map((row) => row.map(short).join(", ")).join("\n");
    }

    function look() {
      observed = parsed(numbers.value);
      ahead = parsed(known.value);
      result.wait("Going on …");
      const window = { observed, ...(run.context.length && { context: ahead }) };
      question((inner) => ask("/api/forecast", { run: run.name, windows: [window] }, { signal: inner }), {
        found: ({ forecasts }) => present((forecastRows = forecasts[0])), failed: (error) => result.fail(error, look),
      });
    }

    function present(rows) {
      if (flat()) {
        if (!board?.place.isConnected) {
          board = plane({ observe: run.observe, predict: run.predict, columns: run.columns, drawn, signal });
          result.show(board.place);
        } else result.show(board.place);
        board.show(observed, rows);
      } else {
        result.show(make("div", { class: "three" }, run.columns.map((name, column) => make("section", { class: "card" }, make("h2", {}, name), lines([
          { name: "forecast", points: [observed.at(-1), ...rows].map((row, at) => [observed.length - 1 + at, row[column]]) },
          { name: "observed", points: observed.map((row, at) => [at, row[column]]) },
        ], { xLabel: "row", yLabel: name })))));
      }
      const last = rows.at(-1).map((value, at) => `${run.columns[at]} ${short(value)}`).join(", ");
      say(`${rows.length} rows ahead, the last: ${last}`);
    }

    /** A path that was drawn by hand. */
    function drawn(rows) {
      write(rows, []);
      typed();
    }

    async function begin() {
      try {
        const found = await ask(`/api/forecast/example?run=${encodeURIComponent(run.name)}`, undefined, { signal });
        write(found.observed, run.context.length ? found.context : []);
        context.keep({ rows: null, known: null });
        look();
      } catch (error) {
        if (!signal.aborted) result.fail(error, begin);
      }
    }

    function fill() {
      board = null;
      const names = [...run.columns, ...run.context].join(", ");
      body.replaceChildren(
        result.place,
        make("div", { class: "card given-rows" },
          field(`Observed: ${run.observe} rows of ${names}`, numbers),
          run.context.length > 0 && field(`Known of the next ${run.predict} rows: ${run.context.join(", ")}`, known),
          make("div", { class: "tools" }, button("A made-up beginning", begin), linkButton())));
    }

    place.append(
      heading("Forecast", "What comes next, from what was. Draw a path, or give the numbers.",
        runChoice(context, runs, run, (next) => {
          run = next;
          context.keep({ run: run.name, rows: null, known: null });
          fill();
          begin();
        })),
      body);
    fill();
    if (settings.rows) {
      numbers.value = unpacked(settings.rows);
      known.value = unpacked(settings.known ?? "");
      look();
    } else begin();
  },
};

const short = (value) => String(Number(value.toPrecision(5)));
const packed = (text) => text.trim().replace(/[ \t]*,[ \t]*/g, ",").replace(/\n+/g, ";");
const unpacked = (text) => text.replaceAll(";", "\n");

/** Rows of numbers, separated as people do; what is no number is told by the service. */
function parsed(text) {
  return text.split("\n").filter((line) => line.trim()).map((line) =>
    line.split(/[,\t ]+/).filter(Boolean).map((cell) => (Number.isFinite(Number(cell)) ? Number(cell) : cell)));
}
