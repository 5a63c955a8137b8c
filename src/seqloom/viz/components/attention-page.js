// The page that `seqloom inspect --out` writes: the attention of each output.

import { attentionHeads } from "./attention-heads.js";
import { segmentedControl } from "./controls.js";
import { make } from "./dom.js";
import { showPage } from "./exported-page.js";

function outputCard({ number, text, note, attention }, drawing) {
  const heading = make("h2", {}, make("span", { class: "number" }, number), make("bdi", { dir: "auto" }, text));
  if (!attention) return make("section", { class: "card" }, heading, make("p", { class: "note" }, "a blank line: no input, no output"));
  return make("section", { class: "card", "aria-label": `${number}: ${text}` }, heading,
    make("p", { class: "facts" }, note), attentionHeads(attention, { title: text, drawing, margin: 180 }));
}

showPage(({ cards }) => {
  const list = make("div", { class: "stacked" });
  const draw = (drawing) => list.replaceChildren(...cards.map((card) => outputCard(card, drawing)));
  draw("matrix");
  return [
    make("p", { class: "lead" }, "One row for each output word, one column for each source word. The colour of a cell shows its attention weight."),
    segmentedControl("Drawing", [["matrix", "Matrix"], ["arcs", "Lines"]], "matrix", draw), list,
  ];
});
