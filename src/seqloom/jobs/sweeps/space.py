"""The settings of a sweep: lists of values, and ranges for Optuna."""

import hashlib
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seqloom.core.errors import ConfigError

MAX_NAME = 100
"""Maximum length of the name of a trial."""
NUMBER = r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?"
RANGE = re.compile(rf"({NUMBER})\.\.({NUMBER})(:log)?")


@dataclass(frozen=True)
class Choice:
    """A setting, and the values that the sweep tries for it, as text."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Range:
    """A setting with values from `low` to `high`, for Optuna.

    is_log:     values are drawn on a logarithmic scale
    is_integer: values are integers
    """

    key: str
    low: float
    high: float
    is_log: bool
    is_integer: bool


Dimension = Choice | Range


@dataclass(frozen=True)
class SweepTrial:
    """One training run of a sweep.

    name:     the name of its run folder
    settings: changes to the recipe, in the form KEY=VALUE. Passed to `seqloom train` as --set
    """

    name: str
    settings: tuple[str, ...]


def parse_dimensions(settings: Sequence[str]) -> list[Dimension]:
    """Parse the values of --set: KEY=A,B,C or KEY=LOW..HIGH or KEY=LOW..HIGH:log.

    Raises one ConfigError that lists all problems.
    """
    dimensions: list[Dimension] = []
    problems: list[str] = []
    for setting in settings:
        key, separator, text = setting.partition("=")
        key = key.strip()
        if not (key and separator and text.strip()):
            problems.append(f"--set {setting}: must have the form KEY=A,B,C or KEY=LOW..HIGH")
            continue
        if key in [dimension.key for dimension in dimensions]:
            problems.append(f"--set {setting}: {key} is given twice. Give all of its values once.")
            continue
        if match := RANGE.fullmatch(text.strip()):
            dimension = _range(key, match)
            if not dimension.low < dimension.high:
                problems.append(f"--set {setting}: the first number must be less than the second.")
            elif dimension.is_log and dimension.low <= 0:
                problems.append(f"--set {setting}: a logarithmic scale needs numbers above 0.")
            dimensions.append(dimension)
        else:
            dimensions.append(Choice(key, tuple(dict.fromkeys(split_values(text)))))
    if problems:
        raise ConfigError("\n".join(problems))
    return dimensions


def _range(key: str, match: re.Match[str]) -> Range:
    low, high = match[1], match[2]
    is_integer = bool(re.fullmatch(r"[-+]?\d+", low) and re.fullmatch(r"[-+]?\d+", high))
    return Range(key, float(low), float(high), bool(match[3]), is_integer)


def split_values(text: str) -> list[str]:
    """Split at commas that are not inside brackets or quotes: '[1,2],[3]' has two values."""
    values, depth, quote, start = [], 0, "", 0
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "[{(":
            depth += 1
        elif character in "]})":
            depth -= 1
        elif character == "," and depth == 0:
            values.append(text[start:index].strip())
            start = index + 1
    return [*values, text[start:].strip()]


def grid(dimensions: Sequence[Dimension]) -> list[SweepTrial]:
    """Return a trial for each combination of values.

    Raise a ConfigError if a dimension is a range, because a range has no list of values.
    """
    ranges = [dimension.key for dimension in dimensions if isinstance(dimension, Range)]
    if ranges:
        raise ConfigError(
            f"{', '.join(ranges)}: a range LOW..HIGH needs Optuna, which chooses the values. Add "
            "--trials N, or list the values: A,B,C."
        )
    choices = [dimension for dimension in dimensions if isinstance(dimension, Choice)]
    combinations = itertools.product(*(choice.values for choice in choices))
    return [make_trial(dimensions, values) for values in combinations]


def make_trial(dimensions: Sequence[Dimension], values: Sequence[str]) -> SweepTrial:
    """Return the trial (one training run) in which each setting of the sweep has the given value.

    The name of the trial contains the settings that differ between trials, and their values.

    dimensions: the settings of the sweep
    values:     the value of each setting in this trial
    """
    varied = [
        (dimension.key, value)
        for dimension, value in zip(dimensions, values, strict=True)
        if isinstance(dimension, Range) or len(dimension.values) > 1
    ]
    settings = tuple(
        f"{dimension.key}={value}" for dimension, value in zip(dimensions, values, strict=True)
    )
    return SweepTrial(_name(list(_short_keys(varied))), settings)


def _short_keys(varied: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield key=value for each setting, with only the last part of the key.

    For example, model.width=64 becomes width=64. If two keys have the same last part, both are
    written in full.
    """
    last_parts = [key.rpartition(".")[2] for key, _ in varied]
    for (key, value), last in zip(varied, last_parts, strict=True):
        yield f"{last if last_parts.count(last) == 1 else key}={value}"


def _name(parts: Sequence[str]) -> str:
    """Join texts into the name of a folder.

    A long name is shortened, and special characters are replaced. In both cases a digest is
    appended, so that different texts give different names.
    """
    text = "_".join(parts) or "all"
    name = re.sub(r"[^\w.=+-]", "-", text)[:MAX_NAME]
    if name == text:
        return name
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
