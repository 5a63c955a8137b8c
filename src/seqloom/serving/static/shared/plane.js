// A path in the plane: draw how it begins, and see how it goes on.

import { draw, make } from "./dom.js";

const WIDTH = 640, HEIGHT = 460, AROUND = 46;

/** show(observed, forecast) draws both; drawn(rows) is told a path that was drawn by hand. */
export function plane({ observe, predict, columns, drawn, signal }) {
  const svg = draw("svg", { class: "plane", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  const place = make("div", { class: "card" }, svg,
    make("p", { class: "key" }, make("span", {}, make("i", { class: "seen" }), `${observe} observed`), make("span", {}, make("i", { class: "ahead" }), `${predict} forecast`),
      make("span", {}, "Draw here with a pointer, or give numbers beside.")));
  let scale = null, path = null;

  function show(seen, ahead) {
    const all = [...seen, ...ahead];
    // Drawing keeps the scale, or the ground would move under the hand.
    scale = path ? scale : fitted(all);
    const at = ([x, y]) => [scale.x(x), scale.y(y)];
    const line = (rows) => rows.map((row, place_) => `${place_ ? "L" : "M"}${at(row).map((one) => one.toFixed(1)).join(",")}`).join("");
    svg.setAttribute("aria-label", `A path of ${seen.length} observed and ${ahead.length} forecast places`);
    svg.replaceChildren(
      ground(),
      draw("path", { class: "seen", d: line(seen) }),
      draw("path", { class: "ahead", d: line([seen.at(-1), ...ahead]) }),
      ...seen.map((row) => spot(at(row), "seen", 4)),
      ...ahead.map((row, number) => spot(at(row), "ahead", number === ahead.length - 1 ? 6 : 3.5)),
      draw("text", { x: WIDTH - 8, y: HEIGHT - 8, "text-anchor": "end" }, columns[0]),
      draw("text", { x: 8, y: 16 }, columns[1]));
    path = null;
  }

  const where = (event) => {
    const box = svg.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * WIDTH, ((event.clientY - box.top) / box.height) * HEIGHT];
  };
  svg.addEventListener("pointerdown", (event) => {
    if (!scale) return;
    svg.setPointerCapture(event.pointerId);
    path = [where(event)];
    svg.replaceChildren(ground(), draw("path", { class: "seen", d: "" }));
  }, { signal });
  svg.addEventListener("pointermove", (event) => {
    if (!path) return;
    path.push(where(event));
    svg.lastElementChild.setAttribute("d", path.map(([x, y], at) => `${at ? "L" : "M"}${x},${y}`).join(""));
  }, { signal });
  svg.addEventListener("pointerup", () => {
    if (!path) return;
    const even = resampled(path, observe);
    if (even) drawn(even.map(([x, y]) => [scale.back.x(x), scale.back.y(y)]));
    else path = null;
  }, { signal });
  return { place, show };
}

const spot = ([cx, cy], name, r) => draw("circle", { class: name, cx, cy, r });

function ground() {
  const lines = [];
  for (let x = 40; x < WIDTH; x += 40) lines.push(`M${x},0V${HEIGHT}`);
  for (let y = 40; y < HEIGHT; y += 40) lines.push(`M0,${y}H${WIDTH}`);
  return draw("g", {}, draw("rect", { class: "paper", width: WIDTH, height: HEIGHT, rx: 10 }), draw("path", { class: "grid", d: lines.join("") }));
}

/** The same scale both ways, everything in sight. */
function fitted(rows) {
  const xs = rows.map(([x]) => x), ys = rows.map(([, y]) => y);
  const middle = [xs, ys].map((some) => (Math.min(...some) + Math.max(...some)) / 2);
  const span = [xs, ys].map((some) => Math.max(...some) - Math.min(...some));
  const unit = Math.min((WIDTH - 2 * AROUND) / (span[0] || 1), (HEIGHT - 2 * AROUND) / (span[1] || 1));
  return {
    x: (value) => WIDTH / 2 + (value - middle[0]) * unit,
    y: (value) => HEIGHT / 2 - (value - middle[1]) * unit,
    back: { x: (pixel) => (pixel - WIDTH / 2) / unit + middle[0], y: (pixel) => (HEIGHT / 2 - pixel) / unit + middle[1] },
  };
}

/** So many places at equal distances along a path; null: it has no length. */
function resampled(path, count) {
  const lengths = [0];
  path.slice(1).forEach(([x, y], at) => lengths.push(lengths[at] + Math.hypot(x - path[at][0], y - path[at][1])));
  const whole = lengths.at(-1);
  if (whole < 4) return null;
  return Array.from({ length: count }, (_, number) => {
    const wanted = (whole * number) / (count - 1);
    const after = Math.max(1, lengths.findIndex((one) => one >= wanted - 1e-9));
    const share = (wanted - lengths[after - 1]) / (lengths[after] - lengths[after - 1] || 1);
    return [0, 1].map((axis) => path[after - 1][axis] + share * (path[after][axis] - path[after - 1][axis]));
  });
}
