// The blues that all pictures use, from nothing to all; they turn around in the dark.

const LIGHT = ["#f7fbff", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b"];
const DARK = ["#141c25", "#152b42", "#173a5e", "#1b4f80", "#2569a3", "#3a87c3", "#62a6d9", "#94c7ea", "#d3e8f8"];

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

const numbers = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** The colour of a share between 0 and 1. */
export function blues(share, dark = isDark()) {
  const scale = dark ? DARK : LIGHT;
  const place = Math.min(Math.max(share, 0), 1) * (scale.length - 1);
  const low = Math.floor(place), rest = place - low;
  const from = numbers(scale[low]), to = numbers(scale[Math.min(low + 1, scale.length - 1)]);
  return `#${from.map((one, at) => Math.round(one + (to[at] - one) * rest).toString(16).padStart(2, "0")).join("")}`;
}

/** The colour of words on it. */
export function onBlues(share, dark = isDark()) {
  if (dark) return share > 0.6 ? "#08131f" : "#e6edf5";
  return share > 0.48 ? "#ffffff" : "#14212e";
}

/** What a name of the style sheet stands for now. */
export function named(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** Calls back when the colours change, until the signal ends. */
export function onColours(act, signal) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", act, { signal });
  document.addEventListener("seqloom-colours", act, { signal });
}
