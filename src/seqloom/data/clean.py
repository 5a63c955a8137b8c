"""Which training pairs are left out, and why."""

from dataclasses import dataclass

from seqloom.config.schema.data import FilterConfig

EMPTY_SOURCE = "empty source"
EMPTY_TARGET = "empty target"
EMPTY_BOTH = "both sides empty"
LONG_SOURCE = "source above max_source_tokens"
LONG_TARGET = "target above max_target_tokens"
RATIO = "lengths apart by more than max_ratio"
REASONS = (EMPTY_SOURCE, EMPTY_TARGET, EMPTY_BOTH, LONG_SOURCE, LONG_TARGET, RATIO)


@dataclass(frozen=True)
class Lengths:
    """Tokens on each side, without START and END; no source for a language model."""

    source: int | None
    target: int


def emptiness(lengths: Lengths) -> str | None:
    """Nothing can be learned from a pair with an empty side."""
    if lengths.source == 0:
        return EMPTY_BOTH if lengths.target == 0 else EMPTY_SOURCE
    return EMPTY_TARGET if lengths.target == 0 else None


def reason_to_drop(lengths: Lengths, config: FilterConfig) -> str | None:
    """The first reason to leave a training pair out; None keeps it."""
    if empty := emptiness(lengths):
        return empty
    source, target = lengths.source, lengths.target
    if source is not None and _above(source, config.max_source_tokens):
        return LONG_SOURCE
    if _above(target, config.max_target_tokens):
        return LONG_TARGET
    if source is not None and _above(max(source, target) / min(source, target), config.max_ratio):
        return RATIO
    return None


def _above(value: float, limit: float | None) -> bool:
    return limit is not None and value > limit
