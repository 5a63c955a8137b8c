// Compare: two runs and one sentence, side by side, each asked what it thinks of the other.

import { make } from "../shared/dom.js";
import { choice, linkButton, sentence } from "../shared/controls.js";
import { examplesFor } from "../shared/examples.js";
import { latest, patient } from "../shared/latest.js";
import { looker } from "../shared/looker.js";
import { facts } from "../shared/runs.js";
import { ask } from "../shared/server.js";
import { empty, heading, stage } from "../shared/states.js";
import { legend, readable, rove, signed, wordButton, wordsOf } from "../shared/words.js";

const translators = (catalogue) => catalogue.of("translation");

export const compare = {
  name: "compare",
  title: "Compare",
  available: (catalogue) => translators(catalogue).length > 1,
  takes: translators,
  show(place, context) {
    const { settings, signal, catalogue } = context;
    const runs = translators(catalogue);
    const first = () => catalogue.named(runs, settings.run);
    const second = () => {
      const others = runs.filter((one) => one !== first());
      return others.find((one) => one.name === settings.with) ?? others[0];
    };
    const result = stage({ class: "stage sides" });
    const question = latest(signal);
    const later = patient(look, 250);
    const lists = make("div", { class: "bar" });
    const text = () => settings.text ?? examplesFor(first())[0] ?? "";

    function look() {
      if (!text().trim()) {
        question.drop();
        result.show(empty("Give them a sentence, and see what each of them makes of it."));
        return;
      }
      result.wait("Asking both …");
      question((inner) => both([first(), second()], text(), inner), { found: present, failed: (error) => result.fail(error, look) });
    }

    function present(found) {
      result.show(
        make("div", { class: "two" }, found.map((one, place) => side(one, found[1 - place], signal))),
        opinions(found), legend());
    }

    function offer() {
      const options = (list) => list.map((one) => [one.name, one.name]);
      lists.replaceChildren(
        choice("First", options(runs), first().name, (name) => {
          context.keep({ run: name, with: name === second().name ? first().name : settings.with });
          offer();
          look();
        }),
        choice("Second", options(runs.filter((one) => one !== first())), second().name, (name) => {
          context.keep({ with: name });
          look();
        }), linkButton());
    }
    offer();
    place.append(
      heading("Compare", "Two runs on the same sentence: what they say, how sure they are, and where they looked."),
      make("div", { class: "asks" },
        sentence("Text", text(), (words) => {
          context.keep({ text: words });
          later();
        }, { most: catalogue.limits.characters }), lists),
      result.place);
    look();
  },
};

/** What each says, how it likes what the other said, and where it looked. */
async function both(runs, text, signal) {
  const asked = (run) => ({ run: run.name, ...(run.targets.length > 1 && { target: run.targets[0] }) });
  const found = await Promise.all(runs.map(async (run) => {
    const begun = performance.now();
    const { translations } = await ask("/api/translate", { ...asked(run), texts: [text], split: false }, { signal });
    return { run, output: translations[0].parts[0].outputs[0], milliseconds: performance.now() - begun };
  }));
  await Promise.all(found.map(async (one) => {
    const targets = found.map((each) => each.output.text);
    const { scores } = await ask("/api/score", { ...asked(one.run), sources: targets.map(() => text), targets }, { signal });
    one.likes = scores.map((each) => each.log_probabilities.reduce((sum, log) => sum + (log ?? -Infinity), 0));
    if (one.run.attention) one.look = await ask("/api/attention", { ...asked(one.run), text, output: one.output.text }, { signal });
  }));
  return found;
}

/** Without marks before and behind. */
const bare = (word) => word.toLowerCase().replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "");

function side({ run, output, milliseconds, look }, other, signal) {
  const theirs = new Set(wordsOf(other.output).map((word) => bare(word.text)));
  const words = wordsOf(output);
  const group = make("p", { class: "words", dir: "auto", role: "group", "aria-label": `Translation of ${run.name}` },
    words.flatMap((word, at) => [
      output.text.slice(at ? words[at - 1].end : 0, word.begin),
      wordButton(word, { class: theirs.has(bare(word.text)) ? "word" : "word differs" }),
    ]));
  rove(group, signal);
  const labels = (several) => several.map((one) => readable(one));
  return make("section", { class: "card compared" },
    make("h2", {}, run.name), make("p", { class: "facts" }, facts(run)),
    group,
    make("p", { class: "facts" }, `log p ${signed(output.score)} a token · ${Math.round(milliseconds)} ms`),
    look
      ? looker({ outputs: labels(look.outputs), sources: labels(look.sources), weights: look.weights }, { title: output.text, signal, tools: false, room: 430 })
      : make("p", { class: "state" }, "No attention: all it knew of the sentence was in one vector."));
}

/** How probable each finds both outputs. */
function opinions(found) {
  return make("section", { class: "card" }, make("h2", {}, "What each thinks of both"),
    make("table", {},
      make("thead", {}, make("tr", {}, make("td"), found.map((one) => make("th", { scope: "col" }, `log p by ${one.run.name}`)))),
      make("tbody", {}, found.map((one, row) => make("tr", {}, make("th", { scope: "row", dir: "auto" }, one.output.text),
        found.map((judge) => make("td", {}, signed(judge.likes[row]))))))));
}
