// Attention view: the attention matrix of a translation, as a mean or by layer and head.

import { make } from "../components/dom.js";
import { segmentedControl } from "../components/controls.js";
import { copyLinkButton, runSelect, sourceField, targetLanguageSelect, textField } from "../shared/fields.js";
import { exampleSentences } from "../shared/examples.js";
import { attentionHeads } from "../components/attention-heads.js";
import { debounce, latestOnly } from "../shared/scheduling.js";
import { request, searchFields } from "../shared/api-client.js";
import { emptyMessage, resultArea, viewHeader, warningList } from "../shared/panels.js";

const runsWithAttention = (catalogue) => catalogue.ofKind("translation").filter((run) => run.attention);

export const attention = {
  name: "attention",
  title: "Attention",
  isAvailable: (catalogue) => runsWithAttention(catalogue).length > 0,
  runs: runsWithAttention,
  render(container, context) {
    const { settings, signal, catalogue } = context;
    const runs = runsWithAttention(catalogue);
    let run = catalogue.findRun(runs, settings.run);
    const result = resultArea();
    const requests = latestOnly(signal);
    const loadLater = debounce(load, 250);
    const targetField = make("div");
    let shown = null;
    const source = sourceField("Source text", settings.text ?? exampleSentences(run)[0] ?? "", {
      settings, getRun: () => run, limit: catalogue.limits.characters,
      onChange(changes) {
        context.update({ ...changes, run: run.name });
        loadLater();
      },
    });

    function load() {
      const text = source.sentence();
      if (!text.trim()) {
        requests.cancel();
        result.show(emptyMessage("Enter a sentence to see the attention of its translation."));
        return;
      }
      result.showLoading("Translating …");
      const body = {
        run: run.name, text, pieces: settings.units === "pieces",
        ...(run.targets.length > 1 && { target: settings.target ?? run.targets[0] }),
        ...(settings.output?.trim() && { output: settings.output }), ...searchFields(settings, catalogue),
      };
      requests.run((inner) => request("/api/attention", body, { signal: inner }), { onResult: show, onError: (error) => result.showError(error, load) });
    }

    function show(response) {
      shown = response;
      const { output } = response;
      result.show(
        warningList(response.warnings),
        make("p", { class: "words translation", dir: "auto" }, output.text),
        make("div", { class: "card" }, attentionHeads(response, {
          title: output.text, head: settings.head, drawing: settings.as, cell: settings.zoom && Number(settings.zoom), margin: 390, signal,
          onHead: (head) => context.update({ head }), onZoom: (zoom) => context.update({ zoom }),
        })));
    }

    function updateTargetField() {
      targetField.replaceChildren(targetLanguageSelect(run, settings.target ?? run.targets[0], (target) => {
        context.update({ target });
        load();
      }) ?? "");
    }
    updateTargetField();
    container.append(
      viewHeader("Attention", "One row for each output word, one column for each source word. The colour of a cell shows its attention weight.",
        runSelect(context, runs, run, (next) => {
          run = next;
          context.update({ run: run.name, head: null, target: null });
          updateTargetField();
          source.update();
          load();
        })),
      make("div", { class: "inputs even" },
        source.element, targetField,
        textField("Output", settings.output ?? "", (output) => {
          context.update({ output });
          loadLater();
        }, { placeholder: "the model’s translation" }),
        make("div", { class: "toolbar wide" }, segmentedControl("Units", [["words", "Words"], ["pieces", "Subword pieces"]], settings.units ?? "words", (units) => {
          context.update({ units });
          load();
        }), segmentedControl("Drawing", [["matrix", "Matrix"], ["arcs", "Lines"]], settings.as ?? "matrix", (drawing) => {
          context.update({ as: drawing });
          if (shown) show(shown);
        }), copyLinkButton())),
      result.element);
    load();
  },
};
