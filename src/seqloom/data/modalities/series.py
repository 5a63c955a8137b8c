"""Series: windows of real-valued sequences, for forecasting.

A window is one example: observed rows, rows to forecast, and context (values known in advance). This
module reads windows, normalises them, converts the outputs of a network back to values, and has the
dataset of windows.
"""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray

from seqloom.config.schema.corpora import (
    HoldOutConfig,
    RobotConfig,
    SeriesConfig,
    TracksConfig,
)
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.task import ForecastConfig
from seqloom.core.batch import Batch, Padded
from seqloom.core.errors import ConfigError, DataError, StorageError
from seqloom.core.storage import write_file
from seqloom.data.corpus.dataset import CorpusReport, IntArray
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


SeriesForm = Literal["values", "relative", "differences"]
"""How the rows of a window are represented:

values:      the numbers as they are
relative:    differences from the last observed row
differences: differences from the previous row
"""
FILE = "scale.json"


def to_form(
    window: SeriesWindow, form: SeriesForm, context_form: SeriesForm | None = None
) -> tuple[Numbers, Numbers]:
    """Convert the rows of a window to the representation `form`: the values themselves, differences
    from the last observed row, or differences from the previous row.

    Return the S observed rows (S, D + C) and the T future rows (T, D + C). The first D columns are
    the values to forecast. The last C columns are the context, which is known in advance.

    form:         representation of the values to forecast
    context_form: representation of the context. Default: `form`
    """
    future = np.concatenate([window.future, window.context], axis=1)
    converted = _convert(window.observed, future, form)
    if context_form is None or context_form == form:
        return converted
    columns = window.future.shape[1]
    context = _convert(window.observed[:, columns:], window.context, context_form)
    observed, future = (
        np.concatenate([values[:, :columns], known], axis=1)
        for values, known in zip(converted, context, strict=True)
    )
    return observed, future


def _convert(observed: Numbers, future: Numbers, form: SeriesForm) -> tuple[Numbers, Numbers]:
    """Convert rows to the representation `form`. `observed` and `future` have the same columns."""
    match form:
        case "values":
            return observed, future
        case "relative":
            return observed - observed[-1], future - observed[-1]
        case "differences":
            # The first row has no previous row, so its differences are set to zero.
            return (
                np.diff(observed, axis=0, prepend=observed[:1]),
                np.diff(future, axis=0, prepend=observed[-1:]),
            )


