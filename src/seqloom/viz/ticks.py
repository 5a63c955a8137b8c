"""Where the marks of an axis stand, and how its values become places on paper."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Axis:
    """A stretch of values along a stretch of paper, from `begin` to `end`; ticks say where.

    logarithmic: equal distances are equal ratios; what is not above zero lies at the lowest place
    """

    low: float
    high: float
    begin: float
    end: float
    ticks: tuple[float, ...]
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Where a value lies on the paper."""
        low, high, here = (self._straight(each) for each in (self.low, self.high, value))
        return self.begin + (self.end - self.begin) * (here - low) / (high - low)

    def _straight(self, value: float) -> float:
        return math.log10(max(value, self.low)) if self.logarithmic else value


def axis(
    values: Sequence[float], begin: float, end: float, *, logarithmic: bool, zero: bool = False
) -> Axis:
    """An axis that holds all values, with ticks at round numbers; `zero` makes it hold 0, too."""
    low, high = min(values), max(values)
    if logarithmic:
        positive = [value for value in values if value > 0] or [1.0]
        low, high = min(positive), max(positive)
        ticks = decades(low, high)
        return Axis(min(low, ticks[0]), max(high, ticks[-1]), begin, end, ticks, True)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-99):
        high = low + (abs(low) if abs(low) > 1e-99 else 1.0)  # nothing to tell apart
    ticks = round_ticks(low, high)
    return Axis(ticks[0], max(ticks[-1], high), begin, end, ticks)


def round_ticks(low: float, high: float, wanted: int = 5) -> tuple[float, ...]:
    """About as many round numbers as wanted; the first at or below `low`, the last near `high`."""
    rough = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in _STEPS if size * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(float(f"{count * step:.12g}") for count in range(first, last + 1))


def decades(low: float, high: float) -> tuple[float, ...]:
    """Powers of ten around the values: every one, or every second or third of many."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    last = max(last, first + 1)
    stride = max(1, math.ceil((last - first) / 6))
    last = first + stride * math.ceil((last - first) / stride)
    return tuple(10.0**power for power in range(first, last + 1, stride))


def short(value: float) -> str:
    """A number as a tick has room for."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6 or size < 1e-3:
        mantissa, _, power = f"{value:.0e}".partition("e")
        sign = "-" if mantissa.startswith("-") else ""
        digit = mantissa.removeprefix("-")
        raised = f"10{_raised(int(power))}"
        return f"{sign}{raised}" if digit == "1" else f"{sign}{digit}·{raised}"
    return f"{value:,.0f}" if size >= 1_000 else f"{value:.4g}"


def _raised(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
