"""A key-value cache with tensors at fixed addresses, for steps that are captured and replayed."""

import torch
from torch import Tensor

from seqloom.nn.key_value_cache import KeysValues


class SlotTable:
    """A table that says in which slot of a static cache each position of each hypothesis is stored.

    A slot holds the key and the value of one position. A cache has `capacity` slots for each of R
    rows. Each row writes to slots that no other row writes to. When beam search moves a hypothesis
    to another row, its keys and values stay in their slots, and only the entries of this table are
    copied to the other row. One table serves the caches of all layers.

    position: number of tokens consumed so far, a 0-dim tensor that is incremented in place
    """

    def __init__(self, rows: int, capacity: int, position: Tensor) -> None:
        self.position = position
        self._columns = torch.arange(capacity, device=position.device).unsqueeze(0)
        self._reset(rows)

    def _reset(self, rows: int) -> None:
        self.rows = rows
        row_indices = torch.arange(rows, device=self.position.device).unsqueeze(1)
        self._write_slots = self._columns * rows + row_indices
        self.slots = self._write_slots.clone()
        """(R, capacity) slot of each position of each row, including positions not yet written."""

    @property
    def capacity(self) -> int:
        """Maximum number of positions."""
        return self._columns.shape[1]

    @property
    def mask(self) -> Tensor:
        """Mask (1, capacity): True for the current position and all before it."""
        return self._columns <= self.position

    def select(self, rows: Tensor) -> "SlotTable":
        """Replace row i of the table by row `rows[i]`, up to the current position. Return self.

        Call this method after a step, before `position` is incremented. If the number of rows
        changes, all entries are reset. Therefore the number may change only before the first step.
        """
        if len(rows) != self.rows:
            self._reset(len(rows))
        else:
            inherited = self.slots.index_select(0, rows)
            self.slots.copy_(torch.where(self.mask, inherited, self._write_slots))
        return self


class StaticCache:
    """Keys and values of one layer, (capacity · R, H, D) each.

    R is the number of rows, and `capacity` is the maximum number of positions.

    The tensors have the same addresses and shapes at every position, so a step can be captured once
    and replayed.
    """

    def __init__(self, table: SlotTable, example: KeysValues) -> None:
        """Create an empty cache. The first access to `store` allocates its tensors.

        table:   says in which slot each position of each hypothesis is stored
        example: keys and values (1, H, 1, D), from which the cache takes H, D, dtype and device
        """
        self.table = table
        self._example = example
        self._rows = 0
        self._store: tuple[Tensor, Tensor] | None = None

    @property
    def position(self) -> Tensor:
        """Index, from 0, of the position that the next `append` stores, as a 0-dim tensor."""
        return self.table.position

    @property
    def mask(self) -> Tensor:
        """Mask (1, capacity): True for the current position and all before it."""
        return self.table.mask

    @property
    def store(self) -> tuple[Tensor, Tensor]:
        """The tensors of keys and values, (capacity · R, H, D) each. The first access allocates
        them."""
        if self._store is None:
            self._rows = self.table.rows
            self._store = (
                self._allocate(self._example.keys),
                self._allocate(self._example.values),
            )
        return self._store

    def _allocate(self, example: Tensor) -> Tensor:
        _, heads, _, width = example.shape
        # Zeros, because attention multiplies unused slots by a weight of zero, and 0 · NaN is NaN.
        return example.new_zeros(self.table.capacity * self._rows, heads, width)

    def append(self, new: KeysValues) -> KeysValues:
        """Store the keys and values of one position, (R, H, 1, D) each.

        Return the keys and values of all positions, (R, H, capacity, D) each. Positions that are
        not yet stored are included; `mask` hides them.
        """
        current = self.table.slots.gather(1, self.position.expand(self.table.rows, 1))
        gathered = []
        for store, tensor in zip(self.store, (new.keys, new.values), strict=True):
            store.index_copy_(0, current.squeeze(1), tensor.squeeze(2))
            gathered.append(store[self.table.slots].transpose(1, 2))
        return KeysValues(*gathered)

    def load(self, other: "StaticCache", rows: Tensor) -> None:
        """Copy rows of another cache, which has at most as many positions, to this empty cache.

        Call this method before the first step after `SlotTable.select`: then each row of this cache
        has its own slots.

        rows: (R,) indices of rows of the other cache
        """
        theirs = other.table.slots.index_select(0, rows)  # (R, capacity of the other cache)
        mine = self.table.slots[:, : theirs.shape[1]]
        for store, other_store in zip(self.store, other.store, strict=True):
            store[mine] = other_store[theirs]

    def select(self, rows: Tensor) -> "StaticCache":
        """Adapt the cache to the rows that beam search has selected. Return self.

        Keys and values are not moved, because the `SlotTable` says where they are stored. Call
        `SlotTable.select` first. If the number of rows has changed, the cache is emptied.
        """
        if len(rows) != self._rows:
            assert self.table.rows == len(rows), "select the rows of the slot table first"
            self._store = None
        assert self.store is not None
        return self
