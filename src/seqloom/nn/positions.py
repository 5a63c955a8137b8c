"""Where in the sequence a token stands, told to a network that could not know otherwise."""

import math
from typing import Literal

import torch
from torch import Tensor, nn

Join = Literal["add", "append"]


Place = int | Tensor
"""Where tokens stand: the position of the first, the others following it (an int or a tensor
without dimensions), or the position of each (B, T)."""


def spread(place: Place, length: int, device: torch.device) -> Tensor:
    """The position of each token: (T,), or (B, T) where rows differ."""
    if isinstance(place, Tensor) and place.dim() == 2:
        return place
    return torch.arange(length, device=device) + place


def sinusoid(positions: Tensor, width: int) -> Tensor:
    """PE(t) = [sin(ω_1 t), cos(ω_1 t), sin(ω_2 t), …],  ω_k = 10000^(-2k/d)    (T,) -> (T, d)

    Each pair of numbers is a clock hand; the hands turn ever more slowly.
    """
    k = torch.arange(1, (width + 1) // 2 + 1, device=positions.device, dtype=torch.float64)
    angles = positions.double().unsqueeze(-1) * 10_000 ** (-2 * k / width)  # (T, d/2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)[:, :width]


def rotate(vectors: Tensor, place: Place) -> Tensor:
    """Turn neighbouring pairs of numbers by an angle that grows with the position (Su et al. 2021).

    (B, H, T, D) -> (B, H, T, D). The dot product of a turned query and a turned key depends only
    on the distance between them.
    """
    length, width = vectors.shape[-2:]
    assert width % 2 == 0, "only pairs of numbers can be turned"
    positions = spread(place, length, vectors.device)  # (T,) or (B, T)
    frequencies = 10_000 ** (
        -torch.arange(0, width, 2, device=vectors.device, dtype=torch.float64) / width
    )
    angles = positions.double().unsqueeze(-1) * frequencies  # (…, T, D/2)
    if angles.dim() == 3:
        angles = angles.unsqueeze(1)  # the same for every head
    sine, cosine = angles.sin().to(vectors.dtype), angles.cos().to(vectors.dtype)
    even, odd = vectors[..., 0::2], vectors[..., 1::2]
    turned = (even * cosine - odd * sine, even * sine + odd * cosine)
    return torch.stack(turned, dim=-1).flatten(-2)


class Positions(nn.Module):
    """Adds or appends a vector for each position. This one adds nothing."""

    max_length: int | None = None

    def widened(self, width: int) -> int:
        """How wide vectors of this width come out."""
        return width

    def forward(self, vectors: Tensor, place: Place) -> Tensor:
        """(B, T, D) -> (B, T, D or D + P)"""
        return vectors

    def tabulate(self, length: int, like: Tensor) -> Tensor | None:
        """(T, P) the first rows of the table, for those who step; None if there is no table."""
        return None

    def join_row(self, vectors: Tensor, row: Tensor) -> Tensor:
        """(R, D) all at one position, whose row is (1, P) -> (R, D or D + P)"""
        return vectors


class PositionTable(Positions):
    """Positions looked up in a table with a row for each: added, or appended."""

    def __init__(self, join: Join, width: int, max_length: int | None) -> None:
        super().__init__()
        self.join = join
        self.width = width
        self.max_length = max_length

    def rows(self, positions: Tensor) -> Tensor:
        """(T,) -> (T, width)"""
        raise NotImplementedError

    def widened(self, width: int) -> int:
        return width + self.width if self.join == "append" else width

    def forward(self, vectors: Tensor, place: Place) -> Tensor:
        size, length = vectors.shape[:2]
        if isinstance(place, Tensor) and place.dim() == 2:
            # No pair is longer than its row: what all rows can need is worked out once.
            reach = length if self.max_length is None else min(length, self.max_length)
            every = self.rows(torch.arange(reach, device=vectors.device))
            rows = every.to(vectors.dtype)[place]  # (B, T, P)
        else:
            rows = self.rows(spread(place, length, vectors.device))
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
    """Fixed sines and cosines; no end to the table."""

    def __init__(self, join: Join, width: int) -> None:
        super().__init__(join, width, max_length=None)

    def rows(self, positions: Tensor) -> Tensor:
        return sinusoid(positions, self.width)


class OneHotPositions(PositionTable):
    """Position t is the t-th unit vector: the table is as wide as it is long."""

    def __init__(self, join: Join, width: int, max_length: int) -> None:
        super().__init__(join, width, max_length)

    def rows(self, positions: Tensor) -> Tensor:
        return nn.functional.one_hot(positions, self.width)


class LearnedPositions(PositionTable):
    """A learned vector for each position up to the last."""

    def __init__(self, join: Join, width: int, max_length: int) -> None:
        super().__init__(join, width, max_length)
        self.table = nn.Embedding(max_length, width)
        nn.init.normal_(self.table.weight, std=1 / math.sqrt(width))

    def rows(self, positions: Tensor) -> Tensor:
        return self.table(positions)
