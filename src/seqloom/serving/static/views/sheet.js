// A translation on paper: its words, where they come from, and what else could stand there.

import { make, say } from "../shared/dom.js";
import { button } from "../shared/controls.js";
import { instead } from "../shared/instead.js";
import { ask } from "../shared/server.js";
import { END, percent, placesOf, rove, signed, split, wordButton, wordsOf } from "../shared/words.js";

function remark({ words, shown }) {
  if (!words.length) return make("span", { class: "note" }, "(nothing: the likeliest is to end at once)");
  return shown.finished ? "" : make("span", { class: "note" }, " (stopped at the length limit)");
}

export class Sheet {
  /** how: asked() who is asked; light(part, words) the source; changed(begin); failed(error) */
  constructor(parts, how) {
    this.how = how;
    this.parts = parts.map((part) => ({ ...part, best: part.outputs[0], shown: part.outputs[0], given: 0, links: [], steps: null }));
    this.before = [];
    this.group = make("div", { class: "words", dir: "auto", role: "group", "aria-label": "Translation" });
    this.tools = make("div", { class: "tools" });
    this.place = make("div", { class: "sheet" }, this.group, this.tools);
    for (const event of ["pointerover", "focusin"]) this.group.addEventListener(event, (one) => this.#ask(one.target));
    for (const event of ["pointerleave", "focusout"]) this.group.addEventListener(event, () => this.#leave());
    rove(this.group, how.signal);
    this.#draw();
    this.#align(this.parts);
  }

  #draw() {
    this.group.replaceChildren(...this.parts.flatMap((part, number) => {
      part.words = wordsOf(part.shown);
      part.buttons = part.words.map((word, at) => this.#word(part, number, word, at));
      const spaced = part.buttons.flatMap((one, at) => {
        const from = at ? part.words[at - 1].end : 0;
        return [part.shown.text.slice(from, part.words[at].begin), one];
      });
      return [part.before, ...spaced, remark(part)];
    }));
    const first = this.group.querySelector(".word");
    if (first) first.tabIndex = 0;
    this.#offerTools();
  }

  #word(part, number, word, at) {
    const given = word.pieces.length > 0 && word.pieces[0] < part.given;
    return wordButton(word, {
      class: `word${given ? " given" : ""}`, "data-part": number, "data-word": at, "aria-expanded": "false", "aria-haspopup": "dialog",
      on: { click: (event) => this.#open(event.currentTarget, part, word) },
    });
  }

  /** Where each word comes from: by one pass over what was put out. */
  async #align(parts) {
    if (!this.how.run.attention) return;
    const { beam, ...asked } = this.how.asked();
    try {
      const body = { ...asked, sources: parts.map((one) => one.source), targets: parts.map((one) => one.shown.text), attention: true };
      const { scores } = await ask("/api/score", body, { signal: this.how.signal });
      parts.forEach((part, at) => {
        part.links = scores[at].alignment ?? [];
        this.#tell(part);
      });
      // Somebody may have been pointing at a word since before this was known.
      this.#ask(this.group.querySelector(".word:focus, .word:hover") ?? this.group);
    } catch (error) {
      if (error.name !== "AbortError") say(error.message);
    }
  }

  #tell(part) {
    const sources = split(part.source);
    part.buttons.forEach((one, at) => {
      const from = part.links.filter(([, target]) => target === at).map(([source]) => sources[source]?.text).filter(Boolean);
      const sure = percent(Math.exp(part.words[at].log));
      one.title = from.length ? `${sure}, from ${from.join(" ")}` : sure;
    });
  }

