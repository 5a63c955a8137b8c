"""A key-value cache whose tensors never move, for steps that are captured once and replayed."""

import torch
from torch import Tensor

from seqloom.nn.cache import KeysValues


class SlotTable:
    """Where the positions of each hypothesis are stored in caches that are never reordered.

    A cache has one slot per position and row, capacity · R in all, and each row writes to slots of
    its own. When beam search moves a hypothesis to another row, its keys and values stay where they
    are; only its row of this table moves. One table serves the caches of all layers.

    position: () the position of the decoder state, which is incremented in place
    """

    def __init__(self, rows: int, capacity: int, position: Tensor) -> None:
        self.position = position
        self._columns = torch.arange(capacity, device=position.device).unsqueeze(0)
        self._reset(rows)

    def _reset(self, rows: int) -> None:
        self.rows = rows
        row_numbers = torch.arange(rows, device=self.position.device).unsqueeze(1)
        self._own = self._columns * rows + row_numbers
        self.slots = self._own.clone()
        """(R, capacity) slots of each row's earlier positions, and of those it will write."""

    @property
    def capacity(self) -> int:
        """Maximum number of positions."""
        return self._columns.shape[1]

    @property
    def mask(self) -> Tensor:
        """(1, capacity) True for the current position and all before it."""
        return self._columns <= self.position

    def select(self, rows: Tensor) -> "SlotTable":
        """Keep these rows, in place. Called after a step but before `position` is incremented."""
        if len(rows) != self.rows:
            self._reset(len(rows))
        else:
            inherited = self.slots.index_select(0, rows)
            self.slots.copy_(torch.where(self.mask, inherited, self._own))
        return self


class StaticCache:
    """Keys and values of one layer: (capacity · R, H, D).

    Only the contents of its tensors depend on the position, so a step can be captured once and
    replayed.
    """

    def __init__(self, table: SlotTable, example: KeysValues) -> None:
        """example: one position of one row, (1, H, 1, D) each"""
        self.table = table
        self._example = example
        self._rows = 0
        self._store: tuple[Tensor, Tensor] | None = None

    @property
    def position(self) -> Tensor:
        """() the position that the next `append` stores."""
        return self.table.position

    @property
    def mask(self) -> Tensor:
        """(1, capacity) True for the current position and all before it."""
        return self.table.mask

    @property
    def store(self) -> tuple[Tensor, Tensor]:
        """Keys and values. Allocated by the first `select`, at the latest by the first step."""
        if self._store is None:
            self._rows = self.table.rows
            self._store = (
                self._allocate(self._example.keys),
                self._allocate(self._example.values),
            )
        return self._store

    def _allocate(self, example: Tensor) -> Tensor:
        _, heads, _, width = example.shape
        # Zeros, because unused slots are multiplied with a weight of zero, and 0 · NaN is NaN.
        return example.new_zeros(self.table.capacity * self._rows, heads, width)

    def append(self, new: KeysValues) -> KeysValues:
        """Store one position, (R, H, 1, D) each. Returns all slots: (R, H, capacity, D) each."""
        current = self.table.slots.gather(1, self.position.expand(self.table.rows, 1))
        gathered = []
        for store, tensor in zip(self.store, (new.keys, new.values), strict=True):
            store.index_copy_(0, current.squeeze(1), tensor.squeeze(2))
            gathered.append(store[self.table.slots].transpose(1, 2))
        return KeysValues(*gathered)

    def select(self, rows: Tensor) -> "StaticCache":
        """Keys and values stay where they are; the slot table must select the rows first."""
        if len(rows) != self._rows:
            assert self.table.rows == len(rows), "select the rows of the slot table first"
            self._store = None
        assert self.store is not None
        return self
