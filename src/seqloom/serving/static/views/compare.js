// Compare view: the outputs of two runs for one sentence, and the probability of each output under both runs.

import { make } from "../components/dom.js";
import { selectField } from "../components/controls.js";
import { copyLinkButton, sourceField } from "../shared/fields.js";
import { exampleSentences } from "../shared/examples.js";
import { debounce, latestOnly } from "../shared/scheduling.js";
import { comparedOutput } from "../components/compared-output.js";
import { runSummary } from "../shared/runs.js";
import { request, searchFields } from "../shared/api-client.js";
import { emptyMessage, resultArea, viewHeader } from "../shared/panels.js";
import { formatScore, outputText, probabilityLegend } from "../components/words.js";

const translationRuns = (catalogue) => catalogue.ofKind("translation");

export const compare = {
  name: "compare",
  title: "Compare runs",
  isAvailable: (catalogue) => translationRuns(catalogue).length > 1,
  runs: translationRuns,
  render(container, context) {
    const { settings, signal, catalogue } = context;
    const runs = translationRuns(catalogue);
    const first = () => catalogue.findRun(runs, settings.run);
    const second = () => {
      const others = runs.filter((run) => run !== first());
      return others.find((run) => run.name === settings.with) ?? others[0];
    };
    const result = resultArea({ class: "result stacked" });
    const requests = latestOnly(signal);
    const loadLater = debounce(load, 250);
    const runFields = make("div", { class: "toolbar" });
    const source = sourceField("Source text", settings.text ?? exampleSentences(first())[0] ?? "", {
      settings, getRun: first, limit: catalogue.limits.characters,
      onChange(changes) {
        context.update(changes);
        loadLater();
      },
    });
    const text = () => source.sentence();

    function load() {
      if (!text().trim()) {
        requests.cancel();
        result.show(emptyMessage("Enter a sentence to compare the translations of both runs."));
        return;
      }
      result.showLoading("Translating with both runs …");
      requests.run((inner) => translateWithAll([first(), second()], text(), settings.target, searchFields(settings, catalogue), inner), { onResult: show, onError: (error) => result.showError(error, load) });
    }

    function show(results) {
      result.show(
        make("div", { class: "two" }, results.map((each, index) => runColumn(each, results[1 - index], signal))),
        probabilityTable(results), probabilityLegend());
    }

    function updateRunFields() {
      const options = (list) => list.map((run) => [run.name, run.name]);
      runFields.replaceChildren(
        selectField("First run", options(runs), first().name, (name) => {
          context.update({ run: name, with: name === second().name ? first().name : settings.with });
          updateRunFields();
          source.update();
          load();
        }),
        selectField("Second run", options(runs.filter((run) => run !== first())), second().name, (name) => {
          context.update({ with: name });
          load();
        }), copyLinkButton());
    }
    updateRunFields();
    container.append(
      viewHeader("Compare runs", "Two runs on the same sentence: outputs, probabilities and attention."),
      make("div", { class: "inputs" },
        make("div", { class: "wide" }, source.element), runFields),
      result.element);
    load();
  },
};

/** Translates with each run, scores all outputs with each run, and gets the attention of each. */
async function translateWithAll(runs, text, language, search, signal) {
  const target = (run) => ({ run: run.name, ...(run.targets.length > 1 && { target: run.targets.find((code) => code === language) ?? run.targets[0] }) });
  const results = await Promise.all(runs.map(async (run) => {
    const started = performance.now();
    const { translations } = await request("/api/translate", { ...target(run), ...search, texts: [text], split: false }, { signal });
    return { run, output: translations[0].parts[0].outputs[0], milliseconds: performance.now() - started };
  }));
  await Promise.all(results.map(async (result) => {
    const targets = results.map((each) => each.output.text);
    const { scores } = await request("/api/score", { ...target(result.run), sources: targets.map(() => text), targets }, { signal });
    result.logProbabilities = scores.map((score) => score.log_probabilities.reduce((sum, log) => sum + (log ?? -Infinity), 0));
    if (result.run.attention) result.attention = await request("/api/attention", { ...target(result.run), text, output: result.output.text }, { signal });
  }));
  return results;
}

/** The output of one run, beside the output of the other run. */
function runColumn({ run, output, milliseconds, attention }, other, signal) {
  return comparedOutput(output, other.output, {
    name: run.name, description: runSummary(run), facts: `log p per token ${formatScore(output.score)} · ${Math.round(milliseconds)} ms`, attention, signal,
  });
}

/** The log-probability of each output under each run. */
function probabilityTable(results) {
  return make("section", { class: "card" }, make("h2", {}, "Log-probability of each output"),
    make("table", {},
      make("thead", {}, make("tr", {}, make("td"), results.map((result) => make("th", { scope: "col" }, `log p by ${result.run.name}`)))),
      make("tbody", {}, results.map((result, row) => make("tr", {}, make("th", { scope: "row", dir: "auto" }, outputText(result.output)),
        results.map((scorer) => make("td", {}, formatScore(scorer.logProbabilities[row]))))))));
}
