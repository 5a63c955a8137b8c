// The page that `seqloom compare --out` writes: the outputs of two runs, sentence by sentence.

import { comparedOutput } from "./compared-output.js";
import { make } from "./dom.js";
import { showPage } from "./exported-page.js";
import { probabilityLegend } from "./words.js";

function scoreTable({ names, scores }) {
  return scores.length > 0 && make("div", { class: "card scroll" }, make("table", {},
    make("thead", {}, make("tr", {}, make("td"), names.map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, scores.map(([name, ...values]) => make("tr", {}, make("th", { scope: "row" }, name), values.map((value) => make("td", {}, value)))))));
}

function pairSection({ number, source, references, outputs }, names) {
  return make("section", {},
    make("h2", {}, make("span", { class: "number" }, number), make("span", { dir: "auto" }, source)),
    references.map((reference) => make("p", { class: "facts" }, "reference: ", make("bdi", { dir: "auto" }, reference))),
    make("div", { class: "two" }, outputs.map((output, index) =>
      comparedOutput(output, outputs[1 - index], { name: names[index], facts: output.facts, attention: output.attention }))));
}

showPage((comparison) => [
  make("p", { class: "lead" }, comparison.summary),
  scoreTable(comparison) || "",
  ...comparison.pairs.map((pair) => pairSection(pair, comparison.names)),
  probabilityLegend(),
]);
