// Complete: a text that grows, token by token, each as sure as its bar is long.

import { make, say } from "../shared/dom.js";
import { button, linkButton, runChoice, slider } from "../shared/controls.js";
import { instead } from "../shared/instead.js";
import { latest } from "../shared/latest.js";
import { ask, listen } from "../shared/server.js";
import { empty, heading, stage } from "../shared/states.js";
import { typed } from "../shared/typed.js";
import { END, legend, piecesOf, placesOf, rove, wordButton } from "../shared/words.js";

export const complete = {
  name: "complete",
  title: "Complete",
  available: (catalogue) => catalogue.of("language-model").length > 0,
  takes: (catalogue) => catalogue.of("language-model"),
  show(place, context) {
    const { settings, signal, catalogue } = context;
    const runs = catalogue.of("language-model");
    let run = catalogue.named(runs, settings.run);
    const result = stage({ class: "stage output" });
    const facts = make("p", { class: "facts" });
    const question = latest(signal);
    const source = typed("Beginning", settings.text ?? "", {
      most: catalogue.limits.characters, placeholder: "How does it begin? Leave it blank, and the model begins.",
      changed: (text) => context.keep({ text, run: run.name }),
    });
    const number = (name, usual) => Number(settings[name] ?? usual);
    const request = (prompt, seed) => ({
      run: run.name, prompts: [prompt], temperature: number("temperature", 0.8), top_k: number("top_k", 0), top_p: number("top_p", 1),
      max_length: number("length", 60), ...(seed !== undefined && { seed }),
    });

    /** prompt: what is given; seed: known, where a link says it */
    function grow(prompt, seed) {
      result.wait("Thinking …");
      question((inner) => hear(prompt, seed, inner), {
        found: (output) => present(prompt, output), failed: (error) => result.fail(error, () => grow(prompt, seed)),
      });
    }

    async function hear(prompt, seed, inner) {
      const line = make("p", { class: "words growing-words", dir: "auto", "aria-hidden": "true" });
      const so = { text: prompt, pieces: [], log_probabilities: [] };
      for await (const { name, content } of listen("/api/complete/stream", request(prompt, seed), { signal: inner })) {
        if (name === "start" && content.seed !== null) context.keep({ seed: content.seed, text: prompt, run: run.name });
        if (name === "done") return content;
        if (name !== "token") continue;
        so.pieces.push(content.piece);
        so.log_probabilities.push(content.log_probability);
        so.text = content.text;
        line.replaceChildren(...drawn({ ...so, given: prompt.length }, () => {}));
        if (!line.isConnected) result.show(line);
      }
      throw new Error("the stream ended too early");
    }

    /** The words of a text; those that were given are plain. */
    function drawn(output, open) {
      const fresh = { ...output, text: output.text.slice(output.given), pieces: output.pieces, log_probabilities: output.log_probabilities };
      const words = piecesOf(fresh);
      return [make("b", { class: "prompt" }, output.text.slice(0, output.given)), ...words.flatMap((word, at) => [
        fresh.text.slice(at ? words[at - 1].end : 0, word.begin),
        wordButton(word, { "aria-haspopup": "dialog", "aria-expanded": "false", on: { click: (event) => open(event.currentTarget, word) } }),
      ])];
    }

    function present(prompt, output) {
      const skipped = output.pieces.length - fresh(prompt, output);
      const own = { ...output, given: output.text.startsWith(prompt) ? prompt.length : 0 };
      own.pieces = output.pieces.slice(skipped);
      own.log_probabilities = output.log_probabilities.slice(skipped);
      const group = make("div", { class: "words", dir: "auto", role: "group", "aria-label": "Completion" },
        drawn(own, (anchor, word) => choose(anchor, word, { prompt, output, own, skipped })));
      rove(group, signal);
      const logs = own.log_probabilities.filter((one) => one !== null);
      const perplexity = Math.exp(-logs.reduce((sum, one) => sum + one, 0) / Math.max(1, logs.length));
      facts.textContent = `${logs.length} tokens · perplexity ${perplexity.toFixed(1)}${output.finished ? "" : " · stopped at the length"}`;
      result.show(make("div", { class: "sheet" }, group));
      say(output.text);
    }

    async function choose(anchor, word, { prompt, output, own, skipped }) {
      try {
        const tokens = output.tokens.filter((_, at) => output.pieces[at] !== END);
        const { steps } = await ask("/api/alternatives", { run: run.name, text: prompt, tokens }, { signal });
        const places = placesOf({ ...own, text: output.text.slice(own.given) });
        const panel = instead(anchor, {
          word, pieces: own.pieces, steps: steps.slice(skipped),
          choose: (step, token) => {
            panel.close(false);
            const { piece } = steps[skipped + step].find((one) => one.token === token);
            const before = output.text.slice(0, own.given + (places[step]?.start ?? 0));
            if (piece !== END) goOn(piece.startsWith("▁") ? `${before.trimEnd()} ${piece.slice(1)}` : before + piece);
          },
          write: (typedWord) => {
            panel.close(false);
            goOn(output.text.slice(0, own.given + word.begin) + typedWord);
          },
        });
      } catch (error) {
        result.fail(error, () => present(prompt, output));
      }
    }

    const goOn = (prompt) => {
      source.input.value = "";
      source.put(prompt.trimStart());
      grow(prompt.trimStart());
    };

    place.append(
      heading("Complete", "The model goes on from a beginning. Press a word to choose another, and it goes on from there.",
        runChoice(context, runs, run, (next) => {
          run = next;
          context.keep({ run: run.name });
        })),
      make("div", { class: "panes" },
        make("div", { class: "card pane" },
          make("div", { class: "pane-head" }, make("h2", {}, source.title, "Beginning"), button("Clear", () => source.put(""), { kind: "quiet" })),
          source.place,
          make("div", { class: "tools" }, button("Go on", () => grow(source.input.value), { kind: "first", picture: "play" }))),
        make("div", { class: "card pane" }, make("div", { class: "pane-head" }, make("h2", {}, "Text"), facts, linkButton()), result.place)),
      make("div", { class: "bar" },
        slider("Temperature", { min: 0, max: 1.5, step: 0.1, value: number("temperature", 0.8), format: (one) => one.toFixed(1) }, (temperature) => context.keep({ temperature })),
        slider("Of the best", { min: 0, max: 50, value: number("top_k", 0), format: (one) => (one ? `${one} tokens` : "all tokens") }, (top) => context.keep({ top_k: top })),
        slider("Share of probability", { min: 0.1, max: 1, step: 0.05, value: number("top_p", 1), format: (one) => `${Math.round(100 * one)} %` }, (top) => context.keep({ top_p: top })),
        slider("Length", { min: 10, max: catalogue.limits.output_tokens, value: number("length", 60), format: (one) => `${one} tokens` }, (length) => context.keep({ length }))),
      legend());
    source.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) grow(source.input.value);
    }, { signal });
    if (settings.seed !== undefined) grow(source.input.value, Number(settings.seed));
    else result.show(empty("It grows here, word by word. Each time another text, unless the temperature is 0."));
  },
};

/** How many of the pieces are not the beginning that was given. */
function fresh(prompt, output) {
  if (!prompt.trim() || !output.text.startsWith(prompt.trim())) return output.pieces.length;
  const places = placesOf(output), end = prompt.trimEnd().length;
  const first = places.findIndex((one) => one && one.start >= end);
  return first < 0 ? 0 : output.pieces.length - first;
}
