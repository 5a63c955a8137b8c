"""Everything a search has put out, as a tree of tokens."""

from collections.abc import Iterable, Sequence
from functools import cached_property

import torch
from torch import Tensor

from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import KeepAttention, normalise
from seqloom.text.vocabulary import END

ROOT = -1
"""The node before the first token."""


class History:
    """A tree in which every token points to the one before it.

    A search adds nodes at every step and keeps only their numbers. Nothing is ever reordered:
    the few hypotheses that are asked for are traced back from their last node, at the end.
    Attention belongs to the row that looked, and is found again by that row's number.
    """

    def __init__(self, keep_attention: KeepAttention | None, source_mask: Tensor) -> None:
        self._keep = keep_attention
        self._source_mask = source_mask  # (B, S)
        self._attention: list[Tensor] = []  # each (R, …, S)
        self._looks = 0  # rows of attention up to the step before this one
        self._next_look = 0
        self._size = 0
        self._nodes: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []

    def look(self, attention: Tensor | None, rows: int) -> None:
        """Begin a step of this many rows: where did each of them look?"""
        self._looks, self._next_look = self._next_look, self._next_look + rows
        if self._keep is not None and attention is not None:
            self._attention.append(self._keep(attention))

    def add(
        self, tokens: Tensor, log_probabilities: Tensor, parents: Tensor, rows: Tensor
    ) -> range:
        """Add a node for each token; all arguments are (N,). Returns the numbers of the nodes.

        parents: the node that each token follows
        rows:    the row of the step at hand that proposed it
        """
        self._nodes.append((tokens, log_probabilities, parents, rows + self._looks))
        first, self._size = self._size, self._size + len(tokens)
        return range(first, self._size)

    @cached_property
    def _columns(self) -> tuple[list[int], list[float], list[int], list[int]]:
        """Tokens, log-probabilities, parents and looks of all nodes, brought over at once."""
        tokens, log_probabilities, parents, looks = (
            torch.cat(column).tolist() for column in zip(*self._nodes, strict=True)
        )
        return tokens, log_probabilities, parents, looks

    def _trace(self, leaf: int) -> list[int]:
        """The nodes from the first token to this one."""
        parents = self._columns[2]
        path = []
        while leaf != ROOT:
            path.append(leaf)
            leaf = parents[leaf]
        return path[::-1]

    def _look_back(self, path: Sequence[int], source: int) -> Tensor | None:
        """(T, …, S) where each token of a path looked, without the padding of the source."""
        if not self._attention:
            return None
        looks = self._columns[3]
        rows = torch.tensor([looks[node] for node in path], device=self._all_attention.device)
        length = self._source_lengths[source]
        return self._all_attention.index_select(0, rows)[..., :length].cpu()

    @cached_property
    def _all_attention(self) -> Tensor:
        return torch.cat(self._attention)

    @cached_property
    def _source_lengths(self) -> list[int]:
        return self._source_mask.sum(dim=1).tolist()

    def _hypothesis(self, path: Sequence[int], source: int, exponent: float) -> Hypothesis:
        tokens, log_probabilities, _, _ = self._columns
        finished = tokens[path[-1]] == END
        written = path[:-1] if finished else path
        own = tuple(log_probabilities[node] for node in path)
        return Hypothesis(
            tokens=tuple(tokens[node] for node in written),
            finished=finished,
            log_probabilities=own,
            score=normalise(sum(own), len(own), exponent),
            attention=self._look_back(path, source),
        )

    def read(self, leaves: Iterable[int], source: int, exponent: float) -> list[Hypothesis]:
        """The hypotheses that end in these nodes, in this order."""
        return [self._hypothesis(self._trace(leaf), source, exponent) for leaf in leaves]

    def best(
        self, leaves: Iterable[int], source: int, exponent: float, count: int
    ) -> list[Hypothesis]:
        """The `count` best of them: first the finished, then the others, each by their score."""
        tokens, log_probabilities, _, _ = self._columns
        paths = [self._trace(leaf) for leaf in leaves]

        def merit(path: list[int]) -> tuple[bool, float]:
            total = sum(log_probabilities[node] for node in path)
            return tokens[path[-1]] == END, normalise(total, len(path), exponent)

        chosen = sorted(paths, key=merit, reverse=True)[:count]
        return [self._hypothesis(path, source, exponent) for path in chosen]
