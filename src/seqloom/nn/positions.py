"""Position encodings, which give a network the position of each token in its sequence."""

import math
from typing import Literal

import torch
from torch import Tensor, nn

Join = Literal["add", "append"]
Frequencies = Literal["lecture", "vaswani", "fairseq"]
SinusoidLayout = Literal["interleaved", "halves"]

PositionIds = int | Tensor
"""Positions of tokens, counted from 0. An int or a 0-dim tensor is the position of the first token
of every row; the other tokens follow without gaps. A tensor (B, T) holds the position of each
token."""


def expand_position_ids(position_ids: PositionIds, length: int, device: torch.device) -> Tensor:
    """Return the position of each token: (T,) if all rows have the same positions, else (B, T).

    position_ids: the positions (B, T), which are returned unchanged; or a single number, which is
                  the position of the first token in all rows
    length:       T, the number of tokens in a row
    """
    if isinstance(position_ids, Tensor) and position_ids.dim() == 2:
        return position_ids
    return torch.arange(length, device=device) + position_ids


def sinusoid(
    positions: Tensor,
    width: int,
    frequencies: Frequencies = "lecture",
    layout: SinusoidLayout = "interleaved",
) -> Tensor:
    """PE(t) = [sin(ω_1 t), cos(ω_1 t), sin(ω_2 t), …],  ω_k = 10000^(-2k/d)    (T,) -> (T, d)

    Each pair of sine and cosine is a point on a circle. The frequency ω decreases from pair to
    pair. The encoding is that of Vaswani et al. 2017, section 3.5, except that in the paper the
    first frequency is ω_0 = 1. `frequencies = "vaswani"` gives the frequencies of the paper.

    width:       d, the width of a position vector
    frequencies: see `angular_frequencies`. Default: "lecture"
    layout:      "interleaved", sine and cosine of a frequency side by side; or "halves", all sines,
                 then all cosines. Default: "interleaved"
    """
    omega = angular_frequencies(width, frequencies, positions.device)
    angles = positions.double().unsqueeze(-1) * omega  # (T, d/2)
    if layout == "halves":
        return torch.cat((angles.sin(), angles.cos()), dim=-1)[:, :width]
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)[:, :width]


def angular_frequencies(
    width: int, frequencies: Frequencies, device: torch.device | None = None
) -> Tensor:
    """Return the frequencies ω of the sines, from the highest to the lowest: (d/2,)

    d is `width`. If d is odd, d/2 is rounded up. `frequencies` selects one of three formulas:

        lecture  ω_k = 10000^(-2k/d),       k = 1 … d/2        wavelengths 2π·10000^(2/d) … 2π·10000
        vaswani  ω_k = 10000^(-2k/d),       k = 0 … d/2 - 1    wavelengths 2π … 2π·10000^(1 - 2/d)
        fairseq  ω_k = 10000^(-k/(d/2-1)),  k = 0 … d/2 - 1    wavelengths 2π … 2π·10000

    The wavelength of ω is 2π/ω.
    """
    count = (width + 1) // 2
    first = 1 if frequencies == "lecture" else 0
    k = torch.arange(first, first + count, device=device, dtype=torch.float64)
    if frequencies == "fairseq":
        return 10_000 ** (-k / max(count - 1, 1))
    return 10_000 ** (-2 * k / width)


