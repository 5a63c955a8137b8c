// Translate: type, see the translation appear, ask each word where it comes from, choose another.

import { make, say } from "../shared/dom.js";
import { button, linkButton, runChoice, slider, targetChoice } from "../shared/controls.js";
import { examplesFor } from "../shared/examples.js";
import { latest, patient } from "../shared/latest.js";
import { language } from "../shared/runs.js";
import { ask, listen } from "../shared/server.js";
import { empty, heading, stage } from "../shared/states.js";
import { typed } from "../shared/typed.js";
import { legend, split } from "../shared/words.js";
import { Sheet } from "./sheet.js";

const PAUSE = 160;
const VERSIONS = 4;
/** A beam changes its mind until the end, so what grows is greedy; sentences are split elsewhere. */
const ONE_SENTENCE = /^[^.!?…。！？\n]*[.!?…。！？]*\s*$/u;

export const translate = {
  name: "translate",
  title: "Translate",
  available: (catalogue) => catalogue.of("translation").length > 0,
  takes: (catalogue) => catalogue.of("translation"),
  show(place, context) {
    const runs = context.catalogue.of("translation");
    const { settings, signal, catalogue } = context;
    let run = catalogue.named(runs, settings.run);
    const question = latest(signal);
    const later = patient(translateNow, PAUSE);
    const most = catalogue.limits.characters;
    // Who only opens the page sees something at once.
    const begun = settings.text ?? (context.unasked ? examplesFor(run)[0] : null) ?? "";
    const source = typed("Text", begun, {
      most, placeholder: "Type or paste a text …",
      changed(text) {
        context.keep({ text, run: run.name, begin: null });
        source.light([]);
        later();
      },
    });
    const output = stage({ class: "stage output" });
    const below = make("div", { class: "below" });
    const sourceName = make("span"), targetName = make("span"), into = make("div");
    const beam = () => Number(settings.beam ?? run.beam ?? Math.min(5, catalogue.limits.beam));
    let sheet = null;

    function describe() {
      const [pair] = run.languages.length === 1 ? run.languages : [];
      sourceName.textContent = pair ? language(pair.source) : "Source";
      targetName.textContent = pair ? language(pair.target) : "Translation";
      into.replaceChildren(targetChoice(run, settings.target ?? run.targets[0], language, (target) => {
        context.keep({ target, begin: null });
        later.now();
      }) ?? "");
    }

    const target = () => (run.targets.length > 1 ? settings.target ?? run.targets[0] : undefined);
    const asked = () => ({ run: run.name, ...(target() && { target: target() }) });

    async function work(inner) {
      const texts = [source.input.value], begun = performance.now();
      if (ONE_SENTENCE.test(texts[0]) && !settings.begin) await grow(texts, inner);
      const width = beam(), count = Math.min(width, VERSIONS, catalogue.limits.alternatives + 1);
      const found = await ask("/api/translate", { ...asked(), texts, beam: width, n_best: count }, { signal: inner });
      return { ...found.translations[0], milliseconds: performance.now() - begun };
    }

    async function grow(texts, inner) {
      const line = make("p", { class: "words growing", dir: "auto", "aria-hidden": "true" });
      for await (const { name, content } of listen("/api/translate/stream", { ...asked(), texts }, { signal: inner })) {
        if (name !== "token") continue;
        line.textContent = content.text;
        if (!line.isConnected) output.show(line);
      }
    }

    function translateNow() {
      below.replaceChildren();
      if (!source.input.value.trim()) {
        question.drop();
        welcome();
        return;
      }
      output.wait("Reading …");
      question(work, { found: present, failed: (error) => output.fail(error, translateNow) });
    }

    function present(translation) {
      sheet = new Sheet(translation.parts, {
        asked: () => ({ ...asked(), beam: beam() }), run, signal, light, failed: (error) => output.fail(error, translateNow),
        changed: (begin) => {
          context.keep({ begin });
          more(translation);
        },
      });
      output.show(sheet.place);
      more(translation);
      say(translation.text);
      if (settings.begin) sheet.restore(settings.begin);
    }

    /** Light up words of the text: numbers of words of a part, by how much. */
    function light(part, words) {
      const begin = sheet.parts.slice(0, part).reduce((sum, one) => sum + one.before.length + one.source.length, 0)
        + (sheet.parts[part]?.before.length ?? 0);
      const spans = split(sheet.parts[part]?.source ?? "");
      source.light(words.filter((word) => spans[word]).map((word) => (
        { begin: begin + spans[word].begin, end: begin + spans[word].end, lit: 1 })));
    }

    function more(translation) {
      const text = sheet.parts[0].source;
      const others = [["attention", "Where it looked"], ["search", "How it was found"], ["inside", "One step inside"], ["compare", "Another run"]]
        .filter(([name]) => context.offers(name) && (name !== "attention" || run.attention));
      below.replaceChildren(
        make("div", { class: "below-bar" }, legend(),
          make("p", { class: "facts" }, `beam ${beam()} · ${Math.round(translation.milliseconds)} ms`)),
        sheet.parts.length === 1 ? sheet.versions() : "",
        make("p", { class: "onward" }, others.map(([name, words]) =>
          make("a", { href: context.link(name, { run: run.name, text, target: target() }) }, words))));
    }

    function welcome() {
      source.light([]);
      output.show(empty("The translation appears here, word by word.",
        make("div", { class: "examples" }, examplesFor(run).map((words) => button(words, () => source.put(words))))));
    }

    source.input.addEventListener("keyup", () => sheet?.lightFrom(source.input.selectionStart), { signal });
    source.input.addEventListener("click", () => sheet?.lightFrom(source.input.selectionStart), { signal });
    describe();
    place.append(
      heading("Translate", "Every word knows how sure it is and where it comes from. Press one to choose another.",
        runChoice(context, runs, run, (next) => {
          run = next;
          context.keep({ run: run.name, begin: null, target: null });
          describe();
          later.now();
        })),
      make("div", { class: "panes" },
        make("div", { class: "card pane" },
          make("div", { class: "pane-head" }, make("h2", {}, source.title, " ", sourceName), into,
            button("Clear", () => source.put(""), { kind: "quiet" })),
          source.place),
        make("div", { class: "card pane" },
          make("div", { class: "pane-head" }, make("h2", {}, targetName), linkButton()),
          output.place)),
      make("div", { class: "bar" }, slider("Beam width", { min: 1, max: catalogue.limits.beam, value: beam() }, (width) => {
        context.keep({ beam: width, begin: null });
        later();
      })),
      below);
    translateNow();
  },
};
