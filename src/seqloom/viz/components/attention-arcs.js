// Attention weights as lines between the words of the source, above, and the words of the output, below.

import { make, makeSvg } from "./dom.js";
import { cssColour, onThemeChange } from "./colours.js";
import { formatPercent } from "./words.js";

const FONT = "Inter, system-ui, sans-serif", FONT_SIZE = 15;
const GAP = 18, HEIGHT = 240, SOURCE_Y = 24, OUTPUT_Y = HEIGHT - 12;
/** Smaller weights are not drawn. */
const MIN_WEIGHT = 0.05;
const measuringContext = document.createElement("canvas").getContext("2d");

/** The centre of each label in a row, and the width of the row. */
function placeLabels(labels) {
  measuringContext.font = `${FONT_SIZE}px ${FONT}`;
  let x = GAP;
  const centres = labels.map((label) => {
    const width = measuringContext.measureText(label).width, centre = x + width / 2;
    x += width + GAP;
    return centre;
  });
  return { centres, width: x };
}

/** attention: { outputs, sources, weights } */
export function attentionArcs(attention, signal) {
  const scroller = make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Attention as lines" });
  const redraw = () => scroller.replaceChildren(drawArcs(attention));
  redraw();
  onThemeChange(redraw, signal);
  return make("div", { class: "attention-arcs" }, scroller,
    make("p", { class: "note" }, `Source above, output below. The width of a line is its weight; weights below ${formatPercent(MIN_WEIGHT)} are not drawn.`));
}

function drawArcs({ outputs, sources, weights }) {
  const above = placeLabels(sources), below = placeLabels(outputs), width = Math.ceil(Math.max(above.width, below.width));
  // The shorter row is centred.
  const sourceX = above.centres.map((x) => x + (width - above.width) / 2), outputX = below.centres.map((x) => x + (width - below.width) / 2);
  const links = weights.flatMap((row, t) => row.flatMap((weight, s) => (weight >= MIN_WEIGHT ? [{ weight, s, t }] : [])));
  const svg = makeSvg("svg", {
    width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "font-family": FONT, "font-size": FONT_SIZE, "text-anchor": "middle", fill: cssColour("--ink"),
    "aria-label": links.map(({ weight, s, t }) => `${outputs[t]} to ${sources[s]}: ${formatPercent(weight)}`).join("; "),
  });
  const middle = HEIGHT / 2, stroke = cssColour("--tree-edge");
  svg.append(
    ...links.map(({ weight, s, t }) => makeSvg("path", {
      d: `M${sourceX[s]},${SOURCE_Y + 8}C${sourceX[s]},${middle} ${outputX[t]},${middle} ${outputX[t]},${OUTPUT_Y - FONT_SIZE - 3}`,
      fill: "none", stroke, "stroke-width": (0.6 + 7 * weight).toFixed(2), "stroke-linecap": "round", opacity: (0.35 + 0.65 * weight).toFixed(2),
    }, makeSvg("title", {}, `${outputs[t]} attends to ${sources[s]} with weight ${formatPercent(weight)}`))),
    ...sources.map((label, s) => makeSvg("text", { x: sourceX[s], y: SOURCE_Y }, label)),
    ...outputs.map((label, t) => makeSvg("text", { x: outputX[t], y: OUTPUT_Y }, label)));
  return svg;
}
