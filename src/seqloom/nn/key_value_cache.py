"""Keys and values of all previous positions, kept while decoding."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


@dataclass(frozen=True)
class KeysValues:
    """The projected keys and values of an attention layer, for H heads and S positions.

    keys:   (B, H, S, Dk). The attention score determines the width Dk
    values: (B, H, S, Dv)
    source: (B, S, D) the states from which both are computed, kept only for an observer
            (`nn/observer.py`). Default: None
    """

    keys: Tensor
    values: Tensor
    source: Tensor | None = None

    def select(self, rows: Tensor) -> "KeysValues":
        """Return the keys and values of the batch rows with these indices."""
        source = None if self.source is None else self.source.index_select(0, rows)
        keys, values = self.keys.index_select(0, rows), self.values.index_select(0, rows)
        return KeysValues(keys, values, source)


class Cache(Protocol):
    """Protocol of a cache. It stores the keys and values of all previous decoder positions."""

    @property
    def position(self) -> int | Tensor:
        """Index, from 0, of the position that the next `append` stores."""
        ...

    @property
    def mask(self) -> Tensor | None:
        """Mask (1, capacity) for attention over the result of `append`: True for filled positions.
        None if all positions of the result are filled."""
        ...

    def append(self, new: KeysValues) -> KeysValues:
        """Store the keys and values of one position, (R, H, 1, D) each, for R rows and H heads.

        Return the keys and values of all positions so far. If `mask` is not None, the result also
        has positions that are not filled yet. `mask` hides them.
        """
        ...


class KeyValueCache:
    """Keys and values of all previous decoder positions.

    Each is a tensor (capacity, R, H, D), for R rows (hypotheses), H heads and width D.

    The memory is allocated for `capacity` positions at the first step. If gradients are needed,
    each step allocates new tensors, because backpropagation needs those of earlier steps unchanged.
    Positions are the first dimension, so that the filled part is contiguous in memory and `select`
    can reorder the hypotheses at all positions with one copy.
    """

    mask = None

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.position = 0
        self.store: tuple[Tensor, Tensor] | None = None
        self.spare: tuple[Tensor, Tensor] | None = None

    def append(self, new: KeysValues) -> KeysValues:
        """Store the keys and values of one position, (R, H, 1, D) each, for R rows and H heads.

        Return views of the keys and values of all positions so far.
        """
        assert self.position < self.capacity, "the cache was allocated for fewer steps"
        if torch.is_grad_enabled() and new.keys.requires_grad:
            # Backpropagation needs the tensors of earlier steps unchanged. Copy instead of writing
            # in place.
            added = (new.keys.permute(2, 0, 1, 3), new.values.permute(2, 0, 1, 3))
            old = added if self.store is None else self.store
            keys, values = (
                torch.cat([before[: self.position], after])
                for before, after in zip(old, added, strict=True)
            )
            self.store = (keys, values)
        else:
            if self.store is None:
                self.store = (self._allocate(new.keys), self._allocate(new.values))
            keys, values = self.store
            keys[self.position] = new.keys.squeeze(2)
            values[self.position] = new.values.squeeze(2)
        self.position += 1
        return KeysValues(
            keys[: self.position].permute(1, 2, 0, 3), values[: self.position].permute(1, 2, 0, 3)
        )

    def _allocate(self, example: Tensor) -> Tensor:
        rows, heads, _, width = example.shape
        return example.new_empty(self.capacity, rows, heads, width)

    def select(self, rows: Tensor) -> "KeyValueCache":
        """Select the rows with these indices, in this order, in place. Return self.

        Indices may be repeated. The cache has two blocks of memory. `select` copies the rows from
        the block in use to the other block, and then exchanges the two.
        """
        if self.store is None:
            return self
        if self.spare is None or self.spare[0].shape[1] != len(rows):
            keys, values = self.store
            self.spare = (
                keys.new_empty(self.capacity, len(rows), *keys.shape[2:]),
                values.new_empty(self.capacity, len(rows), *values.shape[2:]),
            )
        # Position and row are flattened into one dimension, because torch selects twice as fast
        # along the first dimension.
        old_rows = self.store[0].shape[1]
        offsets = torch.arange(0, self.position * old_rows, old_rows, device=rows.device)
        indices = (offsets.unsqueeze(1) + rows).flatten()
        for store, spare in zip(self.store, self.spare, strict=True):
            torch.index_select(
                store.flatten(0, 1), 0, indices, out=spare[: self.position].flatten(0, 1)
            )
        self.store, self.spare = self.spare, self.store
        return self
