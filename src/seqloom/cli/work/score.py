"""The model's own log-probability of given outputs."""

from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path

from seqloom.cli.output import put, put_now
from seqloom.cli.work.lines import PORTION, check_files
from seqloom.core.errors import ConfigError, DataError
from seqloom.data.files import read_lines
from seqloom.runs.run import load


def score(folders: Sequence[Path], source: Path, target: Path | None, per_token: bool) -> None:
    run = load(folders)
    alone = run.config.task.kind == "language-model"
    if alone and target is not None:
        raise ConfigError(f"{run.name}: is a language model, which reads nothing; give one file")
    if not alone and target is None:
        raise ConfigError(f"{run.name}: give two files, what is read and what should come out")
    files = [source] if target is None else [source, target]
    check_files(files)
    for pairs in pairs_of(files):
        sources = ["" if alone else pair[0] for pair in pairs]
        for output in run.score(sources, [pair[-1] for pair in pairs]):
            steps = output.log_probabilities
            put(" ".join(f"{step:.6f}" for step in (steps if per_token else [sum(steps)])))
        put_now()


def pairs_of(files: Sequence[Path]) -> Iterator[list[tuple[str, ...]]]:
    """Lines of the files side by side, some at a time; the files must be equally long."""
    lines = zip_longest(*(read_lines(file) for file in files))
    number = 0
    while portion := list(islice(lines, PORTION)):
        for pair in portion:
            number += 1
            if None in pair:
                short = files[pair.index(None)]
                raise DataError(
                    f"{short}: ends after line {number - 1}, but the other file goes on; "
                    "line n of one must belong to line n of the other"
                )
        yield portion
