"""What is remembered of the past while decoding: keys and values of every position so far."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


@dataclass(frozen=True)
class KeysValues:
    """What can be read: prepared keys (B, H, S, ·) and values (B, H, S, Dv)."""

    keys: Tensor
    values: Tensor

    def select(self, rows: Tensor) -> "KeysValues":
        """Keep these rows."""
        return KeysValues(self.keys.index_select(0, rows), self.values.index_select(0, rows))


class Past(Protocol):
    """All positions so far, of every row."""

    @property
    def position(self) -> int | Tensor:
        """Of the position that is taken in next."""
        ...

    @property
    def mask(self) -> Tensor | None:
        """(1, capacity) which of the positions that `append` returns there are yet; None: all."""
        ...

    def append(self, new: KeysValues) -> KeysValues:
        """Take in one position: (R, H, 1, D) each. Returns what can be read now."""
        ...


class KeyValueCache:
    """Keys and values of all positions so far, in memory reserved once: (capacity, R, H, D).

    Positions come first, so that the filled part is one block that can be copied in one go when
    hypotheses change places.
    """

    mask = None

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.position = 0
        self.store: tuple[Tensor, Tensor] | None = None
        self.spare: tuple[Tensor, Tensor] | None = None

    def append(self, new: KeysValues) -> KeysValues:
        """Take in one position: (R, H, 1, D) each. Returns all positions so far, as views."""
        if self.store is None:
            self.store = (self._reserve(new.keys), self._reserve(new.values))
        assert self.position < self.capacity, "the cache was reserved for fewer steps"
        keys, values = self.store
        keys[self.position] = new.keys.squeeze(2)
        values[self.position] = new.values.squeeze(2)
        self.position += 1
        return KeysValues(
            keys[: self.position].permute(1, 2, 0, 3), values[: self.position].permute(1, 2, 0, 3)
        )

    def _reserve(self, example: Tensor) -> Tensor:
        rows, heads, _, width = example.shape
        return example.new_empty(self.capacity, rows, heads, width)

    def select(self, rows: Tensor) -> "KeyValueCache":
        """Keep these rows. The old and the new order take turns in two blocks of memory."""
        if self.store is None:
            return self
        if self.spare is None or self.spare[0].shape[1] != len(rows):
            keys, values = self.store
            self.spare = (
                keys.new_empty(self.capacity, len(rows), *keys.shape[2:]),
                values.new_empty(self.capacity, len(rows), *values.shape[2:]),
            )
        # Position by position and row by row these are the same numbers; but along the first
        # dimension torch copies twice as fast.
        before = self.store[0].shape[1]
        positions = torch.arange(0, self.position * before, before, device=rows.device)
        places = (positions.unsqueeze(1) + rows).flatten()
        for store, spare in zip(self.store, self.spare, strict=True):
            torch.index_select(
                store.flatten(0, 1), 0, places, out=spare[: self.position].flatten(0, 1)
            )
        self.store, self.spare = self.spare, self.store
        return self


class Ancestry:
    """Where the positions of each hypothesis lie in caches that are never reordered.

    A cache has a place for each position of each row, capacity · R in all, and a row writes to
    its own. A hypothesis that moves to another row leaves its past behind; what moves along is
    the table that says where it lies. One table serves the caches of all layers.
    """

    def __init__(self, rows: int, capacity: int, position: Tensor) -> None:
        self.position = position
        """() the state's own, which counts up in place."""
        self._columns = torch.arange(capacity, device=position.device).unsqueeze(0)
        self._settle(rows)

    def _settle(self, rows: int) -> None:
        self.rows = rows
        numbers = torch.arange(rows, device=self.position.device).unsqueeze(1)
        self._own = self._columns * rows + numbers
        self.places = self._own.clone()
        """(R, capacity) where each row finds its earlier positions, and will put the later ones."""

    @property
    def capacity(self) -> int:
        return self._columns.shape[1]

    @property
    def mask(self) -> Tensor:
        """(1, capacity) True for the position that is being taken in and all before it."""
        return self._columns <= self.position

    def select(self, rows: Tensor) -> "Ancestry":
        """Keep these rows, in place. A step has been taken, but not yet counted."""
        if len(rows) != self.rows:
            self._settle(len(rows))
        else:
            inherited = self.places.index_select(0, rows)
            self.places.copy_(torch.where(self.mask, inherited, self._own))
        return self


class StaticCache:
    """Keys and values of one layer, each in the place where it was written: (capacity · R, H, D).

    Nothing in it depends on the position but what tensors hold, so that a step can be recorded
    once and replayed.
    """

    def __init__(self, ancestry: Ancestry, example: KeysValues) -> None:
        """example: one position of one row, (1, H, 1, D) each"""
        self.ancestry = ancestry
        self._example = example
        self._rows = 0
        self._store: tuple[Tensor, Tensor] | None = None

    @property
    def position(self) -> Tensor:
        return self.ancestry.position

    @property
    def mask(self) -> Tensor:
        return self.ancestry.mask

    @property
    def store(self) -> tuple[Tensor, Tensor]:
        """Reserved when rows are first selected, and no later than by the first step."""
        if self._store is None:
            self._rows = self.ancestry.rows
            self._store = (self._reserve(self._example.keys), self._reserve(self._example.values))
        return self._store

    def _reserve(self, example: Tensor) -> Tensor:
        _, heads, _, width = example.shape
        # Zeros, because what is not there yet is weighed too: with nothing, unless it is NaN.
        return example.new_zeros(self.ancestry.capacity * self._rows, heads, width)

    def append(self, new: KeysValues) -> KeysValues:
        """Take in one position: (R, H, 1, D) each. Returns (R, H, capacity, D) each."""
        here = self.ancestry.places.gather(1, self.position.expand(self.ancestry.rows, 1))
        found = []
        for store, one in zip(self.store, (new.keys, new.values), strict=True):
            store.index_copy_(0, here.squeeze(1), one.squeeze(2))
            found.append(store[self.ancestry.places].transpose(1, 2))
        return KeysValues(*found)

    def select(self, rows: Tensor) -> "StaticCache":
        """The ancestry moves; what is here stays where it is."""
        if len(rows) != self._rows:
            assert self.ancestry.rows == len(rows), "select the ancestry first"
            self._store = None
        assert self.store is not None
        return self
