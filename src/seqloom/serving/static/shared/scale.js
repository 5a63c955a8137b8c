// Scales and ticks of chart axes.

/**
 * A scale that covers the values. fraction(value) is the position of a value on it, between 0 and 1.
 * whole: the values are integers, and so are the ticks
 */
export function createScale(values, { log = false, zero = false, tight = false, whole = false } = {}) {
  const usable = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  let low = Math.min(...usable), high = Math.max(...usable);
  if (zero && !log) [low, high] = [Math.min(0, low), Math.max(0, high)];
  if (low === high) [low, high] = log ? [low / 2, high * 2] : [low < 0 ? low - 0.5 : Math.max(0, low - 0.5), high + 0.5];
  if (!tight && !log) {
    const step = roundStep((high - low) / 5);
    [low, high] = [Math.floor(low / step + 1e-9) * step, Math.ceil(high / step - 1e-9) * step];
  }
  const transform = log ? Math.log : (value) => value;
  return { low, high, log, whole, fraction: (value) => (transform(value) - transform(low)) / (transform(high) - transform(low)) };
}

/** The smallest of 1, 2 or 5 times a power of ten that is at least `step`. */
function roundStep(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= step * (1 - 1e-9)) ?? 10);
}

/** About `count` round values on a scale. */
export function tickValues({ low, high, log, whole }, count) {
  if (log) return logTicks(low, high);
  const step = Math.max(roundStep((high - low) / count), whole ? 1 : 0);
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
}

function logTicks(low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high) + 1e-9; power += 1)
    for (const factor of [1, 2, 5]) if (factor * 10 ** power >= low * 0.999 && factor * 10 ** power <= high * 1.001) ticks.push(factor * 10 ** power);
  const stride = Math.ceil(ticks.length / 7);
  return ticks.length ? ticks.filter((_, index) => index % stride === 0) : [low, high];
}

/** Formats a number in few characters. */
export function formatTick(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e4) return new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(value);
  if (size < 1e-3) return value.toExponential(0).replaceAll("-", "−");
  return String(Number(value.toPrecision(size >= 100 ? 4 : 3))).replace("-", "−");
}
