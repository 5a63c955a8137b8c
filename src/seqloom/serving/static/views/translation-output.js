// The output of the translate view: words with probabilities and alignments, which can be replaced.

import { announce, make } from "../shared/dom.js";
import { button } from "../shared/controls.js";
import { openAlternatives } from "../shared/alternatives.js";
import { request } from "../shared/api-client.js";
import { END, enableArrowKeys, formatPercent, formatScore, pieceSpans, splitWords, textWithButtons, wordButton, wordsOf } from "../shared/words.js";

function outputNote({ words, output }) {
  if (!words.length) return make("span", { class: "note" }, "(empty output: END is the most probable first token)");
  return output.finished ? "" : make("span", { class: "note" }, " (stopped at the length limit)");
}

/**
 * Shows the sentences of a translation. The user can replace a token; the server then decodes the rest again.
 *
 * Each sentence has
 *   before, source, outputs    from the response of /api/translate
 *   output                     the output that is shown; best: the first output of the search
 *   forcedLength               number of tokens at the start of the output that the user has fixed
 *   alignment                  pairs of word indices [source, target]
 *   alternatives               the most probable tokens at each step; null until they are requested
 */
export class TranslationOutput {
  /**
   * options: run, signal
   *   requestFields()             the fields run, target and beam of a request
   *   highlightSource(sentence, words)   highlights words of the source text
   *   onChange(link)              called when the user replaces a token; link encodes the forced tokens, or is null
   *   onError(error)
   */
  constructor(parts, options) {
    this.options = options;
    this.sentences = parts.map((part) => ({ ...part, best: part.outputs[0], output: part.outputs[0], forcedLength: 0, alignment: [], alternatives: null }));
    this.history = [];
    this.group = make("div", { class: "words", dir: "auto", role: "group", "aria-label": "Translation" });
    this.tools = make("div", { class: "tools" });
    this.element = make("div", { class: "translation-output" }, this.group, this.tools);
    for (const name of ["pointerover", "focusin"]) this.group.addEventListener(name, (event) => this.#highlightSourceOf(event.target));
    for (const name of ["pointerleave", "focusout"]) this.group.addEventListener(name, () => this.#clearHighlight());
    enableArrowKeys(this.group, options.signal);
    this.#render();
    this.#loadAlignment(this.sentences);
  }

  #render() {
    this.group.replaceChildren(...this.sentences.flatMap((sentence, number) => {
      sentence.words = wordsOf(sentence.output);
      sentence.buttons = sentence.words.map((word, index) => this.#createWord(sentence, number, word, index));
      return [sentence.before, ...textWithButtons(sentence.output.text, sentence.words, sentence.buttons), outputNote(sentence)];
    }));
    const first = this.group.querySelector(".word");
    if (first) first.tabIndex = 0;
    this.#updateTools();
  }

  #createWord(sentence, number, word, index) {
    const isForced = word.pieces.length > 0 && word.pieces[0] < sentence.forcedLength;
    return wordButton(word, {
      class: `word${isForced ? " forced" : ""}`, "data-sentence": number, "data-word": index, "aria-expanded": "false", "aria-haspopup": "dialog",
      on: { click: (event) => this.#openAlternatives(event.currentTarget, sentence, word) },
    });
  }

  /** Requests the alignment of each output with its source. */
  async #loadAlignment(sentences) {
    if (!this.options.run.attention) return;
    const { beam, ...fields } = this.options.requestFields();
    try {
      const body = { ...fields, sources: sentences.map((sentence) => sentence.source), targets: sentences.map((sentence) => sentence.output.text), attention: true };
      const { scores } = await request("/api/score", body, { signal: this.options.signal });
      sentences.forEach((sentence, index) => {
        sentence.alignment = scores[index].alignment ?? [];
        this.#updateTitles(sentence);
      });
      // A word may have been hovered or focused before its alignment arrived.
      this.#highlightSourceOf(this.group.querySelector(".word:focus, .word:hover") ?? this.group);
    } catch (error) {
      if (error.name !== "AbortError") announce(error.message);
    }
  }

  #updateTitles(sentence) {
    const sourceWords = splitWords(sentence.source);
    sentence.buttons.forEach((element, index) => {
      const aligned = sentence.alignment.filter(([, target]) => target === index).map(([source]) => sourceWords[source]?.text).filter(Boolean);
      const probability = formatPercent(Math.exp(sentence.words[index].logProbability));
      element.title = aligned.length ? `${probability}, aligned with ${aligned.join(" ")}` : probability;
    });
  }

