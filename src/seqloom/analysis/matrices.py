"""Checks and converts matrices that users give as rows of numbers, for small examples."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

Rows = Sequence[Sequence[float]]


def to_tensor(rows: Rows) -> Tensor:
    """Convert a matrix to a float64 tensor (rows, columns).

    With float64, the results of examples agree with a calculation by hand.
    """
    return torch.tensor(rows, dtype=torch.float64)


def identity(width: int) -> Rows:
    """Return the identity matrix."""
    return [[float(row == column) for column in range(width)] for row in range(width)]


def matrix_problems(name: str, rows: Rows) -> list[str]:
    """Describe what is wrong with a matrix. The list is empty if the matrix is valid.

    A row without numbers, rows of different lengths, and infinite or NaN values are not allowed.
    """
    if not rows or not all(rows):
        return [f"{name}: there is a row without numbers, or no row at all"]
    problems = []
    lengths = [len(row) for row in rows]
    if len(set(lengths)) > 1:
        listed = ", ".join(map(str, lengths))
        problems.append(f"{name}: the rows have different lengths: {listed}")
    infinite = [value for row in rows for value in row if not math.isfinite(value)]
    if infinite:
        problems.append(f"{name}: {infinite[0]} is not finite")
    return problems


def shape_text(rows: Rows) -> str:
    """Return the shape as text: 3 × 2"""
    return f"{len(rows)} × {len(rows[0])}"
