"""The contract between a model and everyone who uses one.

A model is an encoder that turns a source into a Memory, and a decoder that is asked three things:

    start   what do you remember before the first token?
    step    given one more token, what comes next, and what do you remember now?
    teach   given all tokens at once, what would you have answered at each of them?

Training teaches, search steps. Neither asks what kind of model it has.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from torch import Tensor, nn

from seqloom.core.sequences import Packing, Source
from seqloom.models.taught import Taught, TaughtToCopy
from seqloom.nn.copying import Copyable, Copying
from seqloom.nn.embedding import Readout


@dataclass(frozen=True)
class Memory:
    """What an encoder hands over.

    states:  (B, S, D) a vector for each source position
    mask:    (B, S)    True where a position is real
    summary: (B, L, D) the last state of each layer, or nothing if there is no source; an LSTM
             puts its cells beside its states: (B, L, 2 D)
    tokens:  (B, S)    what stands at each source position; None if the source is no text
    """

    states: Tensor
    mask: Tensor
    summary: Tensor
    tokens: Tensor | None = None

    def only(self, source: int) -> "Memory":
        """What there is of one source of the batch."""
        here = slice(source, source + 1)
        return self._map(lambda tensor: tensor[here])

    def repeated(self, count: int) -> "Memory":
        """Every source so many times, one beside the other."""
        return self._map(lambda tensor: tensor.repeat_interleave(count, dim=0))

    def _map(self, change: Callable[[Tensor], Tensor]) -> "Memory":
        tokens = None if self.tokens is None else change(self.tokens)
        return Memory(change(self.states), change(self.mask), change(self.summary), tokens)


class Movable(Protocol):
    """A piece of decoder state that knows how to keep only some of its rows."""

    def select(self, rows: Tensor) -> "Movable": ...


@dataclass(frozen=True)
class Common:
    """A piece of decoder state that is the same for every row."""

    value: Tensor

    def select(self, rows: Tensor) -> "Common":
        return self


Tree = Any
"""Tensors and Movables in nested tuples, None where there is nothing. Only the decoder that made
a tree knows its shape."""


def select_rows(tree: Tree, rows: Tensor) -> Tree:
    """The same tree with only these rows, in this order; rows may repeat."""
    if tree is None:
        return None
    if isinstance(tree, tuple):
        return tuple(select_rows(branch, rows) for branch in tree)
    if isinstance(tree, Tensor):
        return tree.index_select(0, rows)
    movable: Movable = tree
    return movable.select(rows)


def at_position(table: Tensor, position: int | Tensor) -> Tensor:
    """One row of a table: (T, P) -> (1, P)"""
    if isinstance(position, Tensor):
        return table.index_select(0, position.view(1))
    return table[position : position + 1]


def copy_tree(tree: Tree, into: Tree) -> None:
    """Write the numbers of one tree into another of the same shape; Movables keep their own."""
    if isinstance(tree, tuple):
        for branch, place in zip(tree, into, strict=True):
            copy_tree(branch, place)
    elif isinstance(tree, Tensor):
        into.copy_(tree)
    else:
        assert tree is into, "a static state's Movables change in place"


@dataclass(frozen=True)
class State:
    """All a decoder remembers between two steps. Search moves it about and never looks inside.

    fixed:    one row per source (keys, values): the same for all its hypotheses, never copied
    moving:   one row per hypothesis (hidden state, cache): follows its hypothesis. The rows of
              one source stand together: row r belongs to source r // K
    position: how many tokens have been taken in; a tensor without dimensions if it is static
    watched:  does anybody want to know where a step looked?

    A state is spent by the step that takes it: caches are written in place.
    """

    fixed: Tree
    moving: Tree
    position: int | Tensor
    watched: bool = True

    def select(self, rows: Tensor) -> "State":
        """Keep these hypotheses (R',), of the same sources as before."""
        return replace(self, moving=select_rows(self.moving, rows))

    def keep_sources(self, sources: Tensor) -> "State":
        """Drop all sources but these (B',). `select` must keep the matching hypotheses."""
        return replace(self, fixed=select_rows(self.fixed, sources))

    def after(self, moving: Tree) -> "State":
        """The state after one more token."""
        return replace(self, moving=moving, position=self.position + 1)

    def become(self, later: "State") -> None:
        """Take on what a later state of the same rows holds, in place: for static states."""
        assert isinstance(self.position, Tensor)
        copy_tree(later.moving, self.moving)
        self.position.copy_(later.position)  # type: ignore[arg-type]  # as static as this one


@dataclass(frozen=True)
class Step:
    """A decoder's answer to one token.

    logits:    (R, V) unnormalised scores of the next token
    attention: (R, L, H, S) where it looked, layer by layer and head by head; None without
               attention, or if it is not watched
    """

    logits: Tensor
    state: State
    attention: Tensor | None


class Encoder(Protocol):
    """Reads a source, all of it, before the first token is put out."""

    def __call__(self, source: Source, packing: Packing | None = None) -> Memory: ...


class Decoder(Protocol):
    """Puts out a target, token by token. `step` over all tokens and `teach` give the same."""

    def start(
        self, memory: Memory, steps: int, *, watched: bool = True, static: bool = False
    ) -> State:
        """The state before the first token, with room for this many steps; one row per source.

        watched: if not, nobody wants to know where a step looks: `Step.attention` is None
        static:  a step needs nothing from the host and does the same whatever the position, so
                 that it can be recorded once and replayed: `position` is a tensor, Movables are
                 changed in place, and `State.become` brings the rest back to its place. Rows may
                 only become more before the first step, and sources never fewer
        """
        ...

    def step(self, tokens: Tensor, state: State) -> Step:
        """Take in one token a row: (R,). R is a multiple of the number of sources."""
        ...

    def teach(self, inputs: Tensor, memory: Memory, packing: Packing | None = None) -> Taught:
        """All tokens at once (B, T) -> what it would have answered, as logits or as a loss."""
        ...


class DecoderModule(nn.Module):
    """A Decoder that is also an nn.Module: what `models/build.py` makes."""

    readout: Readout
    max_length: int | None
    """Tokens it can take in at most (its position table ends there); None means any number."""
    steps_statically = True
    """Can `start` be asked for a static state?"""

    def __init__(self) -> None:
        super().__init__()
        self.copying: Copying | None = None
        """What takes tokens from the source; None: all are the decoder's own."""

    def compile_parts(self) -> None:
        """Compile what `teach` does over and over."""
        self.readout.compile_loss()
        if self.copying is not None:
            self.copying.compile_loss()

    def copyable(self, memory: Memory, mask: Tensor | None = None) -> Copyable | None:
        """What may be copied; None if nothing may be.

        mask: (B, 1 or T, S) where each position may copy from; None: from all of the source
        """
        if self.copying is None:
            return None
        assert memory.tokens is not None, "only what has tokens can be copied from"
        everywhere = memory.mask.unsqueeze(1)
        visible = everywhere if mask is None else mask
        return self.copying.prepare(memory.states, memory.tokens, visible)

    def speak(self, features: Tensor, source: Copyable | None) -> Tensor:
        """One position of every hypothesis: (R, D) -> (R, V) logits"""
        logits: Tensor = self.readout(features)
        if self.copying is None or source is None:
            return logits
        return self.copying.step(logits, features, source)

    def taught(self, features: Tensor, source: Copyable | None) -> Taught:
        """What features (B, T, D) have to say."""
        if self.copying is None or source is None:
            return Taught(features, self.readout)
        return TaughtToCopy(features, self.readout, self.copying, source)

    def start(
        self, memory: Memory, steps: int, *, watched: bool = True, static: bool = False
    ) -> State:
        raise NotImplementedError

    def step(self, tokens: Tensor, state: State) -> Step:
        raise NotImplementedError

    def teach(self, inputs: Tensor, memory: Memory, packing: Packing | None = None) -> Taught:
        raise NotImplementedError


class EncoderModule(nn.Module):
    """An Encoder that is also an nn.Module."""

    max_length: int | None
    """Tokens it can read at most (its position table ends there); None means any number."""

    def compile_parts(self) -> None:
        """Compile what reading does over and over."""

    def forward(self, source: Source, packing: Packing | None = None) -> Memory:
        raise NotImplementedError
