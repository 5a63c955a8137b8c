"""TokenTree: stores all tokens that a search generates, each with a pointer to its predecessor."""

from collections.abc import Iterable, Sequence
from functools import cached_property

import torch
from torch import Tensor

from seqloom.decoding.hypothesis import Hypothesis, LengthNormalisation
from seqloom.decoding.search import KeepAttention
from seqloom.text.vocabulary import END

ROOT = -1
"""Parent index of the first token of a hypothesis, which has no parent node."""


class TokenTree:
    """A tree with one node per generated token; each node points to its parent.

    A search adds nodes at every step and keeps only their indices. A finished hypothesis is built
    by following the pointers from its last token (leaf) back to its first token.

    In each step, the decoder computes one row per hypothesis. A search may try several next tokens
    for a hypothesis. Each of them becomes a node, and all of them have the attention weights of
    the same row. The tree therefore stores the weights once per row, and each node stores the index
    of its row.
    """

    def __init__(self, keep_attention: KeepAttention | None, source_mask: Tensor) -> None:
        self._keep = keep_attention
        self._source_mask = source_mask  # (B, S)
        self._attention: list[Tensor] = []  # one (R, ..., S) per step, if they are not joined
        self._offsets: list[int] = []  # for each step, the number of rows in all steps before it
        self._step_offset = 0  # number of rows in all steps before the current one
        self._next_offset = 0
        self._size = 0
        # Tokens, log-probabilities, parents and rows of all nodes. Most searches need these lists
        # only at the end, so `_columns` appends the new nodes when the lists are needed.
        self._lists: tuple[list[int], list[float], list[int], list[int]] = ([], [], [], [])
        # For each later call of `add`: tokens, log-probabilities, parents and rows, (N,) each.
        self._nodes: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []

    def begin_step(self, attention: Tensor | None, rows: int) -> None:
        """Start a step and store its attention weights, if the search keeps attention weights.

        attention: (R, L, H, S) weights of each row, layer and head; None if there are none
        rows:      R, the number of rows of the decoder in this step
        """
        self._step_offset, self._next_offset = self._next_offset, self._next_offset + rows
        if self._keep is not None and attention is not None:
            self._attention.append(self._keep(attention))
            self._offsets.append(self._step_offset)

    def add(
        self, tokens: Tensor, log_probabilities: Tensor, parents: Tensor, rows: Tensor
    ) -> range:
        """Add one node per token. Return the indices of the new nodes. All arguments are (N,).

        parents: index of the node before each token; -1 for the first token of a hypothesis
        rows:    for each token, the index of the decoder row of this step that generated it
        """
        self._nodes.append((tokens, log_probabilities, parents, rows + self._step_offset))
        first, self._size = self._size, self._size + len(tokens)
        return range(first, self._size)

    @property
    def _columns(self) -> tuple[list[int], list[float], list[int], list[int]]:
        """Tokens, log-probabilities, parents and rows of all nodes so far, as Python lists."""
        if self._nodes:
            new_tokens, new_log_probabilities, new_parents, new_rows = (
                torch.cat(column).tolist() for column in zip(*self._nodes, strict=True)
            )
            tokens, log_probabilities, parents, rows = self._lists
            tokens += new_tokens
            log_probabilities += new_log_probabilities
            parents += new_parents
            rows += new_rows
            self._nodes.clear()
        return self._lists

    def _path(self, leaf: int) -> list[int]:
        """Return the nodes from the first token to `leaf`."""
        parents = self._columns[2]
        path = []
        while leaf != ROOT:
            path.append(leaf)
            leaf = parents[leaf]
        return path[::-1]

    def _attention_of(self, path: Sequence[int], source: int) -> Tensor | None:
        """Return the attention weights (T, ..., S) of the T tokens of a hypothesis.

        S is the length of the source without padding. Return None if no weights were stored.

        path:   nodes of the tokens
        source: index of the source
        """
        if not self._attention:
            return None
        node_rows = self._columns[3]
        rows = [node_rows[node] for node in path]
        length = self._source_lengths[source]
        if self._joins_attention:
            joined = self._join_attention()
            indices = torch.tensor(rows, device=joined.device)
            return joined.index_select(0, indices)[..., :length].cpu()
        # Token t of a hypothesis was generated in step t.
        weights = zip(self._attention, self._offsets, rows, strict=False)
        return torch.stack([step[row - offset, ..., :length] for step, offset, row in weights])

    @property
    def _joins_attention(self) -> bool:
        """True if the attention weights of all steps are joined before a hypothesis is built.

        On a GPU, one copy per hypothesis is faster than one per token.
        """
        return self._source_mask.is_cuda

    def _join_attention(self) -> Tensor:
        """Join the attention weights of all steps so far into one tensor, and return it."""
        if len(self._attention) > 1:
            self._attention = [torch.cat(self._attention)]
        return self._attention[0]

    @cached_property
    def _source_lengths(self) -> list[int]:
        return self._source_mask.sum(dim=1).tolist()

    def _hypothesis(
        self, path: Sequence[int], source: int, normalisation: LengthNormalisation
    ) -> Hypothesis:
        tokens, log_probabilities, _, _ = self._columns
        finished = tokens[path[-1]] == END
        path_without_end = path[:-1] if finished else path
        path_log_probabilities = tuple(log_probabilities[node] for node in path)
        return Hypothesis(
            tokens=tuple(tokens[node] for node in path_without_end),
            finished=finished,
            log_probabilities=path_log_probabilities,
            score=normalisation.score(sum(path_log_probabilities), len(path), finished),
            attention=self._attention_of(path, source),
        )

    def hypotheses(
        self, leaves: Iterable[int], source: int, normalisation: LengthNormalisation
    ) -> list[Hypothesis]:
        """Return the hypotheses that end in the nodes `leaves`, in the order of these nodes.

        source: index of the source of these hypotheses
        """
        return [self._hypothesis(self._path(leaf), source, normalisation) for leaf in leaves]

    def best_hypotheses(
        self,
        leaves: Iterable[int],
        source: int,
        normalisation: LengthNormalisation,
        count: int,
        complete_length: int | None = None,
    ) -> list[Hypothesis]:
        """Return the `count` best of the hypotheses that end in the nodes `leaves`.

        Finished hypotheses come before unfinished ones. Both groups are sorted by score, with the
        best first.

        complete_length: unfinished hypotheses with this number of tokens are sorted as if they
                         were finished. Default: None, no such exception
        """
        tokens, log_probabilities, _, _ = self._columns
        paths = [self._path(leaf) for leaf in leaves]

        def rank(path: list[int]) -> tuple[bool, float]:
            total = sum(log_probabilities[node] for node in path)
            finished = tokens[path[-1]] == END
            score = normalisation.score(total, len(path), finished)
            return finished or len(path) == complete_length, score

        best = sorted(paths, key=rank, reverse=True)[:count]
        return [self._hypothesis(path, source, normalisation) for path in best]
