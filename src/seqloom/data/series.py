"""Windows of real-valued sequences: what was observed, what came then, and what was known of it."""

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqloom.config.schema.corpora import SeriesConfig, TracksConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.task import ForecastConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.data.example import Split
from seqloom.data.files import locate, read_lines
from seqloom.data.splits import corpora_of

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Window:
    """One example.

    observed: (S, D + C) the values, and beside them the context
    future:   (T, D)     what came then
    context:  (T, C)     what is known of that time beforehand; C may be 0
    where:    file:line of its first row, for messages
    """

    observed: Numbers
    future: Numbers
    context: Numbers
    where: str


@dataclass(frozen=True)
class Table:
    """The columns of a CSV file that are asked for: (N, D) values and (N, C) context."""

    path: Path
    values: Numbers
    context: Numbers


def read_windows(config: DataConfig, task: ForecastConfig, split: Split) -> list[Window]:
    """Every window of a split."""
    windows: list[Window] = []
    for corpus in corpora_of(config, split):
        if isinstance(corpus, SeriesConfig):
            found = list(_of_series(corpus, config.folder, task))
        elif isinstance(corpus, TracksConfig):
            found = list(_of_tracks(corpus, config.folder, task, split))
        else:
            raise ConfigError(f"data.{split}: '{corpus.kind}' has no numbers to forecast")
        if not found:
            raise DataError(
                f"data.{split}: there is no window of {task.observe} + {task.predict} rows; give "
                "more rows, or lower task.observe and task.predict"
            )
        windows += found
    if not windows:
        raise ConfigError(f"data.{split}: is not set, so there is nothing to read")
    return windows


def widths(config: DataConfig) -> tuple[int, int]:
    """(D, C): how many numbers are forecast, and how many stand beside them."""
    found = {
        (len(corpus.columns), len(corpus.context)) if isinstance(corpus, SeriesConfig) else (2, 0)
        for corpus in config.train
        if isinstance(corpus, SeriesConfig | TracksConfig)
    }
    if len(found) != 1:
        raise ConfigError("data.train: all series must have as many columns and as much context")
    return found.pop()


def read_table(path: Path, columns: Sequence[str], context: Sequence[str]) -> Table:
    """A CSV file with a line of names on top; a number that is missing is an error here."""
    names, rows = read_cells(path, [*columns, *context])
    numbers = np.array(
        [
            [number_of(cell, path, number, name) for cell, name in zip(row, names, strict=True)]
            for number, row in rows
        ],
        dtype=np.float64,
    ).reshape(len(rows), len(names))
    return Table(path, numbers[:, : len(columns)], numbers[:, len(columns) :])


def read_cells(path: Path, wanted: Sequence[str]) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The wanted columns of a CSV file, as text: their names, and (line, cells) of every row."""
    reader = csv.reader(read_lines(path))
    names = [name.strip() for name in next(reader, [])]
    if missing := [name for name in wanted if name not in names]:
        raise DataError(
            f"{path}:1: there is no column {', '.join(missing)}; the columns are "
            f"{', '.join(names) or 'none'}"
        )
    places = [names.index(name) for name in wanted]
    rows = []
    for row in reader:
        if not row:
            continue
        if len(row) < len(names):
            raise DataError(
                f"{path}:{reader.line_num}: {len(row)} cells where the first line names "
                f"{len(names)} columns"
            )
        rows.append((reader.line_num, [row[place] for place in places]))
    return list(wanted), rows


def number_of(cell: str, path: Path, line: int, name: str) -> float:
    """A finite number; else an error that says where."""
    try:
        value = float(cell)
    except ValueError as error:
        raise DataError(f"{path}:{line}: column {name}: {cell!r} is no number") from error
    if not np.isfinite(value):
        raise DataError(f"{path}:{line}: column {name}: {cell!r} is not finite")
    return value


def _of_series(config: SeriesConfig, folder: str, task: ForecastConfig) -> Iterator[Window]:
    table = read_table(locate(config.path, folder), config.columns, config.context)
    first, last = config.rows or (0, len(table.values))
    if last > len(table.values):
        raise DataError(f"{table.path}: has {len(table.values)} rows, but rows = [{first}, {last}]")
    both = np.concatenate([table.values, table.context], axis=1)
    for start in range(max(first, task.observe), last - task.predict + 1, config.stride):
        yield Window(
            observed=both[start - task.observe : start],
            future=table.values[start : start + task.predict],
            context=table.context[start : start + task.predict],
            where=f"{table.path}:{start - task.observe + 2}",
        )


def _of_tracks(
    config: TracksConfig, folder: str, task: ForecastConfig, split: Split
) -> Iterator[Window]:
    for name in _track_files(config, folder, split):
        yield from _windows_of_recording(locate(name, folder), config.companions, task)


def _track_files(config: TracksConfig, folder: str, split: Split) -> Sequence[str]:
    if config.scene is None:
        return config.recordings
    path = locate(config.splits, folder)
    scenes = json.loads("\n".join(read_lines(path)))
    if config.scene not in scenes:
        raise DataError(f"{path}: there is no scene '{config.scene}', but {', '.join(scenes)}")
    part = {"train": "train", "dev": "val", "test": "test"}[split]
    place = {"train": "train", "dev": "val", "test": "all_data"}[split]
    return [f"{place}/{name}.gz" for name in scenes[config.scene][part]]


def _windows_of_recording(path: Path, companions: int, task: ForecastConfig) -> Iterator[Window]:
    """Every walker who is there for a whole window of successive frames, if enough others are.

    Frames are counted by their order: those in which nobody was seen are not in the file.
    """
    points: dict[float, dict[float, tuple[float, float]]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split()
        if len(cells) != 4:
            raise DataError(f"{path}:{number}: {len(cells)} cells; a line is frame, walker, x, y")
        frame, walker, x, y = (number_of(cell, path, number, "") for cell in cells)
        points.setdefault(frame, {})[walker] = (x, y)
    frames = sorted(points)
    length = task.observe + task.predict
    for start in range(len(frames) - length + 1):
        seen = [points[frame] for frame in frames[start : start + length]]
        whole = [walker for walker in seen[0] if all(walker in each for each in seen)]
        if len(whole) < companions:
            continue
        for walker in whole:
            path_walked = np.array([each[walker] for each in seen])
            yield Window(
                observed=path_walked[: task.observe],
                future=path_walked[task.observe :],
                context=np.zeros((task.predict, 0)),
                where=f"{path}: walker {walker:g} from frame {frames[start]:g}",
            )
