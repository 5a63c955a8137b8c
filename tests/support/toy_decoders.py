"""Small random decoders for search tests, in float64 so that no two hypotheses have equal scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from seqloom.models.interface import Memory, NoRows, State, Step, static_position
from seqloom.text.vocabulary import START

FLOAT = torch.float64


@dataclass(frozen=True)
class RowTensors:
    """State of the toy decoders: tensors with one row each."""

    tensors: tuple[Tensor, ...]

    def select(self, rows: Tensor) -> "RowTensors":
        return RowTensors(tuple(tensor.index_select(0, rows) for tensor in self.tensors))

    def copy_(self, later: "RowTensors") -> None:
        for tensor, new in zip(self.tensors, later.tensors, strict=True):
            tensor.copy_(new)

    def load(self, other: "RowTensors", rows: Tensor) -> None:
        self.copy_(other.select(rows))


class StaticToy:
    """Adds `start_static` to a decoder whose steps do not depend on the position."""

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        raise NotImplementedError

    def start_static(self, memory: Memory, max_steps: int) -> State:
        state = self.start(memory, max_steps, need_attention=False)
        return replace(state, position=static_position(memory.mask.device))


class EchoDecoder(StaticToy):
    """A recurrent decoder without attention. Its state depends on the source and on every token.

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
        self.row_counts: list[int] = []  # number of rows of each step
        self.inputs: list[list[int]] = []  # input tokens of each step

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        summary = memory.summary[:, 0]
        return State(RowTensors((summary,)), RowTensors((torch.zeros_like(summary),)), 0)

    def step(self, tokens: Tensor, state: State) -> Step:
        [fixed], [moving] = state.fixed.tensors, state.moving.tensors
        rows, sources = len(tokens), len(fixed)
        assert len(moving) == rows
        assert rows % sources == 0
        self.row_counts.append(rows)
        self.inputs.append(tokens.tolist())
        source = fixed.repeat_interleave(rows // sources, dim=0)
        hidden = torch.tanh(moving @ self.recurrent + self.embedding[tokens] + source)
        return Step(hidden @ self.output, state.after(RowTensors((hidden,))), None)


class AttentiveDecoder(nn.Module, StaticToy):
    """A GRU cell that attends to the source at every step, with two heads."""

    def __init__(self, seed: int, words: int, width: int = 6) -> None:
        super().__init__()
        self.embedding = nn.Embedding(4 + words, width, dtype=FLOAT)
        self.cell = nn.GRUCell(2 * width, width, dtype=FLOAT)
        self.queries = nn.Linear(width, 2 * width, bias=False, dtype=FLOAT)
        self.readout = nn.Linear(2 * width, 4 + words, dtype=FLOAT)
        generator = torch.Generator().manual_seed(seed)
        for parameter in self.parameters():
            nn.init.normal_(parameter, generator=generator)

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        summary = memory.summary[:, 0]
        fixed = RowTensors((memory.states, memory.mask))
        return State(fixed, RowTensors((summary, torch.zeros_like(summary))), 0)

    def step(self, tokens: Tensor, state: State) -> Step:
        states, mask = state.fixed.tensors
        hidden, context = state.moving.tensors
        copies = len(tokens) // len(states)
        states, mask = states.repeat_interleave(copies, 0), mask.repeat_interleave(copies, 0)
        hidden = self.cell(torch.cat([self.embedding(tokens), context], dim=1), hidden)
        queries = self.queries(hidden).view(len(tokens), 2, -1)  # (R, H, D)
        scores = (queries @ states.mT).masked_fill(~mask.unsqueeze(1), float("-inf"))
        weights = scores.softmax(dim=-1)  # (R, H, S)
        context = (weights @ states).mean(dim=1)
        logits = self.readout(torch.cat([hidden, context], dim=1))
        return Step(logits, state.after(RowTensors((hidden, context))), weights.unsqueeze(1))


class TableDecoder:
    """Reads p(next | all tokens so far) from a table; the same for every source.

    default: distribution after tokens that are not in the table
    """

    max_tokens = 12

    def __init__(self, table: Mapping[tuple[int, ...], Sequence[float]], default: Sequence[float]):
        self.table = table
        self.default = default

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        generated = torch.zeros(len(memory.mask), self.max_tokens, dtype=torch.long)
        return State(NoRows(), RowTensors((generated,)), 0)

    def step(self, tokens: Tensor, state: State) -> Step:
        [moving] = state.moving.tensors
        generated = moving.clone()
        generated[:, state.position] = tokens
        assert set(generated[:, 0].tolist()) == {START}
        rows = [tuple(row[1 : state.position + 1]) for row in generated.tolist()]
        probabilities = torch.tensor(
            [self.table.get(row, self.default) for row in rows], dtype=FLOAT
        )
        return Step(probabilities.log(), state.after(RowTensors((generated,))), None)


def random_memory(seed: int, lengths: Sequence[int], width: int = 6) -> Memory:
    """Random sources of these lengths. Each depends on its index only, not on the padding."""
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


def select_sources(memory: Memory, sources: Sequence[int], padding: int = 0) -> Memory:
    """These sources, in this order, trimmed to the longest and padded by `padding` positions."""
    chosen = torch.tensor(sources)
    mask = memory.mask[chosen]
    length = int(mask.sum(dim=1).max())
    states = nn.functional.pad(memory.states[chosen, :length], (0, 0, 0, padding), value=-7.0)
    return Memory(states, nn.functional.pad(mask[:, :length], (0, padding)), memory.summary[chosen])
