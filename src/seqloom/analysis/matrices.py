"""Matrices of small examples, given as rows of numbers by a user."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

Rows = Sequence[Sequence[float]]


def to_tensor(rows: Rows) -> Tensor:
    """(rows, columns) as a float64 tensor, so that examples agree with a calculation by hand."""
    return torch.tensor(rows, dtype=torch.float64)


def identity(width: int) -> Rows:
    """Return the identity matrix."""
    return [[float(row == column) for column in range(width)] for row in range(width)]


def matrix_problems(name: str, rows: Rows) -> list[str]:
    """Return what is wrong with a matrix: no numbers, rows of different lengths, infinite values."""
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