def rotate(vectors: Tensor, position_ids: PositionIds) -> Tensor:
    """Rotary position embedding (Su et al. 2021): (B, H, T, D) -> (B, H, T, D)

    Rotates each pair of neighbouring entries by an angle proportional to the position. If a query
    and a key are both rotated, their dot product depends on the distance between their positions,
    but not on the positions themselves.
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
    """Base class of position encodings. Subclasses add or append a position vector to each token
    vector. The base class itself returns the token vectors unchanged."""

    max_length: int | None = None
    """Maximum number of positions; None means unlimited."""

    @property
    def is_appended(self) -> bool:
        """True if position vectors are appended to token vectors, not added to them."""
        return False

    @property
    def limits(self) -> dict[str, int]:
        """Return {"positions.max_length": maximum number of positions}.

        Return an empty dict if the number is unlimited.
        """
        return {} if self.max_length is None else {"positions.max_length": self.max_length}

    def output_width(self, width: int) -> int:
        """Return the width of the output for token vectors of this width."""
        return width

    def forward(self, vectors: Tensor, position_ids: PositionIds) -> Tensor:
        """Add or append position vectors of width P: (B, T, D) -> (B, T, D or D + P)"""
        return vectors

    def tabulate(self, length: int, like: Tensor) -> Tensor | None:
        """Return the vectors (T, P) of the first T positions, for decoding step by step.

        T is the smaller of `length` and `max_length`. Return None if there are no position vectors.

        like: a tensor that has the dtype and the device for the result
        """
        return None

    def join_row(self, vectors: Tensor, row: Tensor) -> Tensor:
        """Add or append one position vector to the vectors of R tokens at the same position.

        The base class returns the vectors unchanged.

        (R, D), (1, P) -> (R, D or D + P)
        """
        return vectors


class PositionTable(Positions):
    """Base class of position encodings that have one vector for each position.

    join:       "add" the position vectors to the token vectors, or "append" them
    width:      P, the width of a position vector
    max_length: maximum number of positions; None means unlimited
    """

    def __init__(self, join: Join, width: int, max_length: int | None) -> None:
        super().__init__()
        self.join = join
        self.width = width
        self.max_length = max_length

    @property
    def is_appended(self) -> bool:
        return self.join == "append"

    @property
    def join_formula(self) -> str:
        """Formula that combines the token vector w with the position vector p."""
        return "[w; p]" if self.join == "append" else "w + p"

    def formula(self, position: int) -> str:
        """Formula of the vector of a position, counted from 0. Default: the name of the class."""
        return f"{type(self).__name__}({position})"

    def rows(self, positions: Tensor) -> Tensor:
        """Return the vector of each position, which has width P: (T,) -> (T, P)"""
        raise NotImplementedError

    def output_width(self, width: int) -> int:
        return width + self.width if self.join == "append" else width

    def forward(self, vectors: Tensor, position_ids: PositionIds) -> Tensor:
        size, length = vectors.shape[:2]
        if isinstance(position_ids, Tensor) and position_ids.dim() == 2:
            # A packed row holds several pairs of source and target. Positions are counted from the
            # start of each pair, and no pair is longer than the row. So a table of the first
            # `length` positions suffices.
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
    """Fixed sines and cosines, for any length. See `sinusoid`.

    offset: position of the first token. Default: 0
    """

    def __init__(
        self,
        join: Join,
        width: int,
        frequencies: Frequencies = "lecture",
        layout: SinusoidLayout = "interleaved",
        offset: int = 0,
    ) -> None:
        super().__init__(join, width, max_length=None)
        self.frequencies: Frequencies = frequencies
        self.layout: SinusoidLayout = layout
        self.offset = offset

    def rows(self, positions: Tensor) -> Tensor:
        return sinusoid(positions + self.offset, self.width, self.frequencies, self.layout)

    def formula(self, position: int) -> str:
        t = position + self.offset
        first, second = ("ω₁", "ω₂") if self.frequencies == "lecture" else ("ω₀", "ω₁")
        if self.layout == "halves":
            entries = f"[sin({first}·{t}), sin({second}·{t}), …, cos({first}·{t}), …]"
        else:
            entries = f"[sin({first}·{t}), cos({first}·{t}), …]"
        exponent = (
            f"-k/({self.width}/2-1)" if self.frequencies == "fairseq" else f"-2k/{self.width}"
        )
        return f"{entries}, ω_k = 10000^({exponent})"


class OneHotPositions(PositionTable):
    """The vector of position t is the t-th unit vector."""

    def __init__(self, join: Join, width: int, max_length: int) -> None:
        super().__init__(join, width, max_length)

    def rows(self, positions: Tensor) -> Tensor:
        return nn.functional.one_hot(positions, self.width)

    def formula(self, position: int) -> str:
        return f"one-hot({position})"


class LearnedPositions(PositionTable):
    """The vector of each position is learned."""

    def __init__(self, join: Join, width: int, max_length: int) -> None:
        super().__init__(join, width, max_length)
        self.table = nn.Embedding(max_length, width)
        nn.init.normal_(self.table.weight, std=1 / math.sqrt(width))

    def rows(self, positions: Tensor) -> Tensor:
        return self.table(positions)

    def formula(self, position: int) -> str:
        return f"P[{position}]"