  #highlightSourceOf(element) {
    const word = element.closest?.(".word");
    if (!word) return;
    const number = Number(word.dataset.sentence), index = Number(word.dataset.word);
    this.options.highlightSource(number, this.sentences[number].alignment.filter(([, target]) => target === index).map(([source]) => source));
  }

  /** Removes the highlight. If the alternatives of a word are open, highlights that word again. */
  #clearHighlight() {
    const open = this.group.querySelector("[aria-expanded='true']");
    if (open) this.#highlightSourceOf(open);
    else this.options.highlightSource(0, []);
  }

  /** Highlights the words aligned with the source word at a character position of the source text. */
  highlightAlignedWith(position) {
    let begin = 0;
    for (const sentence of this.sentences) {
      begin += sentence.before.length;
      const source = splitWords(sentence.source).findIndex((word) => position >= begin + word.begin && position <= begin + word.end);
      sentence.buttons.forEach((element, index) => {
        const isAligned = sentence.alignment.some(([from, target]) => from === source && target === index);
        element.style.setProperty("--highlight", isAligned ? 0.6 : 0);
      });
      begin += sentence.source.length;
    }
  }

  async #openAlternatives(anchor, sentence, word) {
    if (!word.pieces.length) return;
    try {
      const tokens = sentence.output.tokens.filter((_, index) => sentence.output.pieces[index] !== END);
      sentence.alternatives ??= (await request("/api/alternatives", { ...this.options.requestFields(), text: sentence.source, tokens }, { signal: this.options.signal })).steps;
    } catch (error) {
      this.options.onError(error);
      return;
    }
    const panel = openAlternatives(anchor, {
      word, pieces: sentence.output.pieces, steps: sentence.alternatives, onClose: () => this.#clearHighlight(),
      onToken: (step, token) => {
        panel.close(false);
        this.#decodeFrom(sentence, [...sentence.output.tokens.slice(0, step), token]);
      },
      onText: (text) => {
        panel.close(false);
        this.#decodeFromText(sentence, sentence.output.text.slice(0, word.begin) + text);
      },
    });
  }

  /** Decodes the rest of a sentence after these tokens. */
  async #decodeFrom(sentence, tokens) {
    try {
      const { output } = await request("/api/continue", { ...this.options.requestFields(), text: sentence.source, begin: tokens }, { signal: this.options.signal });
      this.#replaceOutput(sentence, output, tokens.length);
    } catch (error) {
      this.options.onError(error);
    }
  }

  /** Decodes the rest of a sentence after a text, which the server tokenises. */
  async #decodeFromText(sentence, prefix) {
    try {
      const body = { ...this.options.requestFields(), texts: [sentence.source], split: false, prefix };
      const { translations } = await request("/api/translate", body, { signal: this.options.signal });
      const [output] = translations[0].parts[0].outputs;
      this.#replaceOutput(sentence, output, pieceSpans(output).findLastIndex((span) => span && span.end <= prefix.length) + 1);
    } catch (error) {
      this.options.onError(error);
    }
  }

  #replaceOutput(sentence, output, forcedLength) {
    this.history.push({ sentence, output: sentence.output, forcedLength: sentence.forcedLength });
    this.#setOutput(sentence, output, forcedLength);
  }

  #setOutput(sentence, output, forcedLength) {
    Object.assign(sentence, { output, forcedLength, alternatives: null, alignment: [] });
    this.#render();
    this.#loadAlignment([sentence]);
    this.options.onChange(forcedLength ? `${this.sentences.indexOf(sentence)}.${output.tokens.slice(0, forcedLength).join(".")}` : null);
    announce(output.text);
    (sentence.buttons.find((element) => !element.classList.contains("forced")) ?? sentence.buttons.at(-1))?.focus();
  }

  /** Restores forced tokens from a link: the index of the sentence, then its tokens, separated by points. */
  restore(link) {
    const [index, ...tokens] = link.split(".").map(Number);
    const sentence = this.sentences[index];
    if (sentence && tokens.length && tokens.every(Number.isInteger)) this.#decodeFrom(sentence, tokens);
  }

  #updateTools() {
    const hasChanges = this.sentences.some((sentence) => sentence.forcedLength);
    this.tools.replaceChildren(...(hasChanges ? [
      button("Undo", () => this.#undo(), { iconName: "undo" }),
      button("Reset to the model’s output", () => this.#reset(), { kind: "quiet" }),
    ] : []));
  }

  #undo() {
    const last = this.history.pop();
    if (last) this.#setOutput(last.sentence, last.output, last.forcedLength);
    else this.#reset();
  }

  #reset() {
    this.history = [];
    for (const sentence of this.sentences.filter((each) => each.forcedLength)) this.#setOutput(sentence, sentence.best, 0);
  }

  /** The other outputs of the search for the first sentence; clicking one shows it. */
  otherOutputs() {
    const [sentence] = this.sentences;
    const others = sentence.outputs.filter((output) => output.text !== sentence.output.text);
    if (!others.length) return "";
    return make("section", { class: "n-best" }, make("h2", {}, "Other translations"),
      make("ul", {}, others.map((output) => make("li", {},
        make("button", { type: "button", class: "plain", dir: "auto", on: { click: () => this.#replaceOutput(sentence, output, output.tokens.length) } }, output.text),
        make("span", { class: "percent" }, `log p per token ${formatScore(output.score)}`)))));
  }
}
