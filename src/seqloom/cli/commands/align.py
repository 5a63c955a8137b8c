"""The commands `seqloom align`, `seqloom alignment-error` and `seqloom alignment-heads`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqloom.cli.options import (
    EnsembleMembers,
    Json,
    RunFolder,
    argument,
    existing_run,
    flag,
    option,
)
from seqloom.cli.output import flush_output, print_json, print_line, print_message, print_warning
from seqloom.cli.parameters.completion import complete_run
from seqloom.cli.process.progress import count_lines, progress_bar
from seqloom.cli.tables import make_table, stdout_console
from seqloom.core.errors import ConfigError, DataError

if TYPE_CHECKING:
    from seqloom.inference.alignment import ScoredHeads, WordAlignment
    from seqloom.inference.run import Run
    from seqloom.metrics.alignment import Alignment, Symmetrisation
    from seqloom.metrics.alignment_error import AlignmentScores, GoldLinks

SentencePair = tuple[str, str]
SCORE_NAMES = ("precision", "recall", "error rate")
MAX_LISTED_CANDIDATES = 10
"""Maximum number of candidates that `seqloom alignment-heads` lists."""


Sources = Annotated[
    Path,
    argument(
        "SOURCE",
        "File of sources, one sentence per line; or of sources and targets, separated by a tab.",
    ),
]
Targets = Annotated[
    Path | None, argument("[TARGET]", "File of targets; line n belongs to source n.")
]
Gold = Annotated[
    Path,
    option("FILE", "File of gold alignments: 0-0 sure, 0p1 possible, words counted from 0."),
]
Reverse = Annotated[
    Path | None,
    option(
        "RUN",
        "Run for the opposite direction. The weights of both runs are multiplied and their links "
        "symmetrised.",
        "--reverse",
        advanced=True,
        callback=existing_run,
        autocompletion=complete_run,
    ),
]
Method = Annotated[
    str,
    option(
        "METHOD",
        "With --reverse: intersection, union, grow-diag or grow-diag-final.",
        advanced=True,
    ),
]


def align(
    run_folder: RunFolder,
    source: Sources,
    target: Targets = None,
    soft: Annotated[
        bool, flag("--soft", "Print all links with a weight of 0.01 or more, as 0-0:0.93.")
    ] = False,
    reverse_folder: Reverse = None,
    symmetrise: Method = "grow-diag",
    json: Json = False,
    ensemble: EnsembleMembers = None,
) -> None:
    """Align the words of source and target by attention.

    Prints a line such as `0-0 2-1` for each pair: source word 0 is linked to target word 0, and
    source word 2 to target word 1. Words are separated by spaces and counted from 0.
    """
    if reverse_folder is not None and soft:
        raise typer.BadParameter("--reverse cannot be combined with --soft.")

    from seqloom.data.readers.example_files import check_files

    method = _parse_method(reverse_folder, symmetrise)
    files = [source] if target is None else [source, target]
    check_files(files)
    run, reverse = _load_aligner([run_folder, *(ensemble or ())]), None
    if reverse_folder is not None:
        reverse = _load_aligner([reverse_folder])
    finished = 0
    with progress_bar("aligning", "lines", prints=True) as show:
        total = count_lines(files[:1], prints=True)
        for pairs in _read_pairs(files):
            alignments = _align_pairs(run, pairs)
            links = _choose_links(alignments, pairs, reverse, method)
            _print_alignments(pairs, alignments, links, soft=soft, json=json)
            finished += len(pairs)
            show(finished, total)


def alignment_error(
    run_folder: RunFolder,
    source: Sources,
    target: Targets = None,
    *,
    gold: Gold,
    reverse_folder: Reverse = None,
    symmetrise: Method = "grow-diag",
    json: Json = False,
    ensemble: EnsembleMembers = None,
) -> None:
    """Compare word alignments by attention with gold alignments.

    Prints precision, recall and alignment error rate.
    """
    from seqloom.metrics.alignment_error import score_alignments

    method = _parse_method(reverse_folder, symmetrise)
    pairs, gold_links = _read_gold_pairs(source, target, gold)
    run, reverse = _load_aligner([run_folder, *(ensemble or ())]), None
    if reverse_folder is not None:
        reverse = _load_aligner([reverse_folder])
    links = _choose_links(_align_pairs(run, pairs), pairs, reverse, method)
    _print_scores(score_alignments(links, gold_links), json)


def alignment_heads(
    run_folder: RunFolder,
    source: Sources,
    target: Targets = None,
    *,
    gold: Gold,
    json: Json = False,
) -> None:
    """Find the attention heads that align words best, and store them in the run folder.

    Later alignments use these heads. Each candidate is one head or a group of heads.
    """
    from seqloom.analysis.output import no_attention_error
    from seqloom.inference.alignment import find_heads, save_alignment_heads
    from seqloom.runs.archive import is_extracted

    if is_extracted(run_folder):
        raise ConfigError(
            "The heads are stored in the run folder, but this run is a packed file. Extract it "
            "with `seqloom unpack` and give the folder."
        )
    pairs, gold_links = _read_gold_pairs(source, target, gold)
    if not pairs:
        raise DataError(
            f"{source}: no sentence pairs. Give sentence pairs and their gold alignments."
        )
    run = _load_aligner([run_folder])
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    predictions = run.score(sources, targets, heads=True)
    if any(prediction.heads is None for prediction in predictions):
        raise no_attention_error(run)
    candidates = find_heads(predictions, gold_links)
    best = candidates[0]
    path = save_alignment_heads(run.folder, best, run.weights_digest)
    if json:
        print_json({"candidates": [_candidate_to_json(each) for each in candidates]})
    else:
        rows = [
            (str(each.choice), *_format_scores(each.scores))
            for each in candidates[:MAX_LISTED_CANDIDATES]
        ]
        stdout_console().print(make_table(("heads", *SCORE_NAMES), rows))
    print_message(f"{path}: word alignments now use {best.choice}")


def _parse_method(reverse_folder: Path | None, symmetrise: str) -> Symmetrisation | None:
    from seqloom.metrics.alignment import parse_symmetrisation

    return None if reverse_folder is None else parse_symmetrisation(symmetrise)


def _load_aligner(folders: Sequence[Path]) -> Run:
    """Load a run or an ensemble. Raises ConfigError if its sources are not texts.

    Prints a warning if the attention heads stored in the run folder cannot be used.
    """
    from seqloom.analysis.output import check_has_text_source
    from seqloom.inference.run import load

    run = load(folders)
    check_has_text_source(run)
    if run.heads_note:
        print_warning(run.heads_note)
    return run


def _read_gold_pairs(
    source: Path, target: Path | None, gold: Path
) -> tuple[list[SentencePair], list[GoldLinks]]:
    """Read sentence pairs and their gold alignments."""
    from seqloom.data.readers.example_files import check_files

    files = [source] if target is None else [source, target]
    check_files([*files, gold])
    pairs = [pair for portion in _read_pairs(files) for pair in portion]
    return pairs, _read_gold(gold, pairs)


def _read_pairs(files: Sequence[Path]) -> Iterator[list[SentencePair]]:
    """Read sentence pairs from two files, or from one file with two columns separated by a tab.

    Yields lists of pairs, so that only a part of each file is in memory at a time.
    """
    from seqloom.data.readers.example_files import read_aligned_lines

    line_number = 0
    for rows in read_aligned_lines(files):
        pairs: list[SentencePair] = []
        for row in rows:
            line_number += 1
            pairs.append(
                _split_columns(row[0], f"{files[0]}:{line_number}")
                if len(files) == 1
                else (row[0], row[1])
            )
        yield pairs


def _split_columns(line: str, location: str) -> SentencePair:
    source, tab, target = line.partition("\t")
    if not tab:
        raise DataError(
            f"{location}: no tab. Separate source and target by a tab, or give two files."
        )
    return source, target


def _align_pairs(run: Run, pairs: Sequence[SentencePair]) -> list[WordAlignment]:
    from seqloom.analysis.output import no_attention_error
    from seqloom.inference.alignment import word_alignment

    predictions = run.score(
        [source for source, _ in pairs], [target for _, target in pairs], attention=True
    )
    if any(prediction.alignment_weights is None for prediction in predictions):
        raise no_attention_error(run)
    return [word_alignment(prediction) for prediction in predictions]


def _choose_links(
    alignments: Sequence[WordAlignment],
    pairs: Sequence[SentencePair],
    reverse: Run | None,
    method: Symmetrisation | None,
) -> list[Alignment]:
    """Return the word links of each sentence pair.

    reverse: run for the opposite direction. If it is given, its links and those of `alignments` are
             combined with `method`
    """
    from seqloom.inference.alignment import combine_alignments

    if reverse is None or method is None:
        return [alignment.links for alignment in alignments]
    backward = _align_pairs(reverse, [(target, source) for source, target in pairs])
    return [combine_alignments(*both, method) for both in zip(alignments, backward, strict=True)]


def _print_alignments(
    pairs: Sequence[SentencePair],
    alignments: Sequence[WordAlignment],
    links: Sequence[Alignment],
    *,
    soft: bool,
    json: bool,
) -> None:
    from seqloom.metrics.alignment import format_pharaoh, format_soft

    for (source, target), alignment, chosen in zip(pairs, alignments, links, strict=True):
        if json:
            print_json(
                {
                    "source": source,
                    "target": target,
                    "links": chosen,
                    "weights": alignment.weights.tolist(),
                }
            )
        elif soft:
            print_line(format_soft(alignment.weights, alignment.targets, alignment.sources))
        else:
            print_line(format_pharaoh(chosen))
    flush_output()


def _read_gold(path: Path, pairs: Sequence[SentencePair]) -> list[GoldLinks]:
    """Read the gold alignment of each pair. Raises a DataError that lists every invalid line."""
    from seqloom.data.readers.text_files import read_lines
    from seqloom.inference.alignment import check_gold_links
    from seqloom.metrics.alignment_error import parse_gold

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
            f"{path}: has {len(gold):,} lines for {len(pairs):,} pairs. Line n must be the "
            "alignment of pair n."
        )
    check_gold_links(gold, pairs, str(path))
    return gold


def _format_scores(scores: AlignmentScores) -> list[str]:
    return [f"{value:.3f}" for value in (scores.precision, scores.recall, scores.error_rate)]


def _candidate_to_json(candidate: ScoredHeads) -> dict[str, Any]:
    heads = [[layer + 1, head + 1] for layer, head in candidate.choice.heads]
    return {"heads": heads, "shift": candidate.choice.shift, **asdict(candidate.scores)}


def _print_scores(scores: AlignmentScores, json: bool) -> None:
    if json:
        print_json(asdict(scores))
        return
    rows = [
        *zip(SCORE_NAMES, _format_scores(scores), strict=True),
        ("links", f"{scores.links:,}"),
        ("sentences", f"{scores.sentences:,}"),
    ]
    stdout_console().print(make_table(("score", "value"), rows))
