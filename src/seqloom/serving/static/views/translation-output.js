// The output of the translate view: words with probabilities and alignments, which can be replaced.

import { announce, make } from "../components/dom.js";
import { button } from "../components/controls.js";
import { openAlternatives } from "../shared/alternatives.js";
import { request } from "../shared/api-client.js";
import { END, enableArrowKeys, formatPercent, formatScore, outputText, pieceSpans, splitWords, textWithButtons, wordButton, wordsOf } from "../components/words.js";
import { findWordAlternatives } from "../shared/word-alternatives.js";

function outputNote({ words, output }) {
  if (!words.length) return make("span", { class: "note" }, "(empty output: END is the most probable first token)");
  return output.finished ? "" : make("span", { class: "note" }, " (stopped at the length limit)");
}

/**
 * Shows the sentences of a translation. The user can replace a word; the server then decodes the rest again.
 *
 * Each sentence has
 *   before, source, outputs    from the response of /api/translate
 *   output                     the output that is shown; best: the first output of the search
 *   forcedLength               number of tokens at the start of the output that the user has fixed
 *   alignment                  pairs of word indices [source, target]
 *   element                    contains the words of the sentence
 */
export class TranslationOutput {
  /**
   * options: run, signal, limits
   *   requestFields()             the fields run, target and beam of a request
   *   highlightSource(sentence, words)   highlights words of the source text
   *   onChange(link)              called when the user replaces a word; link encodes the forced tokens, or is null
   *   onSelect(sentence)          called with the index of a sentence when the user clicks one of its words
   *   onError(error, retry)
   */
  constructor(parts, options) {
    this.options = options;
    this.sentences = [];
    this.history = [];
    this.group = make("div", { class: "words", dir: "auto", role: "group", "aria-label": "Translation" });
    this.progress = make("p", { class: "note", role: "status" });
    this.tools = make("div", { class: "tools" });
    this.element = make("div", { class: "translation-output" }, this.group, this.progress, this.tools);
    for (const name of ["pointerover", "focusin"]) this.group.addEventListener(name, (event) => this.#highlightSourceOf(event.target));
    for (const name of ["pointerleave", "focusout"]) this.group.addEventListener(name, () => this.#clearHighlight());
    this.append(parts);
    enableArrowKeys(this.group, options.signal);
  }

  /** Adds the sentences of the next part of the text. */
  append(parts) {
    const added = parts.map((part) => ({
      ...part, best: part.outputs[0], output: part.outputs[0], forcedLength: 0, alignment: [], element: make("span", { class: "sentence" }),
    }));
    this.sentences.push(...added);
    this.group.append(...added.map((sentence) => sentence.element));
    for (const sentence of added) this.#render(sentence);
    this.#updateTools();
    this.#loadAlignment(added);
  }

  /** The whole translation as plain text. */
  text() {
    return this.sentences.map((sentence) => sentence.before + sentence.output.text).join("");
  }

  /** Selects the translation, for browsers that do not let the page copy it. Returns an instruction for the user. */
  select() {
    getSelection().selectAllChildren(this.group);
    return "Selected: press Ctrl+C";
  }

  showProgress(text) {
    this.progress.textContent = text;
  }

  /** The tokens at the start of a sentence's output that the user has fixed, without END. */
  forcedTokens(sentence) {
    return sentence.output.tokens.slice(0, sentence.forcedLength).filter((_, index) => sentence.output.pieces[index] !== END);
  }

  #render(sentence) {
    const number = this.sentences.indexOf(sentence);
    sentence.words = wordsOf(sentence.output);
    sentence.buttons = sentence.words.map((word, index) => this.#createWord(sentence, number, word, index));
    sentence.element.replaceChildren(sentence.before, ...textWithButtons(sentence.output.text, sentence.words, sentence.buttons), outputNote(sentence));
    const first = this.group.querySelector(".word");
    if (first && !this.group.querySelector(".word[tabindex='0']")) first.tabIndex = 0;
  }

  #createWord(sentence, number, word, index) {
    const isForced = word.pieces.length > 0 && word.pieces[0] < sentence.forcedLength;
    return wordButton(word, {
      class: `word${isForced ? " forced" : ""}`, "data-sentence": number, "data-word": index, "aria-expanded": "false", "aria-haspopup": "dialog",
      on: { click: (event) => this.#openAlternatives(event.currentTarget, sentence, word) },
    });
  }

  /** Requests the alignment of each output with its source, for as many sentences at a time as the server accepts. */
  async #loadAlignment(sentences) {
    if (!this.options.run.attention) return;
    const { beam, ...fields } = this.options.requestFields();
    for (let from = 0; from < sentences.length; from += this.options.limits.texts) {
      const some = sentences.slice(from, from + this.options.limits.texts);
      const outputs = some.map((sentence) => sentence.output);
      try {
        const body = { ...fields, sources: some.map((sentence) => sentence.source), targets: outputs.map((output) => output.text), attention: true };
        const { scores } = await request("/api/score", body, { signal: this.options.signal });
        some.forEach((sentence, index) => {
          if (sentence.output !== outputs[index]) return; // the user has replaced a word since
          sentence.alignment = scores[index].alignment ?? [];
          this.#updateTitles(sentence);
        });
      } catch (error) {
        if (error.name !== "AbortError") announce(error.message);
        return;
      }
    }
    // A word may have been hovered or focused before its alignment arrived.
    this.#highlightSourceOf(this.group.querySelector(".word:focus, .word:hover") ?? this.group);
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
    this.options.onSelect(this.sentences.indexOf(sentence));
    if (!word.pieces.length) return;
    anchor.setAttribute("aria-busy", "true");
    let alternatives;
    try {
      const fields = { ...this.options.requestFields(), text: sentence.source };
      alternatives = await findWordAlternatives(fields, sentence.output, word, this.options.signal);
    } catch (error) {
      if (error.name !== "AbortError") this.options.onError(error, () => this.#openAlternatives(anchor, sentence, word));
      return;
    } finally {
      anchor.removeAttribute("aria-busy");
    }
    const panel = openAlternatives(anchor, {
      title: word.text,
      options: alternatives.map(({ text, probability, isCurrent, output, forcedLength }) => ({
        text, probability, isCurrent,
        onSelect: () => {
          panel.close(isCurrent);
          if (!isCurrent) this.#replaceOutput(sentence, output, forcedLength);
        },
      })),
      onClose: () => this.#clearHighlight(),
      onText: (text) => {
        panel.close(false);
        this.#decodeFromText(sentence, sentence.output.text.slice(0, word.begin) + text);
      },
    });
  }

  /** Decodes the rest of a sentence after a text, which the server tokenises. */
  async #decodeFromText(sentence, prefix) {
    try {
      const body = { ...this.options.requestFields(), texts: [sentence.source], split: false, prefix };
      const { translations } = await request("/api/translate", body, { signal: this.options.signal });
      const [output] = translations[0].parts[0].outputs;
      this.#replaceOutput(sentence, output, pieceSpans(output).findLastIndex((span) => span && span.end <= prefix.length) + 1);
    } catch (error) {
      if (error.name !== "AbortError") this.options.onError(error, () => this.#decodeFromText(sentence, prefix));
    }
  }

  #replaceOutput(sentence, output, forcedLength) {
    this.history.push({ sentence, output: sentence.output, forcedLength: sentence.forcedLength });
    this.#setOutput(sentence, output, forcedLength);
    (sentence.buttons.find((element) => !element.classList.contains("forced")) ?? sentence.buttons.at(-1))?.focus();
  }

  #setOutput(sentence, output, forcedLength) {
    Object.assign(sentence, { output, forcedLength, alignment: [] });
    this.#render(sentence);
    this.#updateTools();
    this.#loadAlignment([sentence]);
    this.options.onChange(this.#formatLink());
    announce(output.text);
  }

  /** The forced tokens of all sentences: "0.12.34_2.7" forces two tokens of the first and one of the third sentence. */
  #formatLink() {
    const forced = this.sentences.flatMap((sentence, index) =>
      (sentence.forcedLength ? [[index, ...sentence.output.tokens.slice(0, sentence.forcedLength)].join(".")] : []));
    return forced.join("_") || null;
  }

