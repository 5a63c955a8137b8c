"""Positions: how a network learns where in the sequence a token is."""

import math
from typing import Literal

import torch
from torch import Tensor, nn

Join = Literal["add", "append"]

PositionIds = int | Tensor
"""Positions of tokens, from 0. Either the position of the first token (an int or a 0-dim tensor),
with the others following it, or the position of each token (B, T)."""


def expand_position_ids(position_ids: PositionIds, length: int, device: torch.device) -> Tensor:
    """The position of each token: (T,), or (B, T) if rows differ."""
    if isinstance(position_ids, Tensor) and position_ids.dim() == 2:
        return position_ids
    return torch.arange(length, device=device) + position_ids


def sinusoid(positions: Tensor, width: int) -> Tensor:
    """PE(t) = [sin(ω_1 t), cos(ω_1 t), sin(ω_2 t), …],  ω_k = 10000^(-2k/d)    (T,) -> (T, d)

    Vaswani et al. 2017, section 3.5. Each pair of numbers is a point on a circle; the frequency
    decreases from pair to pair.
    """
    k = torch.arange(1, (width + 1) // 2 + 1, device=positions.device, dtype=torch.float64)
    angles = positions.double().unsqueeze(-1) * 10_000 ** (-2 * k / width)  # (T, d/2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)[:, :width]


def rotate(vectors: Tensor, position_ids: PositionIds) -> Tensor:
    """Rotary position embedding (Su et al. 2021): (B, H, T, D) -> (B, H, T, D)

    Rotates each pair of neighbouring numbers by an angle proportional to the position. The dot
    product of a rotated query and a rotated key then depends only on the distance between them.
    """
    length, width = vectors.shape[-2:]
    assert width % 2 == 0, "rotary positions need an even width: they rotate pairs of numbers"
    positions = expand_position_ids(position_ids, length, vectors.device)  # (T,) or (B, T)
    frequencies = 10_000 ** (
        -torch.arange(0, width, 2, device=vectors.device, dtype=torch.float64) / width
    )
    angles = positions.double().unsqueeze(-1) * frequencies  # (…, T, D/2)
    if angles.dim() == 3:
        angles = angles.unsqueeze(1)  # (B, 1, T, D/2): the same for every head
    sine, cosine = angles.sin().to(vectors.dtype), angles.cos().to(vectors.dtype)
    even, odd = vectors[..., 0::2], vectors[..., 1::2]
    rotated = (even * cosine - odd * sine, even * sine + odd * cosine)
    return torch.stack(rotated, dim=-1).flatten(-2)


class Positions(nn.Module):
    """Adds or appends a vector for each position. This base class adds nothing."""

    max_length: int | None = None
    """Maximum number of positions; None means unlimited."""

    def output_width(self, width: int) -> int:
        """The width of the output for an input of this width."""
        return width

    def forward(self, vectors: Tensor, position_ids: PositionIds) -> Tensor:
        """(B, T, D) -> (B, T, D or D + P)"""
        return vectors

    def tabulate(self, length: int, like: Tensor) -> Tensor | None:
        """(T, P) the vectors of the first positions, for decoding step by step; None if none.

        like: a tensor with the dtype and device of the table
        """
        return None

    def join_row(self, vectors: Tensor, row: Tensor) -> Tensor:
        """Vectors at one position (R, D) and its row of the table (1, P) -> (R, D or D + P)"""
        return vectors


class PositionTable(Positions):
    """Base class of positions that are vectors from a table.

    join:       "add" to the token vectors or "append" to them
    width:      P, the width of a row
    max_length: number of rows; None means unlimited
    """

    def __init__(self, join: Join, width: int, max_length: int | None) -> None:
        super().__init__()
        self.join = join
        self.width = width
        self.max_length = max_length

    def rows(self, positions: Tensor) -> Tensor:
        """(T,) -> (T, P)"""
        raise NotImplementedError

    def output_width(self, width: int) -> int:
        return width + self.width if self.join == "append" else width

    def forward(self, vectors: Tensor, position_ids: PositionIds) -> Tensor:
        size, length = vectors.shape[:2]
        if isinstance(position_ids, Tensor) and position_ids.dim() == 2:
            # Positions count from the start of a packed pair, and no pair is longer than its row:
            # the table needs at most `length` rows, and they are computed once.
            needed = length if self.max_length is None else min(length, self.max_length)
            table = self.rows(torch.arange(needed, device=vectors.device))
            rows = table.to(vectors.dtype)[position_ids]  # (B, T, P)
        else:
            rows = self.rows(expand_position_ids(position_ids, length, vectors.device))
            rows = rows.to(vectors.dtype).expand(size, -1, -1)  # (B, T, P)
        return torch.cat((vectors, rows), dim=-1) if self.join == "append" else vectors + rows

    def tabulate(self, length: int, like: Tensor) -> Tensor | None:
        if self.max_length is not None:
            length = min(length, self.max_length)
        return self.rows(torch.arange(length, device=like.device)).to(like.dtype)

    def join_row(self, vectors: Tensor, row: Tensor) -> Tensor:
        if self.join == "add":
            return vectors + row
        return torch.cat((vectors, row.expand(len(vectors), -1)), dim=-1)


class SinusoidalPositions(PositionTable):
    """Fixed sines and cosines, for any length. See `sinusoid`."""

    def __init__(self, join: Join, width: int) -> None:
        super().__init__(join, width, max_length=None)

    def rows(self, positions: Tensor) -> Tensor:
        return sinusoid(positions, self.width)


class OneHotPositions(PositionTable):
    """Position t is the t-th unit vector."""

    def __init__(self, join: Join, width: int, max_length: int) -> None:
        super().__init__(join, width, max_length)

    def rows(self, positions: Tensor) -> Tensor:
        return nn.functional.one_hot(positions, self.width)


class LearnedPositions(PositionTable):
    """A learned vector for each position."""

    def __init__(self, join: Join, width: int, max_length: int) -> None:
        super().__init__(join, width, max_length)
        self.table = nn.Embedding(max_length, width)
        nn.init.normal_(self.table.weight, std=1 / math.sqrt(width))

    def rows(self, positions: Tensor) -> Tensor:
        return self.table(positions)
