"""Normalises windows (sections of time series) for the network, and converts the outputs of the
network back to values.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np

from seqloom.core.errors import StorageError
from seqloom.core.storage import write_file
from seqloom.data.readers.csv_cells import Numbers
from seqloom.data.readers.series import SeriesWindow

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
