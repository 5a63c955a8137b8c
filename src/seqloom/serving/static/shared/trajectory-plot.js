// A trajectory of two columns in the plane. Users can draw the observed part with the pointer.

import { make, makeSvg } from "../components/dom.js";

const WIDTH = 640, HEIGHT = 460, MARGIN = 46, GRID = 40;

/** Returns { element, show }: show(observed, forecast) draws both. onDraw(rows) receives a path drawn by hand. */
export function trajectoryPlot({ observe, predict, columns, onDraw, signal }) {
  const svg = makeSvg("svg", { class: "trajectory", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  const element = make("div", { class: "card" }, svg,
    make("p", { class: "key" }, make("span", {}, make("i", { class: "observed" }), `${observe} observed`), make("span", {}, make("i", { class: "forecast" }), `${predict} forecast`),
      make("span", {}, "Draw a path here, or edit the numbers.")));
  let scale = null, path = null;

  function show(observed, forecast) {
    // A path drawn by hand keeps the scale. Otherwise it would jump when the pointer is released.
    scale = path ? scale : fitScale([...observed, ...forecast]);
    const pixel = ([x, y]) => [scale.x(x), scale.y(y)];
    const line = (rows) => rows.map((row, index) => `${index ? "L" : "M"}${pixel(row).map((value) => value.toFixed(1)).join(",")}`).join("");
    svg.setAttribute("aria-label", `A path of ${observed.length} observed and ${forecast.length} forecast points`);
    svg.replaceChildren(
      drawGrid(),
      makeSvg("path", { class: "observed", d: line(observed) }),
      makeSvg("path", { class: "forecast", d: line([observed.at(-1), ...forecast]) }),
      ...observed.map((row) => drawPoint(pixel(row), "observed", 4)),
      ...forecast.map((row, index) => drawPoint(pixel(row), "forecast", index === forecast.length - 1 ? 6 : 3.5)),
      makeSvg("text", { x: WIDTH - 8, y: HEIGHT - 8, "text-anchor": "end" }, columns[0]),
      makeSvg("text", { x: 8, y: 16 }, columns[1]));
    path = null;
  }

  const pointerPosition = (event) => {
    const box = svg.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * WIDTH, ((event.clientY - box.top) / box.height) * HEIGHT];
  };
  svg.addEventListener("pointerdown", (event) => {
    if (!scale) return;
    svg.setPointerCapture(event.pointerId);
    path = [pointerPosition(event)];
    svg.replaceChildren(drawGrid(), makeSvg("path", { class: "observed", d: "" }));
  }, { signal });
  svg.addEventListener("pointermove", (event) => {
    if (!path) return;
    path.push(pointerPosition(event));
    svg.lastElementChild.setAttribute("d", path.map(([x, y], index) => `${index ? "L" : "M"}${x},${y}`).join(""));
  }, { signal });
  svg.addEventListener("pointerup", () => {
    if (!path) return;
    const points = resample(path, observe);
    if (points) onDraw(points.map(([x, y]) => [scale.inverse.x(x), scale.inverse.y(y)]));
    else path = null;
  }, { signal });
  return { element, show };
}

const drawPoint = ([cx, cy], name, r) => makeSvg("circle", { class: name, cx, cy, r });

function drawGrid() {
  const lines = [];
  for (let x = GRID; x < WIDTH; x += GRID) lines.push(`M${x},0V${HEIGHT}`);
  for (let y = GRID; y < HEIGHT; y += GRID) lines.push(`M0,${y}H${WIDTH}`);
  return makeSvg("g", {}, makeSvg("rect", { class: "background", width: WIDTH, height: HEIGHT, rx: 10 }), makeSvg("path", { class: "grid", d: lines.join("") }));
}

/** A scale that shows all rows, with the same unit on both axes. */
function fitScale(rows) {
  const xs = rows.map(([x]) => x), ys = rows.map(([, y]) => y);
  const centre = [xs, ys].map((values) => (Math.min(...values) + Math.max(...values)) / 2);
  const span = [xs, ys].map((values) => Math.max(...values) - Math.min(...values));
  const unit = Math.min((WIDTH - 2 * MARGIN) / (span[0] || 1), (HEIGHT - 2 * MARGIN) / (span[1] || 1));
  return {
    x: (value) => WIDTH / 2 + (value - centre[0]) * unit,
    y: (value) => HEIGHT / 2 - (value - centre[1]) * unit,
    inverse: { x: (pixel) => (pixel - WIDTH / 2) / unit + centre[0], y: (pixel) => (HEIGHT / 2 - pixel) / unit + centre[1] },
  };
}

/** `count` points at equal distances along a path; null if the path is too short. */
function resample(path, count) {
  const lengths = [0];
  path.slice(1).forEach(([x, y], index) => lengths.push(lengths[index] + Math.hypot(x - path[index][0], y - path[index][1])));
  const total = lengths.at(-1);
  if (total < 4) return null;
  return Array.from({ length: count }, (_, number) => {
    const distance = (total * number) / (count - 1);
    const after = Math.max(1, lengths.findIndex((length) => length >= distance - 1e-9));
    const fraction = (distance - lengths[after - 1]) / (lengths[after] - lengths[after - 1] || 1);
    return [0, 1].map((axis) => path[after - 1][axis] + fraction * (path[after][axis] - path[after - 1][axis]));
  });
}
