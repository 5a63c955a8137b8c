// Attention view: the attention matrix of a translation, as a mean or by layer and head.

import { announce, make } from "../shared/dom.js";
import { copyLinkButton, runSelect, segmentedControl, sourceField, targetLanguageSelect, textField } from "../shared/controls.js";
import { exampleSentences } from "../shared/examples.js";
import { debounce, latestOnly } from "../shared/scheduling.js";
import { attentionArcs } from "../shared/attention-arcs.js";
import { attentionMap } from "../shared/attention-map.js";
import { mean, thumbnail } from "../shared/heatmap.js";
import { request, searchFields } from "../shared/api-client.js";
import { emptyMessage, resultArea, viewHeader, warningList } from "../shared/panels.js";
import { displayPiece, enableRovingFocus } from "../shared/words.js";

const NARROW_SCREEN = 832;
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
      const { heads, output } = response;
      const [outputs, sources] = [response.outputs, response.sources].map((pieces) => pieces.map((piece) => displayPiece(piece)));
      const isNarrow = innerWidth < NARROW_SCREEN, thumbnailWidth = heads[0].length > 1 ? 58 * (heads[0].length + 1) + 24 : 0;
      const maps = listMaps(response);
      const mapContainer = make("div");
      const chosen = maps.find((map) => map.name === settings.head) ?? maps[0];
      const grid = maps.length > 1 ? thumbnailGrid(maps, heads, chosen, (map) => {
        context.update({ head: map.name });
        showMap(map);
      }) : null;
      function showMap(map) {
        mapContainer.replaceChildren(
          make("h2", {}, map.title),
          settings.as === "arcs" ? attentionArcs({ outputs, sources, weights: map.weights }, signal) : attentionMap({ outputs, sources, weights: map.weights }, {
            title: output.text, signal, availableWidth: innerWidth - (isNarrow ? 90 : 390 + thumbnailWidth),
            cell: settings.zoom && Number(settings.zoom), onZoom: (zoom) => context.update({ zoom }),
          }));
        announce(map.title);
      }
      showMap(chosen);
      result.show(
        warningList(response.warnings),
        make("p", { class: "words translation", dir: "auto" }, output.text),
        make("div", { class: `card attention-maps${grid ? " many" : ""}` }, grid, mapContainer));
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

/** The mean of all heads, the mean of each layer, and each head. */
function listMaps({ weights, heads }) {
  if (heads.length * heads[0].length < 2) return [{ name: "mean", title: "Attention weights", weights }];
  const maps = [{ name: "mean", title: "Mean of all heads", weights }];
  heads.forEach((layer, l) => {
    if (heads.length > 1) maps.push({ name: `${l + 1}`, title: `Layer ${l + 1}, mean of its heads`, weights: mean(layer) });
    layer.forEach((head, h) => maps.push({ name: `${l + 1}.${h + 1}`, title: `Layer ${l + 1}, head ${h + 1}`, weights: head }));
  });
  return maps;
}

/** A button with a thumbnail for each map. */
function thumbnailGrid(maps, heads, chosen, onSelect) {
  const hasLayerMeans = heads.length > 1;
  const grid = make("div", { class: "heads", role: "group", "aria-label": "Layers and heads", vars: { columns: heads[0].length + (hasLayerMeans ? 1 : 0) } });
  const mapButton = (map) => {
    const button = make("button", {
      type: "button", title: map.title, "aria-label": map.title, "aria-pressed": String(map === chosen),
      class: map.name === "mean" ? "all" : null,
      on: {
        click: () => {
          for (const other of grid.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
          onSelect(map);
        },
      },
    }, thumbnail(map.weights), map.name === "mean" ? "All heads" : "");
    return button;
  };
  const named = (name) => mapButton(maps.find((map) => map.name === name));
  const columnNames = [...(hasLayerMeans ? ["mean"] : []), ...heads[0].map((_, h) => h + 1)];
  grid.append(mapButton(maps[0]), ...columnNames.map((name) => make("span", { class: "column-name", "aria-hidden": "true" }, name)));
  heads.forEach((layer, l) => {
    grid.append(make("span", { class: "row-name" }, `Layer ${l + 1}`));
    if (hasLayerMeans) grid.append(named(`${l + 1}`));
    layer.forEach((_, h) => grid.append(named(`${l + 1}.${h + 1}`)));
  });
  enableRovingFocus(grid, "button", grid.querySelector("[aria-pressed='true']"));
  return grid;
}
