// Colour scale of all drawings: light to dark blue, reversed in the dark theme.

const LIGHT = ["#f7fbff", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b"];
const DARK = ["#141c25", "#152b42", "#173a5e", "#1b4f80", "#2569a3", "#3a87c3", "#62a6d9", "#94c7ea", "#d3e8f8"];

export function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** The colour on the scale for a fraction between 0 and 1. */
export function scaleColour(fraction, dark = isDark()) {
  const scale = dark ? DARK : LIGHT;
  const position = Math.min(Math.max(fraction, 0), 1) * (scale.length - 1);
  const low = Math.floor(position), rest = position - low;
  const from = rgb(scale[low]), to = rgb(scale[Math.min(low + 1, scale.length - 1)]);
  return `#${from.map((channel, at) => Math.round(channel + (to[at] - channel) * rest).toString(16).padStart(2, "0")).join("")}`;
}

/** A text colour that is legible on a background with the colour of this fraction. */
export function textColourOn(fraction, dark = isDark()) {
  if (dark) return fraction > 0.6 ? "#08131f" : "#e6edf5";
  return fraction > 0.48 ? "#ffffff" : "#14212e";
}

/** The current value of a colour variable of the style sheet, such as "--accent". */
export function cssColour(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

/** Calls `act` when the theme changes, until the signal aborts. */
export function onThemeChange(act, signal) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", act, { signal });
  document.addEventListener("seqloom-theme", act, { signal });
}