  /** Restores the forced tokens of a link. */
  async restore(link) {
    for (const part of link.split("_")) {
      const [index, ...begin] = part.split(".").map(Number);
      const sentence = this.sentences[index];
      if (!sentence || !begin.length || !begin.every(Number.isInteger)) continue;
      try {
        const { output } = await request("/api/continue", { ...this.options.requestFields(), text: sentence.source, begin }, { signal: this.options.signal });
        this.#setOutput(sentence, output, begin.length);
      } catch (error) {
        if (error.name !== "AbortError") this.options.onError(error, () => this.restore(link));
        return;
      }
    }
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
    if (!last) return this.#reset();
    this.#setOutput(last.sentence, last.output, last.forcedLength);
    last.sentence.buttons[0]?.focus();
  }

  #reset() {
    this.history = [];
    for (const sentence of this.sentences.filter((each) => each.forcedLength)) this.#setOutput(sentence, sentence.best, 0);
    this.group.querySelector(".word")?.focus();
  }

  /** The other outputs of the search for the first sentence; clicking one shows it. */
  otherOutputs() {
    const [sentence] = this.sentences;
    const others = sentence.outputs.filter((output) => output.text !== sentence.output.text);
    if (!others.length) return "";
    return make("section", { class: "n-best" }, make("h2", {}, "Other translations"),
      make("ul", {}, others.map((output) => make("li", {},
        make("button", { type: "button", class: "plain", dir: "auto", on: { click: () => this.#replaceOutput(sentence, output, output.tokens.length) } }, outputText(output)),
        make("span", { class: "percent" }, `log p per token ${formatScore(output.score)}`)))));
  }
}
