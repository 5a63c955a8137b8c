// Line and bar charts. The pointer or the arrow keys select the values that are shown.

import { make, makeSvg } from "../components/dom.js";
import { createScale, formatTick, tickValues } from "./scale.js";

/** Widths of the drawing in pixels, chosen so that its text is as large as the text of the page. */
const WIDE = 940, MEDIUM = 590, NARROW = 330;
/** On screens up to this width, in pixels, all charts are narrow. */
const NARROW_SCREEN = 832;
const RIGHT = 14, TOP = 12, FOOTER = 40;
let clipCount = 0;

/**
 * series: [{ name, points: [[x, y]], band: [[x, low, high]] }], distinguished by shade and dash in this order
 * options: xLabel, yLabel, logX, logY, zero (include 0 in the y axis), size ("wide", "medium" or "narrow")
 */
export function lineChart(series, { xLabel, yLabel, logX = false, logY = false, zero = false, size: wanted = "narrow" } = {}) {
  const size = innerWidth > NARROW_SCREEN ? wanted : "narrow";
  const { width, height } = { wide: { width: WIDE, height: 300 }, medium: { width: MEDIUM, height: 300 }, narrow: { width: NARROW, height: 210 } }[size];
  const points = series.flatMap((line) => line.points), bands = series.flatMap((line) => line.band ?? []);
  if (!points.length) return make("p", { class: "note" }, "No measurements yet.");
  const ys = [...points.map(([, y]) => y), ...bands.flatMap(([, low, high]) => [low, high])];
  const xs = points.map(([x]) => x);
  const yScale = createScale(ys, { log: logY, zero }), xScale = createScale(xs, { log: logX, tight: true, whole: xs.every(Number.isInteger) });
  const yTicks = tickValues(yScale, 5);
  const left = 28 + 7 * Math.max(...yTicks.map((tick) => formatTick(tick).length));
  const bottom = height - FOOTER;
  const px = (x) => left + (width - RIGHT - left) * xScale.fraction(x), py = (y) => bottom - (bottom - TOP) * yScale.fraction(y);
  const svg = makeSvg("svg", { class: `chart ${size}`, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": describe(series, yLabel) });
  const id = `clip-${(clipCount += 1)}`;
  svg.append(makeSvg("clipPath", { id }, makeSvg("rect", { x: left - 4, y: TOP - 4, width: width - left + 4, height: bottom - TOP + 8 })));
  for (const tick of yTicks) {
    svg.append(makeSvg("path", { class: "grid", d: `M${left},${py(tick)}H${width - RIGHT}` }),
      makeSvg("text", { x: left - 8, y: py(tick) + 4, "text-anchor": "end" }, formatTick(tick)));
  }
  for (const tick of tickValues(xScale, { wide: 9, medium: 6, narrow: 4 }[size])) svg.append(makeSvg("text", { class: "x-tick", x: px(tick), y: bottom + 18, "text-anchor": "middle" }, formatTick(tick)));
  svg.append(
    makeSvg("text", { x: (left + width - RIGHT) / 2, y: height - 4, "text-anchor": "middle" }, xLabel),
    makeSvg("text", { class: "axis", x: 10, y: (TOP + bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 10 ${(TOP + bottom) / 2})` }, yLabel));
  const paths = makeSvg("g", { "clip-path": `url(#${id})` });
  series.forEach((line, index) => {
    if (line.band) paths.append(makeSvg("path", { class: `band s${index % 6}`, d: bandPath(line.band, px, py) }));
    paths.append(makeSvg("path", { class: `line s${index % 6}`, d: linePath(line.points, px, py) }));
    if (line.points.length <= 40) paths.append(...line.points.map(([x, y]) => makeSvg("circle", { class: `dot s${index % 6}`, cx: px(x), cy: py(y), r: 2.6 })));
  });
  svg.append(paths);
  return withCursor(svg, series, { px, py, left, bottom, xLabel, width });
}

const linePath = (points, px, py) => points.map(([x, y], at) => `${at ? "L" : "M"}${px(x).toFixed(1)},${py(y).toFixed(1)}`).join("");
const bandPath = (band, px, py) => `${linePath(band.map(([x, , high]) => [x, high]), px, py)}${linePath([...band].reverse().map(([x, low]) => [x, low]), px, py).replace("M", "L")}Z`;

/** A text alternative: the first and last value of each line. */
function describe(series, yLabel) {
  const ends = series.filter((line) => line.points.length).map((line) => `${line.name} from ${formatTick(line.points[0][1])} to ${formatTick(line.points.at(-1)[1])}`);
  return `${yLabel}: ${ends.join("; ")}`;
}

/** Adds a cursor, moved by the pointer or the arrow keys, that shows the values of all lines at its x. */
function withCursor(svg, series, { px, py, left, bottom, xLabel, width }) {
  const cursor = makeSvg("g", { class: "cursor" });
  const values = make("p", { class: "cursor-values", "aria-live": "off" });
  svg.append(cursor);
  const xs = [...new Set(series.flatMap((line) => line.points.map(([x]) => x)))].sort((first, second) => first - second);
  let current = -1;
  function moveTo(index) {
    current = index;
    cursor.replaceChildren();
    if (index < 0) {
      values.replaceChildren(...legend(series));
      return;
    }
    const x = xs[index];
    cursor.append(makeSvg("path", { d: `M${px(x)},${TOP}V${bottom}` }));
    const points = series.map((line) => nearestPoint(line.points, x));
    points.forEach((point, number) => point && cursor.append(makeSvg("circle", { class: `dot s${number % 6}`, cx: px(point[0]), cy: py(point[1]), r: 4.5 })));
    values.replaceChildren(`${xLabel} ${Number.isInteger(x) ? x.toLocaleString("en") : formatTick(x)}`, ...legend(series, points.map((point) => (point ? formatTick(point[1]) : "–"))));
  }
  const figure = make("figure", { class: "figure-chart", tabindex: "0" }, values, svg);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * width;
    if (x < left - 10) return moveTo(-1);
    const distances = xs.map((each) => Math.abs(px(each) - x));
    return moveTo(distances.indexOf(Math.min(...distances)));
  });
  svg.addEventListener("pointerleave", () => moveTo(-1));
  figure.addEventListener("keydown", (event) => {
    const next = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: xs.length - 1 }[event.key];
    if (next === undefined || next < 0 || next >= xs.length) return;
    event.preventDefault();
    values.setAttribute("aria-live", "polite");
    moveTo(next);
  });
  moveTo(-1);
  return figure;
}

function nearestPoint(points, x) {
  let best = null;
  for (const point of points) if (!best || Math.abs(point[0] - x) < Math.abs(best[0] - x)) best = point;
  return best;
}

function legend(series, values = []) {
  return series.map((line, index) => make("span", { class: "entry" },
    makeSvg("svg", { width: 22, height: 8, "aria-hidden": "true" }, makeSvg("path", { class: `line s${index % 6}`, d: "M1,4H21" })),
    line.name, values[index] !== undefined && make("b", {}, values[index])));
}

/** A bar of the mean for each name, with a dot for each value. */
export function barChart(names, values, label) {
  const means = values.map((seeds) => seeds.reduce((sum, value) => sum + value, 0) / seeds.length);
  const scale = createScale(values.flat(), { zero: true });
  return make("figure", { class: "bars" }, make("table", {},
    make("caption", {}, label),
    make("tbody", {}, names.map((name, index) => make("tr", {},
      make("th", { scope: "row" }, name),
      make("td", { class: "span" }, make("span", { class: "bar-track", "aria-hidden": "true" },
        make("i", { vars: { fraction: Math.max(0, scale.fraction(means[index])) } }),
        values[index].length > 1 && values[index].map((value) => make("u", { vars: { fraction: scale.fraction(value) } })))),
      make("td", { class: "number" }, formatTick(means[index])))))));
}