def from_form(output: Numbers, last: Numbers, form: SeriesForm) -> Numbers:
    """Convert model outputs back to values.

    output: (…, T, D) outputs for T future rows of D columns, in the representation `form`
    last:   (…, 1, D) the last observed values
    """
    match form:
        case "values":
            return output
        case "relative":
            return output + last
        case "differences":
            return np.cumsum(output, axis=-2) + last


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation of each column of the training split.

    There are D columns to forecast, followed by C columns of context (values known in advance).

    mean, deviation: (D + C,) mean and standard deviation of each column in the representation that
                     the network reads, for example as differences. They normalise the data
    errors:          (D,) standard deviation of the original values of each column to forecast. It
                     normalises error scores
    """

    mean: Numbers
    deviation: Numbers
    errors: Numbers

    @classmethod
    def learn(
        cls,
        windows: list[SeriesWindow],
        form: SeriesForm,
        rotated: bool,
        context_form: SeriesForm | None = None,
    ) -> Self:
        """Compute means and standard deviations from training windows (sections of time series).

        rotated: True if training rotates the windows at random. All columns then get the mean 0
                 and the same deviation, the root mean square of all numbers. Such a scale does not
                 depend on the rotation.
        """
        columns = windows[0].future.shape[1]
        rows = np.concatenate(
            [rows for window in windows for rows in to_form(window, form, context_form)]
        )
        values = np.concatenate([window.observed[:, :columns] for window in windows])
        mean, deviation = rows.mean(0), _nonzero(rows.std(0))
        if rotated:
            mean = np.zeros_like(mean)
            deviation = np.full_like(deviation, np.sqrt(np.mean(rows**2)) or 1.0)
        return cls(mean, deviation, _nonzero(values.std(0)))

    def save(self, folder: Path) -> None:
        content = {name: value.tolist() for name, value in self.__dict__.items()}
        write_file(folder / FILE, json.dumps(content, indent=1).encode())

    @classmethod
    def load(cls, folder: Path) -> Self:
        try:
            content = json.loads((folder / FILE).read_bytes())
            return cls(**{name: np.array(value) for name, value in content.items()})
        except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise StorageError(
                f"{folder / FILE}: cannot be read: {error}. Restore the run from a backup, or "
                "train again."
            ) from error


def _nonzero(deviation: Numbers) -> Numbers:
    """Replace deviations of 0, which belong to constant columns, by 1."""
    return np.where(deviation > 0, deviation, 1.0)


Floats = NDArray[np.float32]


@dataclass(frozen=True)
class SeriesDataset:
    """N normalised windows with S observed rows and T rows to forecast. Each row has D columns to
    forecast and C columns of context (values known in advance).

    observed:      (N, S, D + C) observed values, with their context in the last C columns
    future:        (N, T, D) values to forecast
    context:       (N, T, C) context of the time steps to forecast
    rotation_seed: seed of the random rotations of the coordinates, which change in every epoch; None
                   for no rotations
    """

    observed: Floats
    future: Floats
    context: Floats
    report: CorpusReport
    rotation_seed: int | None = None

    @classmethod
    def of(
        cls,
        windows: list[SeriesWindow],
        form: SeriesForm,
        scale: Scale,
        split: str,
        rotation_seed: int | None = None,
        context_form: SeriesForm | None = None,
    ) -> Self:
        """Build a dataset from windows: convert them to the representation `form` (for example,
        differences) and normalise them with `scale`.

        context_form: representation of the context. Default: `form`
        """
        columns = windows[0].future.shape[1]
        converted = [to_form(window, form, context_form) for window in windows]
        observed, future = (
            ((np.stack(rows) - scale.mean) / scale.deviation).astype(np.float32)
            for rows in zip(*converted, strict=True)
        )
        return cls(
            observed,
            future[..., :columns],
            future[..., columns:],
            CorpusReport(split, read=len(windows), kept=len(windows)),
            rotation_seed,
        )

    def __len__(self) -> int:
        return len(self.future)

    @cached_property
    def digest(self) -> str:
        digest = hashlib.sha256()
        for rows in (self.observed, self.future, self.context):
            digest.update(np.ascontiguousarray(rows).tobytes())
        return digest.hexdigest()

    @property
    def source_lengths(self) -> IntArray | None:
        """(N,) source length of each of the N examples, as batching expects it.

        Batching adds one to each length for END. A series has no END, so this length is the number
        of observed rows minus one.
        """
        return np.full(len(self), self.observed.shape[1] - 1)

    @property
    def target_lengths(self) -> IntArray:
        """(N,) target length of each of the N examples, as batching expects it.

        Batching adds one to each length for START or END. A series has neither, so this length is
        the number of future rows minus one.
        """
        return np.full(len(self), self.future.shape[1] - 1)

    def gather(self, indices: IntArray) -> Batch:
        """Return a batch of windows.

        source:  (B, S, D + C) the observed rows
        inputs:  (B, T, D + C) for each time step to forecast, the values of the previous time step
                 and the context of the time step itself. At the first time step, the previous
                 values are the last observed values.
        targets: (B, T, D) the values to forecast
        """
        observed, future = self.observed[indices], self.future[indices]
        first = observed[:, -1:, : future.shape[2]]
        previous = np.concatenate([first, future[:, :-1]], axis=1)
        inputs = np.concatenate([previous, self.context[indices]], axis=2)
        return Batch(_padded(observed), _padded(inputs), _padded(future))

    def for_epoch(self, epoch: int) -> "SeriesDataset":
        """Return a copy in which each window is rotated and mirrored at random. If `rotation_seed`
        is None, return the dataset itself."""
        if self.rotation_seed is None:
            return self
        generator = np.random.default_rng([self.rotation_seed, epoch])
        angle = generator.uniform(0, 2 * np.pi, len(self))
        mirror = generator.choice([-1.0, 1.0], len(self))
        cosine, sine = np.cos(angle), np.sin(angle)
        # Multiplying a row vector by this matrix rotates it. In windows with mirror = -1, the
        # vector is also reflected, before the rotation.
        rotation = np.stack(
            [np.stack([cosine * mirror, sine * mirror], -1), np.stack([-sine, cosine], -1)], 1
        )  # (N, 2, 2)
        observed, future = (
            np.einsum("ntd,nde->nte", rows, rotation).astype(np.float32)
            for rows in (self.observed, self.future)
        )
        return replace(self, observed=observed, future=future)

    def variants(self) -> Iterator["SeriesDataset"]:
        """Yield only this dataset, because its sequences have the same lengths in every epoch."""
        return iter([self])

    def release(self) -> None:
        """Do nothing: the arrays are small and not memory-mapped."""


def _padded(rows: Floats) -> Padded:
    values = torch.from_numpy(np.ascontiguousarray(rows))
    return Padded(values, torch.full((len(rows),), rows.shape[1]))


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
