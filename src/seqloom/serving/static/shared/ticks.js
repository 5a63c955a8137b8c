// Axes: round numbers, from the lowest to the highest.

/** A scale over values; share(value) is its place between 0 and 1. */
export function nice(values, { log = false, zero = false, tight = false } = {}) {
  const known = values.filter((one) => Number.isFinite(one) && (!log || one > 0));
  let low = Math.min(...known), high = Math.max(...known);
  if (zero && !log) [low, high] = [Math.min(0, low), Math.max(0, high)];
  if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
  if (!tight && !log) {
    const step = round((high - low) / 5);
    [low, high] = [Math.floor(low / step + 1e-9) * step, Math.ceil(high / step - 1e-9) * step];
  }
  const at = log ? Math.log : (one) => one;
  return { low, high, log, share: (value) => (at(value) - at(low)) / (at(high) - at(low)) };
}

/** 1, 2 or 5 times a power of ten, at least this. */
function round(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return power * ([1, 2, 5, 10].find((one) => one * power >= step * (1 - 1e-9)) ?? 10);
}

export function ticks({ low, high, log }, wanted) {
  if (log) return powers(low, high);
  const step = round((high - low) / wanted);
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, place) => (first + place) * step);
}

function powers(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high) + 1e-9; power += 1)
    for (const one of [1, 2, 5]) if (one * 10 ** power >= low * 0.999 && one * 10 ** power <= high * 1.001) found.push(one * 10 ** power);
  const every = Math.ceil(found.length / 7);
  return found.length ? found.filter((_, place) => place % every === 0) : [low, high];
}

/** A number as an axis has it. */
export function short(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e4) return new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(value);
  if (size < 1e-3) return value.toExponential(0).replaceAll("-", "−");
  return String(Number(value.toPrecision(size >= 100 ? 4 : 3))).replace("-", "−");
}
