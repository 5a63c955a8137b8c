// Lines and bars: thin, few colours, read by pointing or by arrow keys.

import { draw, make } from "./dom.js";
import { nice, ticks, short } from "./ticks.js";

/** In pixels, so that letters are as large as elsewhere. */
const WIDE = 940, NARROW = 330;
/** Screens on which nothing is wide. */
const SLIM = 832;
const RIGHT = 14, TOP = 12, FOOT = 40;
let count = 0;

/**
 * series: [{ name, points: [[x, y]], band: [[x, low, high]] }]; told in this order by shade and dash
 * options: xLabel, yLabel, logX, logY, zero, wide
 */
export function lines(series, { xLabel, yLabel, logX = false, logY = false, zero = false, ...how } = {}) {
  const wide = how.wide && innerWidth > SLIM;
  const width = wide ? WIDE : NARROW, height = wide ? 300 : 210;
  const all = series.flatMap((one) => one.points), bands = series.flatMap((one) => one.band ?? []);
  if (!all.length) return make("p", { class: "note" }, "Nothing has been measured yet.");
  const ys = [...all.map(([, y]) => y), ...bands.flatMap(([, low, high]) => [low, high])];
  const upright = nice(ys, { log: logY, zero }), flat = nice(all.map(([x]) => x), { log: logX, tight: true });
  const yTicks = ticks(upright, 5);
  const left = 28 + 7 * Math.max(...yTicks.map((one) => short(one).length));
  const bottom = height - FOOT;
  const px = (x) => left + (width - RIGHT - left) * flat.share(x), py = (y) => bottom - (bottom - TOP) * upright.share(y);
  const svg = draw("svg", { class: wide ? "chart wide" : "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": spoken(series, yLabel) });
  const id = `clip-${(count += 1)}`;
  svg.append(draw("clipPath", { id }, draw("rect", { x: left - 4, y: TOP - 4, width: width - left + 4, height: bottom - TOP + 8 })));
  for (const tick of yTicks) {
    svg.append(draw("path", { class: "grid", d: `M${left},${py(tick)}H${width - RIGHT}` }),
      draw("text", { x: left - 8, y: py(tick) + 4, "text-anchor": "end" }, short(tick)));
  }
  for (const tick of ticks(flat, wide ? 9 : 4)) svg.append(draw("text", { x: px(tick), y: bottom + 18, "text-anchor": "middle" }, short(tick)));
  svg.append(
    draw("text", { x: (left + width - RIGHT) / 2, y: height - 4, "text-anchor": "middle" }, xLabel),
    draw("text", { class: "axis", x: 10, y: (TOP + bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 10 ${(TOP + bottom) / 2})` }, yLabel));
  const paths = draw("g", { "clip-path": `url(#${id})` });
  series.forEach((one, place) => {
    if (one.band) paths.append(draw("path", { class: `band s${place % 6}`, d: ring(one.band, px, py) }));
    paths.append(draw("path", { class: `line s${place % 6}`, d: path(one.points, px, py) }));
    if (one.points.length <= 40) paths.append(...one.points.map(([x, y]) => draw("circle", { class: `dot s${place % 6}`, cx: px(x), cy: py(y), r: 2.6 })));
  });
  svg.append(paths);
  return readable(svg, series, { px, py, left, bottom, xLabel, width });
}

const path = (points, px, py) => points.map(([x, y], at) => `${at ? "L" : "M"}${px(x).toFixed(1)},${py(y).toFixed(1)}`).join("");
const ring = (band, px, py) => `${path(band.map(([x, , high]) => [x, high]), px, py)}${path([...band].reverse().map(([x, low]) => [x, low]), px, py).replace("M", "L")}Z`;

function spoken(series, yLabel) {
  const ends = series.filter((one) => one.points.length).map((one) => `${one.name} from ${short(one.points[0][1])} to ${short(one.points.at(-1)[1])}`);
  return `${yLabel}: ${ends.join("; ")}`;
}

/** Point at it, or move along it with arrow keys: what every line has there. */
function readable(svg, series, { px, py, left, bottom, xLabel, width }) {
  const cursor = draw("g", { class: "cursor" });
  const reading = make("p", { class: "reading", "aria-live": "off" });
  svg.append(cursor);
  const places = [...new Set(series.flatMap((one) => one.points.map(([x]) => x)))].sort((one, other) => one - other);
  let at = -1;
  function mark(place) {
    at = place;
    cursor.replaceChildren();
    if (place < 0) {
      reading.replaceChildren(...legend(series));
      return;
    }
    const x = places[place];
    cursor.append(draw("path", { d: `M${px(x)},${TOP}V${bottom}` }));
    const near = series.map((one) => nearest(one.points, x));
    near.forEach((point, number) => point && cursor.append(draw("circle", { class: `dot s${number % 6}`, cx: px(point[0]), cy: py(point[1]), r: 4.5 })));
    reading.replaceChildren(`${xLabel} ${short(x)}`, ...legend(series, near.map((point) => (point ? short(point[1]) : "–"))));
  }
  const whole = make("figure", { class: "figure-chart", tabindex: "0" }, reading, svg);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * width;
    if (x < left - 10) return mark(-1);
    const distances = places.map((one) => Math.abs(px(one) - x));
    return mark(distances.indexOf(Math.min(...distances)));
  });
  svg.addEventListener("pointerleave", () => mark(-1));
  whole.addEventListener("keydown", (event) => {
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: places.length - 1 }[event.key];
    if (next === undefined || next < 0 || next >= places.length) return;
    event.preventDefault();
    reading.setAttribute("aria-live", "polite");
    mark(next);
  });
  mark(-1);
  return whole;
}

function nearest(points, x) {
  let best = null;
  for (const point of points) if (!best || Math.abs(point[0] - x) < Math.abs(best[0] - x)) best = point;
  return best;
}

function legend(series, values = []) {
  return series.map((one, place) => make("span", { class: "entry" },
    draw("svg", { width: 22, height: 8, "aria-hidden": "true" }, draw("path", { class: `line s${place % 6}`, d: "M1,4H21" })),
    one.name, values[place] !== undefined && make("b", {}, values[place])));
}

/** A bar for each name, a dot for each value. */
export function bars(names, values, label) {
  const means = values.map((several) => several.reduce((sum, one) => sum + one, 0) / several.length);
  const all = values.flat(), scale = nice(all, { zero: true });
  return make("figure", { class: "bars" }, make("table", {},
    make("caption", {}, label),
    make("tbody", {}, names.map((name, place) => make("tr", {},
      make("th", { scope: "row" }, name),
      make("td", { class: "span" }, make("span", { class: "bar-track", "aria-hidden": "true" },
        make("i", { vars: { share: Math.max(0, scale.share(means[place])) } }),
        values[place].length > 1 && values[place].map((one) => make("u", { vars: { share: scale.share(one) } })))),
      make("td", { class: "number" }, short(means[place])))))));
}
