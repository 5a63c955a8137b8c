"""Warnings about a split, derived from its statistics."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from seqloom.config.schema.corpora import CorpusConfig, ParallelConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.data.checks.statistics import SplitStatistics
from seqloom.data.readers.splits import corpora_of

Level = Literal["error", "warning", "note"]

MAX_REPEATED = 0.1
"""If more than this fraction of the examples are repetitions, the finding is a warning, otherwise
a note."""
MAX_IDENTICAL = 0.05
"""If the target equals the source in more than this fraction of the examples, the finding is a
warning, otherwise a note."""
MAX_UNKNOWN = 0.01
"""If more than this fraction of the tokens are unknown, the finding is a warning, otherwise a
note."""
EXTREME_LENGTH = 5
"""Examples longer than this multiple of the 99th percentile of all lengths are reported."""


@dataclass(frozen=True)
class Finding:
    """One result of a dataset check.

    level:  error (training cannot start), warning (should be checked) or note (for information)
    where:  a table of the recipe, or file:line
    what:   the problem
    advice: what to do
    """

    level: Level
    where: str
    what: str
    advice: str


def split_warnings(statistics: SplitStatistics, config: RunConfig) -> Iterator[Finding]:
    """Yield the warnings and notes about a split."""
    if config.data.is_long_text:  # the lines of a long text are not examples
        yield from _unknown_tokens(statistics)
        yield from _unusual_characters(statistics, config)
        return
    yield from _skipped_lines(statistics)
    yield from _line_ranges(statistics, config)
    yield from _duplicates(statistics, config)
    yield from _leaks(statistics)
    yield from _empty_examples(statistics)
    yield from _unknown_tokens(statistics)
    yield from _unusual_characters(statistics, config)
    yield from _extreme_lengths(statistics)
    filtered = statistics.dropped - statistics.empty
    if filtered:
        listed = "; ".join(f"{reason}: {count}" for reason, count in filtered.items())
        yield Finding(
            "note",
            f"data.{statistics.split}",
            f"the filters drop {filtered.total()} of {statistics.examples} examples ({listed})",
            "relax data.filter to keep more",
        )


def _skipped_lines(statistics: SplitStatistics) -> Iterator[Finding]:
    skipped = statistics.skipped_lines
    if skipped.count:
        lines = "; ".join(f"{line.where}: {line.problem}" for line in skipped.first[:3])
        more = "; …" if skipped.count > 3 else ""
        yield Finding(
            "warning",
            f"data.{statistics.split}",
            f"{skipped.count:,} lines cannot be used and are skipped ({lines}{more})",
            "correct them, or set data.invalid_lines = 'error' to list ten of them",
        )


def _line_ranges(statistics: SplitStatistics, config: RunConfig) -> Iterator[Finding]:
    for corpus in corpora_of(config.data, statistics.split):
        if isinstance(corpus, ParallelConfig) and (corpus.first_line > 1 or corpus.last_line):
            end = "the end" if corpus.last_line is None else f"line {corpus.last_line}"
            yield Finding(
                "note",
                f"data.{statistics.split}",
                f"{corpus.source} is read only from line {corpus.first_line} to {end}; "
                f"this split has {statistics.examples} examples",
                "remove first_line and last_line to read the whole file",
            )


def _duplicates(statistics: SplitStatistics, config: RunConfig) -> Iterator[Finding]:
    where = f"data.{statistics.split}"
    corpora = corpora_of(config.data, statistics.split)
    is_synthetic = all(
        isinstance(corpus, CorpusConfig) and corpus.is_generated for corpus in corpora
    )
    if statistics.repeated_pairs:
        many = statistics.repeated_pairs > MAX_REPEATED * statistics.examples and not is_synthetic
        yield Finding(
            "warning" if many else "note",
            where,
            f"{statistics.repeated_pairs} of {statistics.examples} examples are exact duplicates "
            "of earlier ones",
            "remove duplicates, unless they are meant to count more",
        )
    more_targets = statistics.repeated_sources - statistics.repeated_pairs
    if more_targets > 0 and not config.data.merge_references:
        yield Finding(
            "note",
            where,
            f"{more_targets} of {statistics.examples} examples have the same source as an "
            "earlier example but a different target",
            "to score them as references of one source, set data.merge_references = true",
        )
    if statistics.identical and not is_synthetic:
        many = statistics.identical > MAX_IDENTICAL * statistics.examples
        yield Finding(
            "warning" if many else "note",
            where,
            f"{statistics.identical} of {statistics.examples} examples have a target equal to "
            "their source",
            "remove untranslated examples: the model would learn to copy",
        )


def _leaks(statistics: SplitStatistics) -> Iterator[Finding]:
    if statistics.leaked_sources:
        yield Finding(
            "warning",
            statistics.first_leak,
            f"{statistics.leaked_sources} of {statistics.examples} {statistics.split} examples "
            "have a source that is in the training split "
            f"({statistics.leaked_pairs} with the same target)",
            "remove them from the training data: scores would be too high",
        )


def _empty_examples(statistics: SplitStatistics) -> Iterator[Finding]:
    if statistics.empty:
        listed = "; ".join(f"{side}: {count}" for side, count in statistics.empty.items())
        dropped = statistics.split == "train"
        yield Finding(
            "warning",
            statistics.first_empty,
            f"{statistics.empty.total()} of {statistics.examples} {statistics.split} examples are "
            f"empty ({listed})",
            "training drops them" if dropped else "they are scored like all others",
        )


def _unknown_tokens(statistics: SplitStatistics) -> Iterator[Finding]:
    for name, tokens in (("source", statistics.source), ("target", statistics.target)):
        if tokens is not None and tokens.unknown:
            yield Finding(
                "warning" if tokens.unknown_share > MAX_UNKNOWN else "note",
                f"data.{statistics.split}",
                f"{tokens.unknown_share:.2%} of {name} tokens are unknown "
                f"({tokens.unknown} of {tokens.tokens})",
                "use subwords, raise text.tokenizer.size, or check for unusual characters",
            )


def _unusual_characters(statistics: SplitStatistics, config: RunConfig) -> Iterator[Finding]:
    where, total = f"data.{statistics.split}", statistics.examples
    form = config.text.normalization
    for side, characters in (
        ("source", statistics.source_characters),
        ("target", statistics.target_characters),
    ):
        if lines := characters.not_nfc:
            yield Finding(
                "warning" if form == "none" else "note",
                where,
                f"{lines.count} of {total} {side}s are not in the Unicode form NFC ({lines})",
                "set text.normalization = 'nfc': otherwise equal characters may have different "
                "tokens"
                if form == "none"
                else f"nothing: text.normalization = '{form}' normalises them",
            )
        if lines := characters.invisible:
            yield Finding(
                "warning",
                where,
                f"{lines.count} of {total} {side}s have invisible characters ({lines})",
                "remove them: words that look the same would have different tokens",
            )
        if lines := characters.mixed_scripts:
            yield Finding(
                "warning",
                where,
                f"{lines.count} of {total} {side}s have words that mix Latin letters with Greek or "
                f"Cyrillic letters that look alike ({lines})",
                "replace the letters of the wrong script: words that look the same would have "
                "different tokens",
            )


def _extreme_lengths(statistics: SplitStatistics) -> Iterator[Finding]:
    if statistics.target is None or not statistics.longest:
        return
    lengths = np.asarray(statistics.target.lengths)
    if statistics.source is not None:
        lengths = np.maximum(lengths, np.asarray(statistics.source.lengths))
    usual = float(np.percentile(lengths, 99))
    for example in statistics.longest:
        if example.longest > EXTREME_LENGTH * max(usual, 1):
            yield Finding(
                "warning",
                example.where,
                f"{example.longest} tokens, but 99 % of the examples have {usual:.0f} or fewer",
                "check the line; data.filter.max_source_tokens and max_target_tokens drop "
                "such examples",
            )
