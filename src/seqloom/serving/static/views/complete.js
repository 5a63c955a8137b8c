// Complete view: a language model continues a prompt, token by token.

import { announce, make } from "../components/dom.js";
import { button } from "../components/controls.js";
import { copyLinkButton, runSelect } from "../shared/fields.js";
import { openAlternatives } from "../shared/alternatives.js";
import { optionControls } from "../shared/option-controls.js";
import { latestOnly } from "../shared/scheduling.js";
import { request, streamEvents } from "../shared/api-client.js";
import { emptyMessage, resultArea, viewHeader } from "../shared/panels.js";
import { highlightedInput } from "../shared/highlighted-input.js";
import { END, enableArrowKeys, pieceSpans, piecesOf, probabilityLegend, textWithButtons, UNKNOWN, wordButton, wordsOf } from "../components/words.js";

/** An alternative is completed to a word with at most this many further pieces. */
const MAX_WORD_PIECES = 8;

export const complete = {
  name: "complete",
  title: "Complete",
  isAvailable: (catalogue) => catalogue.ofKind("language-model").length > 0,
  runs: (catalogue) => catalogue.ofKind("language-model"),
  render(container, context) {
    const { settings, signal, catalogue } = context;
    const runs = catalogue.ofKind("language-model");
    let run = catalogue.findRun(runs, settings.run);
    const result = resultArea({ class: "result output" });
    const facts = make("p", { class: "facts" });
    const requests = latestOnly(signal);
    const promptInput = highlightedInput("Prompt", settings.text ?? "", {
      limit: () => catalogue.limits.characters, placeholder: "Start of the text. Leave it empty to generate from the beginning.",
      onChange: (text) => context.update({ text, run: run.name }),
    });
    const options = optionControls("complete", context, { getRun: () => run, onChange() {} });
    const requestBody = (prompt, seed) => ({ run: run.name, prompts: [prompt], ...options.fields(), ...(seed !== undefined && { seed }) });

    /** seed: from the link; undefined lets the server choose one */
    function generate(prompt, seed) {
      result.showLoading("Generating …");
      requests.run((inner) => stream(prompt, seed, inner), {
        onResult: (output) => show(prompt, output), onError: (error) => result.showError(error, () => generate(prompt, seed)),
      });
    }

    /** Shows tokens as they arrive. Returns the final output. */
    async function stream(prompt, seed, inner) {
      const line = make("p", { class: "words", dir: "auto", "aria-hidden": "true" });
      const partial = { text: prompt, pieces: [], log_probabilities: [], promptLength: prompt.length };
      for await (const { name, content } of streamEvents("/api/complete/stream", requestBody(prompt, seed), { signal: inner })) {
        if (name === "start" && content.seed !== null) context.update({ seed: content.seed, text: prompt, run: run.name });
        if (name === "done") return content;
        if (name !== "token") continue;
        partial.pieces.push(content.piece);
        partial.log_probabilities.push(content.log_probability);
        partial.text = content.text;
        line.replaceChildren(...renderText(partial, () => {}));
        if (!line.isConnected) result.show(line);
      }
      throw new Error("The stream ended before the text was complete.");
    }

    /** The prompt in bold, then a button for each generated piece. */
    function renderText(output, onPieceClick) {
      const generated = { ...output, text: output.text.slice(output.promptLength) };
      const pieces = piecesOf(generated);
      const buttons = pieces.map((piece) => wordButton(piece, {
        "aria-haspopup": "dialog", "aria-expanded": "false", on: { click: (event) => onPieceClick(event.currentTarget, piece) },
      }));
      return [make("b", { class: "prompt" }, output.text.slice(0, output.promptLength)), ...textWithButtons(generated.text, pieces, buttons)];
    }

    function show(prompt, output) {
      const promptPieces = output.pieces.length - generatedPieceCount(prompt, output);
      const generated = {
        ...output,
        promptLength: output.text.startsWith(prompt) ? prompt.length : 0,
        pieces: output.pieces.slice(promptPieces),
        log_probabilities: output.log_probabilities.slice(promptPieces),
      };
      const group = make("div", { class: "words", dir: "auto", role: "group", "aria-label": "Completion" },
        renderText(generated, (anchor, piece) => chooseAlternative(anchor, piece, { prompt, output, generated, promptPieces })));
      enableArrowKeys(group, signal);
      const logs = generated.log_probabilities.filter((log) => log !== null);
      const perplexity = Math.exp(-logs.reduce((sum, log) => sum + log, 0) / Math.max(1, logs.length));
      if (!generated.pieces.length) facts.textContent = "no new tokens: the model ended the text";
      else facts.textContent = `${logs.length} tokens · perplexity ${perplexity.toFixed(1)}${output.finished ? "" : " · stopped at the length limit"}`;
      result.show(make("div", { class: "generated-text" }, group));
      announce(output.text);
    }

    async function chooseAlternative(anchor, piece, shown) {
      const { prompt, output, generated, promptPieces } = shown;
      try {
        const tokens = output.tokens.filter((_, at) => output.pieces[at] !== END);
        const { steps } = await request("/api/alternatives", { run: run.name, text: prompt, tokens }, { signal });
        const before = output.text.slice(0, generated.promptLength + piece.begin), index = promptPieces + piece.pieces[0];
        const words = await completeWords(steps[index], before, index);
        const panel = openAlternatives(anchor, {
          title: piece.text,
          options: words.map(({ text, probability, isEnd, prefix, first }) => ({
            text, probability, isCurrent: first === output.pieces[index],
            onSelect: () => {
              panel.close(isEnd);
              if (!isEnd) continueFrom(prefix);
            },
          })),
          onText: (text) => {
            panel.close(false);
            continueFrom(before + text);
          },
        });
      } catch (error) {
        if (error.name !== "AbortError") result.showError(error, () => chooseAlternative(anchor, piece, shown));
      }
    }

    /** Completes each of the most probable pieces after a text to a whole word. index: of the piece in the output */
    async function completeWords(alternatives, before, index) {
      // A prompt cannot contain unknown tokens.
      const pieces = alternatives.filter(({ piece }) => piece !== END && piece !== UNKNOWN);
      const prompts = pieces.map(({ piece }) => (piece.startsWith("▁") ? `${before.trimEnd()} ${piece.slice(1)}` : before + piece.replaceAll("￭", "")).trimStart());
      const maxLength = Math.min(index + 1 + MAX_WORD_PIECES, catalogue.limits.output_tokens);
      const { completions } = prompts.length
        ? await request("/api/complete", { run: run.name, prompts, temperature: 0, max_length: maxLength }, { signal }) : { completions: [] };
      const words = completions.map(({ outputs: [output] }, at) => {
        const word = wordsOf(output).find((each) => each.pieces.includes(index)) ?? { text: prompts[at], pieces: [], end: prompts[at].length };
        const logs = word.pieces.filter((each) => each >= index).map((each) => output.log_probabilities[each] ?? -Infinity);
        const log = logs.length ? logs.reduce((sum, each) => sum + each, 0) : pieces[at].log_probability;
        return { text: word.text, probability: Math.exp(log), prefix: output.text.slice(0, word.end), first: pieces[at].piece };
      });
      const end = alternatives.filter(({ piece }) => piece === END).map(({ log_probability: log }) => ({
        text: "end of text", probability: Math.exp(log ?? -Infinity), isEnd: true, first: END,
      }));
      return [...words, ...end].sort((first, second) => second.probability - first.probability);
    }

    const continueFrom = (prompt) => {
      promptInput.input.value = "";
      promptInput.setText(prompt.trimStart());
      generate(prompt.trimStart());
    };

    container.append(
      viewHeader("Complete", "The language model continues a prompt. Select a token to replace it and continue from there.",
        runSelect(context, runs, run, (next) => {
          run = next;
          context.update({ run: run.name });
        })),
      make("div", { class: "panes" },
        make("div", { class: "card pane" },
          make("div", { class: "pane-header" }, make("h2", {}, promptInput.label, "Prompt"), button("Clear", () => promptInput.setText(""), { kind: "quiet" })),
          promptInput.element, promptInput.counter,
          make("div", { class: "tools" }, button("Generate", () => generate(promptInput.input.value), { kind: "primary", iconName: "play" }))),
        make("div", { class: "card pane" }, make("div", { class: "pane-header" }, make("h2", {}, "Text"), facts, copyLinkButton()), result.element)),
      make("div", { class: "toolbar" }, options.elements),
      probabilityLegend());
    promptInput.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) generate(promptInput.input.value);
    }, { signal });
    if (settings.seed !== undefined) generate(promptInput.input.value, Number(settings.seed));
    else result.show(emptyMessage("The generated text appears here. Every generation gives a different text unless the temperature is 0."));
  },
};

/** The number of pieces after the prompt. */
function generatedPieceCount(prompt, output) {
  if (!prompt.trim() || !output.text.startsWith(prompt.trim())) return output.pieces.length;
  const spans = pieceSpans(output), end = prompt.trimEnd().length;
  const first = spans.findIndex((span) => span && span.begin >= end);
  return first < 0 ? 0 : output.pieces.length - first;
}
