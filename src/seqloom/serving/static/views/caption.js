// Caption view: describes an image, and shows the attention of each word over the image.

import { announce, make } from "../components/dom.js";
import { runSelect } from "../shared/fields.js";
import { optionControls } from "../shared/option-controls.js";
import { latestOnly } from "../shared/scheduling.js";
import { request } from "../shared/api-client.js";
import { emptyMessage, resultArea, viewHeader } from "../shared/panels.js";
import { enableArrowKeys, formatScore, outputText, probabilityLegend, textWithButtons, wordButton, wordsOf } from "../components/words.js";

const IMAGE_SIZE = 420, THUMBNAIL_SIZE = 116;
const MAX_OUTPUTS = 3;

export const caption = {
  name: "caption",
  title: "Caption",
  isAvailable: (catalogue) => catalogue.ofKind("captioning").length > 0,
  render(container, context) {
    const { settings, signal, catalogue } = context;
    const runs = catalogue.ofKind("captioning");
    let run = catalogue.findRun(runs, settings.run);
    let image = null;
    const result = resultArea();
    const requests = latestOnly(signal);
    const options = optionControls("caption", context, { getRun: () => run, onChange: load });
    const input = make("input", { type: "file", accept: "image/*", class: "visually-hidden", id: "image", on: { change: () => readImage(input.files[0]) } });

    async function readImage(file) {
      if (!file) return;
      try {
        image = { file, bitmap: await createImageBitmap(file) };
      } catch {
        result.showError(new Error("This file cannot be read as an image. Choose a JPEG, PNG, GIF or WebP file."));
        return;
      }
      load();
    }

    function load() {
      if (!image) return;
      result.showLoading("Captioning …");
      const fields = options.fields(), count = Math.min(fields.beam, MAX_OUTPUTS, catalogue.limits.alternatives + 1);
      const path = `/api/caption?${new URLSearchParams({ run: run.name, ...fields, n_best: count })}`;
      const type = image.file.type.startsWith("image/") ? image.file.type : "image/unknown";
      requests.run((inner) => request(path, image.file, { signal: inner, type }), { onResult: show, onError: (error) => result.showError(error, load) });
    }

    function show({ outputs, grid }) {
      const [best, ...others] = outputs;
      const canvas = make("canvas", { width: IMAGE_SIZE, height: IMAGE_SIZE, role: "img", "aria-label": `The image: ${best.text}` });
      const words = wordsOf(best);
      const weightsOf = (word) => best.attention && word.pieces.length ? meanRow(word.pieces.map((piece) => best.attention[piece])) : null;
      const showAttention = (word) => drawImage(canvas, image.bitmap, weightsOf(word), grid);
      const hideAttention = () => drawImage(canvas, image.bitmap, null, grid);
      hideAttention();
      const buttons = words.map((word) => wordButton(word, { on: {
        pointerenter: () => showAttention(word), pointerleave: hideAttention, focus: () => showAttention(word), blur: hideAttention,
      } }));
      const group = make("p", { class: "words", role: "group", "aria-label": "Caption", dir: "auto" }, textWithButtons(best.text, words, buttons));
      enableArrowKeys(group, signal);
      result.show(
        make("div", { class: "card captioned" }, canvas,
          make("div", {}, group, probabilityLegend(),
            others.length > 0 && make("section", { class: "n-best" }, make("h2", {}, "Other captions"),
              make("ul", {}, others.map((output) => make("li", {}, outputText(output), make("span", { class: "percent" }, `log p per token ${formatScore(output.score)}`))))))),
        grid && make("section", { class: "card" }, make("h2", {}, "Attention of each word"),
          make("ul", { class: "word-attention" }, words.map((word) => {
            const small = make("canvas", { width: THUMBNAIL_SIZE, height: THUMBNAIL_SIZE, role: "img", "aria-label": `Attention of “${word.text}”` });
            drawImage(small, image.bitmap, weightsOf(word), grid);
            return make("li", {}, small, word.text);
          }))));
      announce(best.text);
    }

    const dropZone = make("div", { class: "card drop-zone" },
      make("p", {}, make("label", { for: "image", class: "as-button" }, "Choose an image"), input),
      make("p", { class: "note" }, "or drop or paste one here. The server does not store it, so links do not contain the image."));
    for (const name of ["dragover", "drop"]) dropZone.addEventListener(name, (event) => {
      event.preventDefault();
      dropZone.classList.toggle("over", name === "dragover");
      if (name === "drop") readImage(event.dataTransfer.files[0]);
    });
    dropZone.addEventListener("dragleave", () => dropZone.classList.remove("over"));
    addEventListener("paste", (event) => readImage(event.clipboardData.files[0]), { signal });
    container.append(
      viewHeader("Caption", "Describes an image. Point at a word to see its attention. The model reads the central square of the image.",
        runSelect(context, runs, run, (next) => {
          run = next;
          context.update({ run: run.name });
          load();
        })),
      make("div", { class: "toolbar" }, dropZone, options.elements),
      result.element);
    result.show(emptyMessage("The caption appears here, with the attention of each word."));
  },
};

const meanRow = (rows) => rows[0].map((_, at) => rows.reduce((sum, row) => sum + row[at], 0) / rows.length);

/** Draws the central square of the image; with weights, darkens the cells that get less attention. */
function drawImage(canvas, bitmap, weights, grid) {
  const context = canvas.getContext("2d"), side = Math.min(bitmap.width, bitmap.height), size = canvas.width;
  context.globalCompositeOperation = "source-over";
  context.drawImage(bitmap, (bitmap.width - side) / 2, (bitmap.height - side) / 2, side, side, 0, 0, size, size);
  if (!weights || !grid) return;
  const [rows, columns] = grid, largest = Math.max(...weights);
  const mask = document.createElement("canvas");
  [mask.width, mask.height] = [columns, rows];
  const maskContext = mask.getContext("2d");
  weights.forEach((weight, at) => {
    maskContext.fillStyle = `rgb(8 19 31 / ${0.82 * (1 - weight / largest)})`;
    maskContext.fillRect(at % columns, Math.floor(at / columns), 1, 1);
  });
  context.imageSmoothingEnabled = true;
  context.drawImage(mask, 0, 0, size, size);
}
