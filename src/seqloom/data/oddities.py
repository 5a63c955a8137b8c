"""What is odd about a split, told from what was counted in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from seqloom.config.schema.corpora import ParallelConfig, SyntheticConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.data.splits import corpora_of
from seqloom.data.survey import Survey

Level = Literal["error", "warning", "note"]

MANY_REPEATED = 0.1
MANY_IDENTICAL = 0.05
MANY_UNKNOWN = 0.01
FAR_OUT = 5
"""Times the length that 99 of 100 examples keep below: from there a length is extreme."""


@dataclass(frozen=True)
class Finding:
    """level: error (training cannot start), warning (look at it), note (good to know)"""

    level: Level
    where: str
    what: str
    advice: str


def oddities(found: Survey, config: RunConfig) -> Iterator[Finding]:
    if config.data.is_long_text:  # of which lines are no examples
        yield from _unknowns(found)
        return
    yield from _taken_lines(found, config)
    yield from _repetitions(found, config)
    yield from _leaks(found)
    yield from _emptiness(found)
    yield from _unknowns(found)
    yield from _extremes(found)
    filtered = found.dropped - found.empty
    if filtered:
        listed = "; ".join(f"{reason}: {count}" for reason, count in filtered.items())
        yield Finding(
            "note",
            f"data.{found.split}",
            f"the filters leave out {filtered.total()} of {found.examples} examples ({listed})",
            "loosen data.filter if that is too many",
        )


def _taken_lines(found: Survey, config: RunConfig) -> Iterator[Finding]:
    for corpus in corpora_of(config.data, found.split):
        if isinstance(corpus, ParallelConfig) and (corpus.first_line > 1 or corpus.last_line):
            end = "the end" if corpus.last_line is None else f"line {corpus.last_line}"
            yield Finding(
                "note",
                f"data.{found.split}",
                f"{corpus.source} is read from line {corpus.first_line} to {end}, "
                f"{found.examples} examples in this split",
                "first_line and last_line say so; leave them out to read the whole file",
            )


def _repetitions(found: Survey, config: RunConfig) -> Iterator[Finding]:
    where = f"data.{found.split}"
    made_up = all(isinstance(c, SyntheticConfig) for c in corpora_of(config.data, found.split))
    if found.repeated_pairs:
        many = found.repeated_pairs > MANY_REPEATED * found.examples and not made_up
        yield Finding(
            "warning" if many else "note",
            where,
            f"{found.repeated_pairs} of {found.examples} examples are repeated word for word",
            "remove duplicates, unless you mean them to count more",
        )
    if found.repeated_sources > found.repeated_pairs and not config.data.merge_references:
        yield Finding(
            "note",
            where,
            f"{found.repeated_sources - found.repeated_pairs} of {found.examples} examples give "
            "another target for a source seen before",
            "when scoring, data.merge_references = true makes them references of one sentence",
        )
    if found.identical and not made_up:
        many = found.identical > MANY_IDENTICAL * found.examples
        yield Finding(
            "warning" if many else "note",
            where,
            f"{found.identical} of {found.examples} examples have a target equal to their source",
            "the model will learn to copy: remove what was left untranslated",
        )


def _leaks(found: Survey) -> Iterator[Finding]:
    if found.leaked_sources:
        yield Finding(
            "warning",
            found.first_leak,
            f"{found.leaked_sources} of {found.examples} {found.split} examples have a source that "
            f"is in the training split ({found.leaked_pairs} with the same target)",
            "scores will be too good: take them out of the training data",
        )


def _emptiness(found: Survey) -> Iterator[Finding]:
    if found.empty:
        listed = "; ".join(f"{kind}: {count}" for kind, count in found.empty.items())
        dropped = found.split == "train"
        yield Finding(
            "warning",
            found.first_empty,
            f"{found.empty.total()} of {found.examples} {found.split} examples are empty ({listed})",
            "they will be left out" if dropped else "they will be scored as they are",
        )


def _unknowns(found: Survey) -> Iterator[Finding]:
    for name, side in (("source", found.source), ("target", found.target)):
        if side is not None and side.unknown:
            yield Finding(
                "warning" if side.unknown_share > MANY_UNKNOWN else "note",
                f"data.{found.split}",
                f"{side.unknown_share:.2%} of {name} tokens are unknown "
                f"({side.unknown} of {side.tokens})",
                "use subwords, raise text.tokenizer.size, or look for strange characters",
            )


def _extremes(found: Survey) -> Iterator[Finding]:
    if found.target is None or not found.extremes:
        return
    longest = np.asarray(found.target.lengths)
    if found.source is not None:
        longest = np.maximum(longest, np.asarray(found.source.lengths))
    usual = float(np.percentile(longest, 99))
    for extreme in found.extremes:
        if extreme.longest > FAR_OUT * max(usual, 1):
            yield Finding(
                "warning",
                extreme.where,
                f"{extreme.longest} tokens, where 99 of 100 examples have {usual:.0f} or fewer",
                "look at the line; data.filter.max_source_tokens and max_target_tokens leave "
                "such examples out",
            )
