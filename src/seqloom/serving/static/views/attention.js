// Attention: where each word looked, layer by layer and head by head.

import { make, say } from "../shared/dom.js";
import { linkButton, runChoice, segments, sentence, targetChoice } from "../shared/controls.js";
import { examplesFor } from "../shared/examples.js";
import { latest, patient } from "../shared/latest.js";
import { looker } from "../shared/looker.js";
import { mean, thumbnail } from "../shared/matrix.js";
import { language } from "../shared/runs.js";
import { ask } from "../shared/server.js";
import { empty, heading, stage } from "../shared/states.js";
import { readable } from "../shared/words.js";

const lookers = (catalogue) => catalogue.of("translation").filter((run) => run.attention);

export const attention = {
  name: "attention",
  title: "Attention",
  available: (catalogue) => lookers(catalogue).length > 0,
  takes: lookers,
  show(place, context) {
    const { settings, signal, catalogue } = context;
    const runs = lookers(catalogue);
    let run = catalogue.named(runs, settings.run);
    const result = stage();
    const question = latest(signal);
    const later = patient(look, 250);
    const into = make("div");

    function look() {
      const text = settings.text ?? examplesFor(run)[0] ?? "";
      if (!text.trim()) {
        question.drop();
        result.show(empty("Give it a sentence, and see where every word of its translation looked."));
        return;
      }
      result.wait("Looking …");
      const body = {
        run: run.name, text, pieces: settings.units === "pieces",
        ...(run.targets.length > 1 && { target: settings.target ?? run.targets[0] }),
        ...(settings.output?.trim() && { output: settings.output }),
      };
      question((inner) => ask("/api/attention", body, { signal: inner }), { found: present, failed: (error) => result.fail(error, look) });
    }

    function present(found) {
      const { heads, output } = found;
      const [outputs, sources] = [found.outputs, found.sources].map((several) => several.map((one) => readable(one)));
      const narrow = innerWidth < 832, beside = heads[0].length > 1 ? 58 * (heads[0].length + 1) + 24 : 0;
      const views = offered(found);
      const board = make("div");
      const chosen = views.find((one) => one.name === settings.head) ?? views[0];
      const buttons = views.length > 1 ? thumbnails(views, heads, chosen, (view) => {
        context.keep({ head: view.name });
        put(view);
      }) : null;
      function put(view) {
        board.replaceChildren(
          make("h2", {}, view.words),
          looker({ outputs, sources, weights: view.weights }, {
            title: output.text, signal, room: innerWidth - (narrow ? 90 : 390 + beside), cell: settings.zoom && Number(settings.zoom), zoomed: (zoom) => context.keep({ zoom }),
          }));
        say(view.words);
      }
      put(chosen);
      result.show(
        make("p", { class: "words translation", dir: "auto" }, output.text),
        make("div", { class: `card looks${buttons ? " many" : ""}` }, buttons, board));
    }

    function offer() {
      into.replaceChildren(targetChoice(run, settings.target ?? run.targets[0], language, (target) => {
        context.keep({ target });
        look();
      }) ?? "");
    }
    offer();
    place.append(
      heading("Attention", "A row for each word that was put out: the darker a cell, the more the word looked there.",
        runChoice(context, runs, run, (next) => {
          run = next;
          context.keep({ run: run.name, head: null, target: null });
          offer();
          look();
        })),
      make("div", { class: "asks even" },
        sentence("Text", settings.text ?? examplesFor(run)[0] ?? "", (text) => {
          context.keep({ text, run: run.name });
          later();
        }, { most: catalogue.limits.characters }), into,
        sentence("Output", settings.output ?? "", (output) => {
          context.keep({ output });
          later();
        }, { placeholder: "the model’s own; or type another", most: catalogue.limits.characters }),
        make("div", { class: "bar" }, segments("Between", [["words", "Words"], ["pieces", "Pieces"]], settings.units ?? "words", (units) => {
          context.keep({ units });
          look();
        }), linkButton())),
      result.place);
    look();
  },
};

/** The mean of all, of each layer, and every head by itself. */
function offered({ weights, heads }) {
  const views = [{ name: "mean", words: "Mean of all heads", weights }];
  if (heads.length * heads[0].length < 2) return [{ ...views[0], words: "Where each word looked" }];
  heads.forEach((layer, l) => {
    if (heads.length > 1) views.push({ name: `${l + 1}`, words: `Layer ${l + 1}, mean of its heads`, weights: mean(layer) });
    layer.forEach((one, h) => views.push({ name: `${l + 1}.${h + 1}`, words: `Layer ${l + 1}, head ${h + 1}`, weights: one }));
  });
  return views;
}

function thumbnails(views, heads, chosen, show) {
  const grid = make("div", { class: "heads", role: "group", "aria-label": "Layers and heads", vars: { columns: heads[0].length + (heads.length > 1 ? 1 : 0) } });
  const one = (view) => {
    const button = make("button", {
      type: "button", title: view.words, "aria-label": view.words, "aria-pressed": String(view === chosen),
      class: view.name === "mean" ? "all" : null,
      on: {
        click: () => {
          for (const other of grid.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
          show(view);
        },
      },
    }, thumbnail(view.weights), view.name === "mean" ? "All heads" : "");
    return button;
  };
  const columns = [...(heads.length > 1 ? ["mean"] : []), ...heads[0].map((_, h) => h + 1)];
  grid.append(one(views[0]), ...columns.map((words) => make("span", { class: "column-name", "aria-hidden": "true" }, words)));
  heads.forEach((layer, l) => {
    grid.append(make("span", { class: "row-name" }, `Layer ${l + 1}`));
    if (heads.length > 1) grid.append(one(views.find((view) => view.name === `${l + 1}`)));
    layer.forEach((_, h) => grid.append(one(views.find((view) => view.name === `${l + 1}.${h + 1}`))));
  });
  return grid;
}