  #ask(element) {
    const word = element.closest?.(".word");
    if (!word) return;
    const number = Number(word.dataset.part), at = Number(word.dataset.word);
    this.how.light(number, this.parts[number].links.filter(([, target]) => target === at).map(([source]) => source));
  }

  /** What is being chosen instead of stays lit. */
  #leave() {
    const open = this.group.querySelector("[aria-expanded='true']");
    if (open) this.#ask(open);
    else this.how.light(0, []);
  }

  /** Light up the words that come from the one at a place of the text. */
  lightFrom(place) {
    let begin = 0;
    for (const part of this.parts) {
      begin += part.before.length;
      const source = split(part.source).findIndex((one) => place >= begin + one.begin && place <= begin + one.end);
      part.buttons.forEach((one, at) => {
        const lit = part.links.some(([from, target]) => from === source && target === at);
        one.style.setProperty("--lit", lit ? 0.6 : 0);
      });
      begin += part.source.length;
    }
  }

  async #open(anchor, part, word) {
    if (!word.pieces.length) return;
    try {
      const tokens = part.shown.tokens.filter((_, at) => part.shown.pieces[at] !== END);
      part.steps ??= (await ask("/api/alternatives", { ...this.how.asked(), text: part.source, tokens }, { signal: this.how.signal })).steps;
    } catch (error) {
      this.how.failed(error);
      return;
    }
    const panel = instead(anchor, {
      word, pieces: part.shown.pieces, steps: part.steps, closed: () => this.#leave(),
      choose: (step, token) => {
        panel.close(false);
        this.#goOn(part, [...part.shown.tokens.slice(0, step), token]);
      },
      write: (typed) => {
        panel.close(false);
        this.#write(part, part.shown.text.slice(0, word.begin) + typed);
      },
    });
  }

  async #goOn(part, begin) {
    try {
      const { output } = await ask("/api/continue", { ...this.how.asked(), text: part.source, begin }, { signal: this.how.signal });
      this.#take(part, output, begin.length);
    } catch (error) {
      this.how.failed(error);
    }
  }

  /** A word of one's own: as text, since only the model knows its pieces. */
  async #write(part, prefix) {
    try {
      const body = { ...this.how.asked(), texts: [part.source], split: false, prefix };
      const { translations } = await ask("/api/translate", body, { signal: this.how.signal });
      const [output] = translations[0].parts[0].outputs;
      this.#take(part, output, placesOf(output).findLastIndex((one) => one && one.end <= prefix.length) + 1);
    } catch (error) {
      this.how.failed(error);
    }
  }

  #take(part, output, given) {
    this.before.push({ part, shown: part.shown, given: part.given });
    this.#put(part, output, given);
  }

  #put(part, output, given) {
    Object.assign(part, { shown: output, given, steps: null, links: [] });
    this.#draw();
    this.#align([part]);
    const begin = given ? `${this.parts.indexOf(part)}.${output.tokens.slice(0, given).join(".")}` : null;
    this.how.changed(begin);
    say(output.text);
    (part.buttons.find((one) => !one.classList.contains("given")) ?? part.buttons.at(-1))?.focus();
  }

  /** A choice that a link names: the number of the part, and its first tokens. */
  restore(link) {
    const [number, ...begin] = link.split(".").map(Number);
    const part = this.parts[number];
    if (part && begin.length && begin.every(Number.isInteger)) this.#goOn(part, begin);
  }

  #offerTools() {
    const chosen = this.parts.some((part) => part.given);
    this.tools.replaceChildren(...(chosen ? [
      button("Undo", () => this.#undo(), { picture: "undo" }),
      button("The model’s own", () => this.#reset(), { kind: "quiet" }),
    ] : []));
  }

  #undo() {
    const last = this.before.pop();
    if (last) this.#put(last.part, last.shown, last.given);
    else this.#reset();
  }

  #reset() {
    this.before = [];
    for (const part of this.parts.filter((one) => one.given)) this.#put(part, part.best, 0);
  }

  /** The other outputs of the search; pressing one puts it on the sheet. */
  versions() {
    const [part] = this.parts;
    const others = part.outputs.filter((one) => one.text !== part.shown.text);
    if (!others.length) return "";
    return make("section", { class: "versions" }, make("h2", {}, "Other translations"),
      make("ul", {}, others.map((one) => make("li", {},
        make("button", { type: "button", class: "plain", dir: "auto", on: { click: () => this.#take(part, one, one.tokens.length) } }, one.text),
        make("span", { class: "percent" }, `log p ${signed(one.score)} a token`)))));
  }
}
