"""Reads the examples for forecasting. Each example is a window of a real-valued sequence: observed
rows, rows to forecast, and context (values known in advance)."""

import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.config.schema.corpora import (
    HoldOutConfig,
    RobotConfig,
    SeriesConfig,
    TracksConfig,
)
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.task import ForecastConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.data.example import Split
from seqloom.data.readers.csv_cells import Numbers, parse_number, read_cells
from seqloom.data.readers.generated.robot import robot_paths
from seqloom.data.readers.reader import Config, Reader, Records
from seqloom.data.readers.splits import corpora_of, reader_of
from seqloom.data.readers.text_files import locate, read_lines


@dataclass(frozen=True)
class SeriesWindow:
    """One forecasting example: S observed rows and T rows to forecast. Each row has D columns to
    forecast and C columns of context.

    observed: (S, D + C) observed values, with their context in the last C columns
    future:   (T, D)     the values to forecast
    context:  (T, C)     values known in advance for the time steps to forecast; C may be 0
    where:    location in the data, for error messages
    """

    observed: Numbers
    future: Numbers
    context: Numbers
    where: str


@dataclass(frozen=True)
class SeriesTable:
    """The selected columns of a CSV file: (N, D) values and (N, C) context."""

    path: Path
    values: Numbers
    context: Numbers


class ForecastReader(Reader[Config]):
    """Reads numbers to forecast, in windows instead of examples."""

    files = ()  # `windows` reports missing files

    def read(self) -> Records:
        raise ConfigError(
            f"{self.table}: '{self.corpus.kind}' holds numbers, not text; use it with "
            "task.kind = 'forecast'"
        )

    def identity(self) -> Any:
        return self.corpus.model_dump(mode="json")

    @abstractmethod
    def windows(self, task: ForecastConfig) -> Iterator[SeriesWindow]:
        """Yield the forecasting examples."""


def read_windows(config: DataConfig, task: ForecastConfig, split: Split) -> list[SeriesWindow]:
    """Read all forecasting examples of a split."""
    windows: list[SeriesWindow] = []
    for corpus in corpora_of(config, split):
        reader = None if isinstance(corpus, HoldOutConfig) else reader_of(config, corpus, split)
        if not isinstance(reader, ForecastReader):
            raise ConfigError(
                f"data.{split}: '{corpus.kind}' has no numbers to forecast; use 'series', 'tracks' "
                "or 'robot'"
            )
        corpus_windows = list(reader.windows(task))
        if not corpus_windows:
            raise DataError(
                f"data.{split}: there is no window of {task.observe} + {task.predict} rows; add "
                "more rows, or lower task.observe and task.predict"
            )
        windows += corpus_windows if task.use_context else map(_without_context, corpus_windows)
    if not windows:
        raise ConfigError(f"data.{split}: is not set; add a [data.{split}] table to the recipe")
    if len({(window.future.shape[1], window.context.shape[1]) for window in windows}) > 1:
        raise ConfigError(
            f"data.{split}: all series must have the same number of columns to forecast and the "
            "same number of context columns; change the columns of the series that differs"
        )
    return windows


def _without_context(window: SeriesWindow) -> SeriesWindow:
    """Return a forecasting example without its context columns."""
    columns = window.future.shape[1]
    return replace(window, observed=window.observed[:, :columns], context=window.context[:, :0])


def read_table(path: Path, columns: Sequence[str], context: Sequence[str]) -> SeriesTable:
    """Read columns of numbers from a CSV file whose first line names the columns.

    Raise a DataError for a cell that is not a finite number.
    """
    names, rows = read_cells(path, [*columns, *context])
    numbers = np.array(
        [
            [parse_number(cell, path, line, name) for cell, name in zip(row, names, strict=True)]
            for line, row in rows
        ],
        dtype=np.float64,
    ).reshape(len(rows), len(names))
    return SeriesTable(path, numbers[:, : len(columns)], numbers[:, len(columns) :])


class TableReader(ForecastReader[SeriesConfig]):
    """Reads windows of consecutive rows of a CSV file."""

    @property
    def used_files(self) -> list[str]:
        return [self.corpus.path]

    def windows(self, task: ForecastConfig) -> Iterator[SeriesWindow]:
        corpus = self.corpus
        table = read_table(locate(corpus.path, self.folder), corpus.columns, corpus.context)
        first, last = corpus.rows or (0, len(table.values))
        if last > len(table.values):
            raise DataError(
                f"{table.path}: has {len(table.values)} rows, "
                f"but the recipe sets rows = [{first}, {last}]; lower the second number"
            )
        rows = np.concatenate([table.values, table.context], axis=1)
        for start in range(max(first, task.observe), last - task.predict + 1, corpus.stride):
            yield SeriesWindow(
                observed=rows[start - task.observe : start],
                future=table.values[start : start + task.predict],
                context=table.context[start : start + task.predict],
                where=f"{table.path}:{start - task.observe + 2}",
            )


