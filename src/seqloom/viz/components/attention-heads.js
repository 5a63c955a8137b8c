// The attention of an output: the mean of all heads, the mean of each layer, or one head, as a matrix or as lines.

import { announce, make } from "./dom.js";
import { attentionArcs } from "./attention-arcs.js";
import { attentionMap } from "./attention-map.js";
import { mean, thumbnail } from "./heatmap.js";
import { displayPiece, enableRovingFocus } from "./words.js";

const NARROW_SCREEN = 832;
const THUMBNAIL_COLUMN = 58;

/**
 * attention: { outputs, sources, weights, heads, view }; heads[layer][head] are matrices like weights, or empty;
 *   view: the name of the weights that are shown first. Default: the mean of all heads
 * options: title (for file names), head (name of the map to show), drawing ("matrix" or "arcs"), cell, onHead(name),
 *   onZoom(cell), margin (pixels of the window that the matrix cannot use), signal
 */
export function attentionHeads({ outputs: outputPieces, sources: sourcePieces, weights, heads = [], view }, { title, head, drawing, cell, onHead, onZoom, margin = 90, signal }) {
  const [outputs, sources] = [outputPieces, sourcePieces].map((pieces) => pieces.map((piece) => displayPiece(piece)));
  const isNarrow = innerWidth < NARROW_SCREEN;
  const thumbnails = heads[0]?.length > 1 ? THUMBNAIL_COLUMN * (heads[0].length + 1) + 24 : 0;
  const maps = listMaps(weights, heads, view), container = make("div");
  const chosen = maps.find((map) => map.name === head) ?? maps[0];
  function showMap(map) {
    const attention = { outputs, sources, weights: map.weights };
    container.replaceChildren(make("h2", {}, map.title), drawing === "arcs" ? attentionArcs(attention, signal) : attentionMap(attention, {
      title, signal, cell, onZoom, availableWidth: innerWidth - (isNarrow ? 90 : margin + thumbnails),
    }));
  }
  const grid = maps.length > 1 && thumbnailGrid(maps, heads, chosen, (map) => {
    onHead?.(map.name);
    showMap(map);
    announce(map.title);
  });
  showMap(chosen);
  return make("div", { class: `attention-maps${grid ? " many" : ""}` }, grid, container);
}

/** The weights that are shown first, the mean of each layer, and each head. */
function listMaps(weights, heads, view) {
  if (heads.length * (heads[0]?.length ?? 0) < 2) return [{ name: "mean", title: view ?? "Attention weights", weights }];
  const maps = [{ name: "mean", title: view ?? "Mean of all heads", button: view ?? "All heads", weights }];
  heads.forEach((layer, l) => {
    if (heads.length > 1) maps.push({ name: `${l + 1}`, title: `Layer ${l + 1}, mean of its heads`, weights: mean(layer) });
    layer.forEach((each, h) => maps.push({ name: `${l + 1}.${h + 1}`, title: `Layer ${l + 1}, head ${h + 1}`, weights: each }));
  });
  return maps;
}

/** A button with a thumbnail for each map. */
function thumbnailGrid(maps, heads, chosen, onSelect) {
  const hasLayerMeans = heads.length > 1;
  const grid = make("div", { class: "heads", role: "group", "aria-label": "Layers and heads", vars: { columns: heads[0].length + (hasLayerMeans ? 1 : 0) } });
  const mapButton = (map) => {
    const button = make("button", {
      type: "button", title: map.title, "aria-label": map.title, "aria-pressed": String(map === chosen), class: map.button ? "all" : null,
      on: {
        click: () => {
          for (const other of grid.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
          onSelect(map);
        },
      },
    }, thumbnail(map.weights), map.button);
    return button;
  };
  const named = (name) => mapButton(maps.find((map) => map.name === name));
  const columnNames = [...(hasLayerMeans ? ["mean"] : []), ...heads[0].map((_, h) => h + 1)];
  grid.append(mapButton(maps[0]), ...columnNames.map((name) => make("span", { class: "column-name", "aria-hidden": "true" }, name)));
  heads.forEach((layer, l) => {
    grid.append(make("span", { class: "row-name" }, `Layer ${l + 1}`));
    if (hasLayerMeans) grid.append(named(`${l + 1}`));
    layer.forEach((_, h) => grid.append(named(`${l + 1}.${h + 1}`)));
  });
  enableRovingFocus(grid, "button", grid.querySelector("[aria-pressed='true']"));
  return grid;
}
