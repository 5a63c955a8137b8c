"""Small decoders to search over: random, in float64 so that no two hypotheses tie."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from seqloom.models.interface import Memory, State, Step
from seqloom.text.vocabulary import START

FLOAT = torch.float64


def first(static: bool) -> int | Tensor:
    """The position before the first token."""
    return torch.zeros((), dtype=torch.long) if static else 0


def row_count(tree: object) -> int:
    assert isinstance(tree, Tensor)
    return tree.shape[0]


class EchoDecoder:
    """Its hidden state depends on every token so far and on the source, which it cannot attend to.

    h' = tanh(A h + e(token) + c(source)), logits = W h'
    """

    def __init__(self, seed: int, words: int, width: int = 6) -> None:
        generator = torch.Generator().manual_seed(seed)
        vocabulary = 4 + words

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=FLOAT)

        self.recurrent = normal(width, width)
        self.embedding = 2 * normal(vocabulary, width)
        self.output = normal(width, vocabulary)
        self.steps: list[int] = []  # rows of each step taken
        self.fed: list[list[int]] = []

    def start(
        self, memory: Memory, steps: int, *, watched: bool = True, static: bool = False
    ) -> State:
        return State(memory.summary[:, 0], torch.zeros_like(memory.summary[:, 0]), first(static))

    def step(self, tokens: Tensor, state: State) -> Step:
        assert isinstance(state.fixed, Tensor)
        assert isinstance(state.moving, Tensor)
        rows, sources = len(tokens), row_count(state.fixed)
        assert row_count(state.moving) == rows
        assert rows % sources == 0
        self.steps.append(rows)
        self.fed.append(tokens.tolist())
        source = state.fixed.repeat_interleave(rows // sources, dim=0)
        hidden = torch.tanh(state.moving @ self.recurrent + self.embedding[tokens] + source)
        return Step(hidden @ self.output, State(state.fixed, hidden, state.position + 1), None)


class AttentiveDecoder(nn.Module):
    """A GRU cell that looks at the source at every step, with two heads."""

    def __init__(self, seed: int, words: int, width: int = 6) -> None:
        super().__init__()
        self.embedding = nn.Embedding(4 + words, width, dtype=FLOAT)
        self.cell = nn.GRUCell(2 * width, width, dtype=FLOAT)
        self.queries = nn.Linear(width, 2 * width, bias=False, dtype=FLOAT)
        self.readout = nn.Linear(2 * width, 4 + words, dtype=FLOAT)
        generator = torch.Generator().manual_seed(seed)
        for parameter in self.parameters():
            nn.init.normal_(parameter, generator=generator)

    def start(
        self, memory: Memory, steps: int, *, watched: bool = True, static: bool = False
    ) -> State:
        blank = torch.zeros_like(memory.summary[:, 0])
        return State((memory.states, memory.mask), (memory.summary[:, 0], blank), first(static))

    def step(self, tokens: Tensor, state: State) -> Step:
        assert isinstance(state.fixed, tuple)
        assert isinstance(state.moving, tuple)
        states, mask = state.fixed
        hidden, context = state.moving
        assert isinstance(states, Tensor)
        assert isinstance(mask, Tensor)
        assert isinstance(hidden, Tensor)
        assert isinstance(context, Tensor)
        each = len(tokens) // len(states)
        states, mask = states.repeat_interleave(each, 0), mask.repeat_interleave(each, 0)
        hidden = self.cell(torch.cat([self.embedding(tokens), context], dim=1), hidden)
        queries = self.queries(hidden).view(len(tokens), 2, -1)  # (R, H, D)
        scores = (queries @ states.mT).masked_fill(~mask.unsqueeze(1), float("-inf"))
        weights = scores.softmax(dim=-1)  # (R, H, S)
        context = (weights @ states).mean(dim=1)
        logits = self.readout(torch.cat([hidden, context], dim=1))
        moving = State(state.fixed, (hidden, context), state.position + 1)
        return Step(logits, moving, weights.unsqueeze(1))


class TableDecoder:
    """Says what a table says: p(next | all tokens so far), the same for every source."""

    def __init__(self, table: Mapping[tuple[int, ...], Sequence[float]], other: Sequence[float]):
        self.table = table
        self.other = other
        self.room = 12

    def start(
        self, memory: Memory, steps: int, *, watched: bool = True, static: bool = False
    ) -> State:
        written = torch.zeros(len(memory.mask), self.room, dtype=torch.long)
        assert not static, "it looks at every token on the host"
        return State(None, written, 0)

    def step(self, tokens: Tensor, state: State) -> Step:
        assert isinstance(state.moving, Tensor)
        written = state.moving.clone()
        written[:, state.position] = tokens
        assert set(written[:, 0].tolist()) == {START}
        rows = [tuple(row[1 : state.position + 1]) for row in written.tolist()]
        answer = torch.tensor([self.table.get(row, self.other) for row in rows], dtype=FLOAT)
        return Step(answer.log(), State(None, written, state.position + 1), None)


def random_memory(seed: int, lengths: Sequence[int], width: int = 6) -> Memory:
    """Sources of these lengths; each depends on its place in the list alone, not on the padding."""
    states = torch.full((len(lengths), max(lengths), width), 9.0, dtype=FLOAT)
    mask = torch.zeros(len(lengths), max(lengths), dtype=torch.bool)
    summary = torch.empty(len(lengths), 1, width, dtype=FLOAT)
    for source, length in enumerate(lengths):
        generator = torch.Generator().manual_seed(1000 * seed + source)
        drawn = torch.randn(length + 1, width, generator=generator, dtype=FLOAT)
        states[source, :length] = drawn[1:]
        mask[source, :length] = True
        summary[source, 0] = drawn[0]
    return Memory(states, mask, summary)


def take(memory: Memory, sources: Sequence[int], padding: int = 0) -> Memory:
    """Some sources, in this order, cut to the longest of them and then padded anew."""
    chosen = torch.tensor(sources)
    mask = memory.mask[chosen]
    length = int(mask.sum(dim=1).max())
    states = nn.functional.pad(memory.states[chosen, :length], (0, 0, 0, padding), value=-7.0)
    return Memory(states, nn.functional.pad(mask[:, :length], (0, padding)), memory.summary[chosen])