class RobotReader(ForecastReader[RobotConfig]):
    """Generates paths of a robot. Each path is one window."""

    def windows(self, task: ForecastConfig) -> Iterator[SeriesWindow]:
        paths = robot_paths(self.corpus, task.observe + task.predict, self.split)
        columns = len(self.corpus.column_names[0])
        for number, rows in enumerate(paths, start=1):
            future = rows[task.observe :]
            yield SeriesWindow(
                observed=rows[: task.observe],
                future=future[:, :columns],
                context=future[:, columns:],
                where=f"robot:{number}",
            )


class TracksReader(ForecastReader[TracksConfig]):
    """Reads windows of recordings of pedestrians."""

    def windows(self, task: ForecastConfig) -> Iterator[SeriesWindow]:
        for name in self._recordings():
            path = locate(name, self.folder)
            yield from _recording_windows(path, self.corpus.min_pedestrians, task)

    @property
    def used_files(self) -> Sequence[str] | None:
        if self.corpus.scene is None:
            return self.corpus.recordings
        # This file lists the recordings. Without it, any of them may be needed.
        if not (Path(self.folder).expanduser() / self.corpus.splits).is_file():
            return None
        return [self.corpus.splits, *self._recordings()]

    def identity(self) -> dict[str, Any]:
        # `companions` is the former name of a setting. With it, existing runs can be resumed.
        settings: dict[str, Any] = self.corpus.model_dump(mode="json")
        return {**settings, "companions": settings.pop("min_pedestrians")}

    def _recordings(self) -> Sequence[str]:
        """Return the file names of the recordings of the split.

        If the setting `scene` is set, the names come from the JSON file `splits`, which lists the
        recordings of each scene by split. Otherwise, they are `recordings`.
        """
        corpus = self.corpus
        if corpus.scene is None:
            return corpus.recordings
        path = locate(corpus.splits, self.folder)
        scenes = json.loads("\n".join(read_lines(path)))
        if corpus.scene not in scenes:
            raise DataError(
                f"{path}: there is no scene '{corpus.scene}'; the scenes are {', '.join(scenes)}"
            )
        split_key = {"train": "train", "dev": "val", "test": "test"}[self.split]
        subfolder = {"train": "train", "dev": "val", "test": "all_data"}[self.split]
        return [f"{subfolder}/{name}.gz" for name in scenes[corpus.scene][split_key]]


def _recording_windows(
    path: Path, min_pedestrians: int, task: ForecastConfig
) -> Iterator[SeriesWindow]:
    """Yield the windows of a recording.

    Every sequence of `task.observe + task.predict` consecutive frames yields one window for each
    pedestrian who is present in all frames of the sequence. If there are fewer than
    `min_pedestrians` such pedestrians, the sequence is skipped.

    Frames are consecutive if no other frame of the file is between them. Their numbers can have
    gaps, because the file omits frames without pedestrians.
    """
    positions: dict[float, dict[float, tuple[float, float]]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split()
        if len(cells) != 4:
            raise DataError(
                f"{path}:{number}: the line has {len(cells)} cells; it must have four: frame, "
                "pedestrian, x, y"
            )
        frame, pedestrian, x, y = (parse_number(cell, path, number, "") for cell in cells)
        positions.setdefault(frame, {})[pedestrian] = (x, y)
    frames = sorted(positions)
    length = task.observe + task.predict
    for start in range(len(frames) - length + 1):
        window = [positions[frame] for frame in frames[start : start + length]]
        present = [
            pedestrian for pedestrian in window[0] if all(pedestrian in frame for frame in window)
        ]
        if len(present) < min_pedestrians:
            continue
        for pedestrian in present:
            track = np.array([frame[pedestrian] for frame in window])
            yield SeriesWindow(
                observed=track[: task.observe],
                future=track[task.observe :],
                context=np.zeros((task.predict, 0)),
                where=f"{path}: pedestrian {pedestrian:g} from frame {frames[start]:g}",
            )
