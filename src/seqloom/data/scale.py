"""Numbers as a network sees them, and back."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np

from seqloom.core.errors import StorageError
from seqloom.core.storage import write_file
from seqloom.data.series import Numbers, Window

Form = Literal["values", "relative", "steps"]
FILE = "scale.json"


def formed(window: Window, form: Form) -> tuple[Numbers, Numbers]:
    """A window's rows, values and context side by side, in a form: (S, D + C), (T, D + C)

    The context too: what it was like last year says less than how it changes.
    """
    observed = window.observed
    future = np.concatenate([window.future, window.context], axis=1)
    match form:
        case "values":
            return observed, future
        case "relative":
            return observed - observed[-1], future - observed[-1]
        case "steps":
            # The first row has none before it: it stands still.
            return (
                np.diff(observed, axis=0, prepend=observed[:1]),
                np.diff(future, axis=0, prepend=observed[-1:]),
            )


def unformed(output: Numbers, last: Numbers, form: Form) -> Numbers:
    """(…, T, D) in a form, and the last observed values (…, 1, D) -> the values themselves."""
    match form:
        case "values":
            return output
        case "relative":
            return output + last
        case "steps":
            return np.cumsum(output, axis=-2) + last


@dataclass(frozen=True)
class Scale:
    """Means and deviations of the training split, column by column.

    mean, deviation: (D + C,) of values and context in their form
    errors:          (D,) deviations of the values as they are, by which errors are scored
    """

    mean: Numbers
    deviation: Numbers
    errors: Numbers

    @classmethod
    def learn(cls, windows: list[Window], form: Form, turned: bool) -> Self:
        """turned: if the plane may be turned, both directions have one scale, around zero"""
        columns = windows[0].future.shape[1]
        rows = np.concatenate([part for one in windows for part in formed(one, form)])
        values = np.concatenate([one.observed[:, :columns] for one in windows])
        mean, deviation = rows.mean(0), _positive(rows.std(0))
        if turned:
            mean = np.zeros_like(mean)
            deviation = np.full_like(deviation, np.sqrt(np.mean(rows**2)) or 1.0)
        return cls(mean, deviation, _positive(values.std(0)))

    def save(self, folder: Path) -> None:
        content = {name: value.tolist() for name, value in self.__dict__.items()}
        write_file(folder / FILE, json.dumps(content, indent=1).encode())

    @classmethod
    def load(cls, folder: Path) -> Self:
        try:
            content = json.loads((folder / FILE).read_bytes())
            return cls(**{name: np.array(value) for name, value in content.items()})
        except (OSError, ValueError, TypeError) as error:
            raise StorageError(f"{folder / FILE}: cannot be read: {error}") from error


def _positive(deviation: Numbers) -> Numbers:
    """What never changes is not divided by zero."""
    return np.where(deviation > 0, deviation, 1.0)
