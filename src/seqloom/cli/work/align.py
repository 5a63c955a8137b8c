"""Word alignments of given pairs."""

import json as json_format
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from seqloom.cli.output import put, put_now, tell, warn
from seqloom.cli.work.lines import PORTION, check_files
from seqloom.cli.work.score import pairs_of
from seqloom.cli.work.tables import stdout_console, table
from seqloom.core.errors import ConfigError, DataError
from seqloom.data.files import read_lines
from seqloom.metrics.alignment import Alignment, format_pharaoh, format_soft
from seqloom.metrics.alignment_error import (
    AlignmentScores,
    GoldLinks,
    parse_gold,
    score_alignments,
)
from seqloom.metrics.symmetrise import Symmetry, known_symmetry
from seqloom.runs.alignment import (
    ScoredHeads,
    WordAlignment,
    check_gold_links,
    combine_alignments,
    find_heads,
    save_alignment_heads,
    word_alignment,
)
from seqloom.runs.run import Run, load
from seqloom.runs.seeing import no_attention, refuse_sourceless

Pair = tuple[str, str]
SHOWN = 10
"""Candidates that are told of."""


def align(
    folders: Sequence[Path],
    files: Sequence[Path],
    back: tuple[Path, str] | None,
    known: tuple[Path | None, bool],
    shown: tuple[bool, bool],
) -> None:
    """back: --reverse and --symmetrise; known: --gold and --find-heads; shown: --soft and --json."""
    gold, finding = known
    how = None if back is None else known_symmetry(back[1])
    check_files([*files, *([] if gold is None else [gold])])
    run = _seeing(load(folders))
    reverse = None if back is None else _seeing(load(back[0]))
    if gold is None:
        for portion in _portions(files):
            found = _align(run, portion)
            _put_lines(portion, found, _links(found, portion, reverse, how), shown)
        return
    pairs = [pair for portion in _portions(files) for pair in portion]
    links = read_gold(gold, pairs)
    if finding:
        _find(run, pairs, links, shown[1])
    else:
        chosen = _links(_align(run, pairs), pairs, reverse, how)
        _put_scores(score_alignments(chosen, links), shown[1])


def _seeing(run: Run) -> Run:
    refuse_sourceless(run)
    if run.heads_note:
        warn(run.heads_note)
    return run


def _portions(files: Sequence[Path]) -> Iterator[list[Pair]]:
    """Pairs of lines, of two files or of the two columns of one, some at a time."""
    if len(files) == 2:
        for portion in pairs_of(files):
            yield [(source, target) for source, target in portion]
        return
    rows = enumerate(read_lines(files[0]), start=1)
    while some := list(islice(rows, PORTION)):
        yield [_columns(line, f"{files[0]}:{number}") for number, line in some]


def _columns(line: str, place: str) -> Pair:
    source, tab, target = line.partition("\t")
    if not tab:
        raise DataError(
            f"{place}: there is no tab; separate source and target by one, or give two files"
        )
    return source, target


def _align(run: Run, pairs: Sequence[Pair]) -> list[WordAlignment]:
    outputs = run.score([source for source, _ in pairs], [target for _, target in pairs])
    if any(one.aligning is None for one in outputs):
        raise no_attention(run)
    return [word_alignment(one) for one in outputs]


def _links(
    found: Sequence[WordAlignment],
    pairs: Sequence[Pair],
    reverse: Run | None,
    how: Symmetry | None,
) -> list[Alignment]:
    """Of one run, or of two that go opposite ways."""
    forward = [one.links for one in found]
    if reverse is None or how is None:
        return forward
    backward = _align(reverse, [(target, source) for source, target in pairs])
    return [combine_alignments(one, other, how) for one, other in zip(found, backward, strict=True)]


def _put_lines(
    pairs: Sequence[Pair],
    found: Sequence[WordAlignment],
    links: Sequence[Alignment],
    shown: tuple[bool, bool],
) -> None:
    soft, as_json = shown
    for (source, target), one, chosen in zip(pairs, found, links, strict=True):
        if as_json:
            record = {
                "source": source,
                "target": target,
                "links": chosen,
                "weights": one.weights.tolist(),
            }
            put(json_format.dumps(record, ensure_ascii=False))
        elif soft:
            put(format_soft(one.weights, one.targets, one.sources))
        else:
            put(format_pharaoh(chosen))
    put_now()


def read_gold(path: Path, pairs: Sequence[Pair]) -> list[GoldLinks]:
    """One line for each pair, or an error that says which is wrong."""
    gold, problems = [], []
    for number, line in enumerate(read_lines(path), start=1):
        try:
            gold.append(parse_gold(line))
        except DataError as error:
            problems.append(f"{path}:{number}: {error}")
    if problems:
        raise DataError("\n".join(problems))
    if len(gold) != len(pairs):
        raise DataError(
            f"{path}: has {len(gold):,} lines for {len(pairs):,} pairs; line n of it must belong "
            "to pair n"
        )
    check_gold_links(gold, pairs, str(path))
    return gold


def _find(run: Run, pairs: Sequence[Pair], gold: Sequence[GoldLinks], as_json: bool) -> None:
    if run.partners:
        raise ConfigError(
            f"{run.name}: an ensemble averages the attention of its members and has no heads of "
            "its own; find those of one run"
        )
    if not pairs:
        raise DataError("there is no pair to find heads by; give some with their gold alignments")
    outputs = run.score([one for one, _ in pairs], [other for _, other in pairs], heads=True)
    if any(one.heads is None for one in outputs):
        raise no_attention(run)
    candidates = find_heads(outputs, gold)
    best = candidates[0]
    place = save_alignment_heads(run.folder, best, run.weights_digest)
    if as_json:
        put(json_format.dumps({"candidates": [_candidate(one) for one in candidates]}))
    else:
        rows = [(str(one.choice), *_figures(one.scores)) for one in candidates[:SHOWN]]
        stdout_console().print(table(("heads", *_NAMES), rows))
    tell(f"{place}: from now on words are aligned by {best.choice}")


_NAMES = ("precision", "recall", "error rate")


def _figures(scores: AlignmentScores) -> list[str]:
    return [f"{value:.3f}" for value in (scores.precision, scores.recall, scores.error_rate)]


def _candidate(one: ScoredHeads) -> dict[str, Any]:
    heads = [[layer + 1, head + 1] for layer, head in one.choice.heads]
    return {"heads": heads, "shift": one.choice.shift, **asdict(one.scores)}


def _put_scores(scores: AlignmentScores, as_json: bool) -> None:
    if as_json:
        put(json_format.dumps(asdict(scores)))
        return
    facts = [*zip(_NAMES, _figures(scores), strict=True)]
    rows = [*facts, ("links", f"{scores.links:,}"), ("sentences", f"{scores.sentences:,}")]
    stdout_console().print(table(("score", "value"), rows))
