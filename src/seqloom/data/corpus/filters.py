"""Decides which training pairs are dropped, and why."""

from dataclasses import dataclass

from seqloom.config.schema.data import FilterConfig

EMPTY_SOURCE = "empty source"
EMPTY_TARGET = "empty target"
EMPTY_BOTH = "both sides empty"
LONG_SOURCE = "source above max_source_tokens"
LONG_TARGET = "target above max_target_tokens"
RATIO = "length ratio above max_ratio"
INVALID_LINE = "invalid line"


@dataclass(frozen=True)
class PairLengths:
    """Number of tokens on each side of a pair, without START and END.

    source: None if there is no source or the source is an image
    """

    source: int | None
    target: int


def empty_side(lengths: PairLengths) -> str | None:
    """Return which side of a pair is empty, or None if neither side is empty."""
    if lengths.source == 0:
        return EMPTY_BOTH if lengths.target == 0 else EMPTY_SOURCE
    return EMPTY_TARGET if lengths.target == 0 else None


def reason_to_drop(lengths: PairLengths, config: FilterConfig) -> str | None:
    """Return the first reason to drop a training pair, or None if the pair is kept."""
    if empty := empty_side(lengths):
        return empty
    source, target = lengths.source, lengths.target
    if source is not None and _exceeds(source, config.max_source_tokens):
        return LONG_SOURCE
    if _exceeds(target, config.max_target_tokens):
        return LONG_TARGET
    if source is not None and _exceeds(max(source, target) / min(source, target), config.max_ratio):
        return RATIO
    return None


def _exceeds(value: float, limit: float | None) -> bool:
    return limit is not None and value > limit
