// Caption: an image in words, and where each word looked.

import { make, say } from "../shared/dom.js";
import { button, runChoice, slider } from "../shared/controls.js";
import { latest } from "../shared/latest.js";
import { ask } from "../shared/server.js";
import { empty, heading, stage } from "../shared/states.js";
import { legend, rove, signed, wordButton, wordsOf } from "../shared/words.js";

const SIDE = 420, SMALL = 116;
const VERSIONS = 3;

export const caption = {
  name: "caption",
  title: "Caption",
  available: (catalogue) => catalogue.of("captioning").length > 0,
  show(place, context) {
    const { settings, signal, catalogue } = context;
    const runs = catalogue.of("captioning");
    let run = catalogue.named(runs, settings.run);
    let image = null;
    const result = stage();
    const question = latest(signal);
    const beam = () => Math.min(Number(settings.beam ?? run.beam ?? 3), catalogue.limits.beam);
    const input = make("input", { type: "file", accept: "image/*", class: "unseen", id: "image", on: { change: () => take(input.files[0]) } });

    async function take(file) {
      if (!file) return;
      try {
        image = { file, bitmap: await createImageBitmap(file) };
      } catch {
        result.fail(new Error("this file cannot be read as an image; choose a JPEG, PNG, GIF or WebP"));
        return;
      }
      look();
    }

    function look() {
      if (!image) return;
      result.wait("Looking at it …");
      const count = Math.min(beam(), VERSIONS, catalogue.limits.alternatives + 1);
      const path = `/api/caption?run=${encodeURIComponent(run.name)}&beam=${beam()}&n_best=${count}`;
      const type = image.file.type.startsWith("image/") ? image.file.type : "image/unknown";
      question((inner) => ask(path, image.file, { signal: inner, type }), { found: present, failed: (error) => result.fail(error, look) });
    }

    function present({ outputs, grid }) {
      const [best, ...others] = outputs;
      const large = make("canvas", { width: SIDE, height: SIDE, role: "img", "aria-label": `The image: ${best.text}` });
      const words = wordsOf(best);
      const weights = (word) => best.attention && word.pieces.length ? average(word.pieces.map((piece) => best.attention[piece])) : null;
      paint(large, image.bitmap, null, grid);
      const group = make("p", { class: "words", role: "group", "aria-label": "Caption", dir: "auto" }, words.flatMap((word, at) => [
        best.text.slice(at ? words[at - 1].end : 0, word.begin),
        wordButton(word, { on: {
          pointerenter: () => paint(large, image.bitmap, weights(word), grid), pointerleave: () => paint(large, image.bitmap, null, grid),
          focus: () => paint(large, image.bitmap, weights(word), grid), blur: () => paint(large, image.bitmap, null, grid),
        } }),
      ]));
      rove(group, signal);
      result.show(
        make("div", { class: "card captioned" }, large,
          make("div", {}, group, legend(),
            others.length > 0 && make("section", { class: "versions" }, make("h2", {}, "Other captions"),
              make("ul", {}, others.map((one) => make("li", {}, one.text, make("span", { class: "percent" }, `log p ${signed(one.score)} a token`))))))),
        grid && make("section", { class: "card" }, make("h2", {}, "Where each word looked"),
          make("ul", { class: "glances" }, words.map((word) => {
            const small = make("canvas", { width: SMALL, height: SMALL, role: "img", "aria-label": `Where “${word.text}” looked` });
            paint(small, image.bitmap, weights(word), grid);
            return make("li", {}, small, word.text);
          }))));
      say(best.text);
    }

    const drop = make("div", { class: "card drop" },
      make("p", {}, make("label", { for: "image", class: "as-button" }, "Choose an image"), input),
      make("p", { class: "note" }, "or drop one here, or paste it. It goes to this service alone and is not kept, so a link cannot carry it."));
    for (const event of ["dragover", "drop"]) drop.addEventListener(event, (one) => {
      one.preventDefault();
      drop.classList.toggle("over", event === "dragover");
      if (event === "drop") take(one.dataTransfer.files[0]);
    });
    drop.addEventListener("dragleave", () => drop.classList.remove("over"));
    addEventListener("paste", (event) => take(event.clipboardData.files[0]), { signal });
    place.append(
      heading("Caption", "An image in words. Point at a word to see where it looked; only the middle square is seen.",
        runChoice(context, runs, run, (next) => {
          run = next;
          context.keep({ run: run.name });
          look();
        })),
      make("div", { class: "bar" }, drop, slider("Beam width", { min: 1, max: catalogue.limits.beam, value: beam() }, (width) => {
        context.keep({ beam: width });
        look();
      })),
      result.place);
    result.show(empty("The caption appears here, with the part of the image behind each word."));
  },
};

const average = (rows) => rows[0].map((_, at) => rows.reduce((sum, row) => sum + row[at], 0) / rows.length);

/** The middle square, bright where a word looked. */
function paint(canvas, bitmap, weights, grid) {
  const pen = canvas.getContext("2d"), side = Math.min(bitmap.width, bitmap.height), size = canvas.width;
  pen.globalCompositeOperation = "source-over";
  pen.drawImage(bitmap, (bitmap.width - side) / 2, (bitmap.height - side) / 2, side, side, 0, 0, size, size);
  if (!weights || !grid) return;
  const [rows, columns] = grid, most = Math.max(...weights);
  const mask = document.createElement("canvas");
  [mask.width, mask.height] = [columns, rows];
  const brush = mask.getContext("2d");
  weights.forEach((weight, at) => {
    brush.fillStyle = `rgb(8 19 31 / ${0.82 * (1 - weight / most)})`;
    brush.fillRect(at % columns, Math.floor(at / columns), 1, 1);
  });
  pen.imageSmoothingEnabled = true;
  pen.drawImage(mask, 0, 0, size, size);
}
