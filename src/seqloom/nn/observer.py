"""Observers receive the values that layers and models compute, while `forward` or `step` runs.

    with observing(Printer()):
        model.decoder.step(tokens, state)

Without an observer, a layer only reads one variable. Each thread has its own observer. Code that
torch.compile has compiled and CUDA graphs report nothing.

The reported values, by the class that reports them:

    Embedder             "vector" of the token, "input" of the network
    RecurrentLayer       "carried", the state before a step, and "state", the state after it
    InitialState         "initial state"
    Residual             "stream"
    MultiHeadAttention   its inputs, from which `AttentionInputs.trace` computes all values
    RecurrentDecoder     "replaced state": the state in which the context replaces h
    Readout              "features", "hidden layer"
    Copying              "query", "keys", "scores", "pointer", "gate": log g
    DecoderModule        "logits", before the copy mechanism
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from seqloom.nn.positions import PositionIds


@dataclass(frozen=True)
class AttentionTrace:
    """Every intermediate result of attention, from queries to context, for all heads.

    queries: (B, H, T, Dq)
    keys:    (B, H, S, Dk) the input of `AttentionScore.prepare`
    scores:  (B, H, T, S)
    weights: (B, H, T, S)
    values:  (B, H, S, Dv)
    read:    (B, H, T, Dv) the context of each head: weights @ values
    context: (B, T, C)     contexts of all heads concatenated, after the output projection
    """

    queries: Tensor
    keys: Tensor
    scores: Tensor
    weights: Tensor
    values: Tensor
    read: Tensor
    context: Tensor


class TraceableAttention(Protocol):
    """An attention module that can compute all intermediate results."""

    def trace(
        self, states: Tensor, source: Tensor, mask: Tensor | None, position_ids: PositionIds
    ) -> AttentionTrace: ...


@dataclass(frozen=True)
class AttentionInputs:
    """The inputs of an attention module.

    states:       (B, T, Dq) the vectors from which the queries are computed
    source:       (B, S, Dk) the vectors from which keys and values are computed
    mask:         (B, S), or broadcastable to (B, H, T, S); None: all keys are visible
    is_causal:    True: a query sees no key after its own position
    position_ids: position of the first query, or the position of each query
    """

    attention: TraceableAttention
    states: Tensor
    source: Tensor
    mask: Tensor | None
    is_causal: bool = False
    position_ids: PositionIds = 0

    def only(self, position: int) -> "AttentionInputs":
        """Return the inputs of one of the T queries.

        position: index of the query, counted from 0; -1 is the last query
        """
        index = range(self.states.shape[1])[position]
        states, source, mask = self.states[:, index : index + 1], self.source, self.mask
        if mask is not None and mask.dim() == 4 and mask.shape[2] > 1:
            mask = mask[:, :, index : index + 1]
        if self.is_causal:
            source = source[:, : index + 1]
        position_ids = self.position_ids + index
        return AttentionInputs(self.attention, states, source, mask, position_ids=position_ids)

    def trace(self) -> AttentionTrace:
        """Compute queries, keys, scores, weights, values and context, without a fused kernel."""
        assert not self.is_causal or self.states.shape[1] == 1, "call `only` for causal attention"
        return self.attention.trace(self.states, self.source, self.mask, self.position_ids)


class Observer:
    """Base class of observers. It changes nothing; subclasses override what they need."""

    is_stepwise = False
    """True: recurrent encoders run step by step, so that the observer receives each state."""

    def observe(self, part: nn.Module, name: str, value: Tensor) -> Tensor:
        """Receive a value. Return the value with which the computation continues.

        part: the layer or model that has computed the value
        name: see the list in `nn/observer.py`
        """
        return value

    def attend(self, inputs: AttentionInputs) -> Tensor | None:
        """Receive the inputs of an attention module.

        Return the context (B, T, C) with which the computation continues. None: the context that
        the module computes.
        """
        return None


class _ThreadObserver(threading.local):
    """The observer of a thread.

    is_set: True if there is an observer. torch.compile guards the variables that code reads, and it
            can guard a boolean, but not an object of any class
    """

    is_set = False
    observer: Observer | None = None


_active = _ThreadObserver()


def current_observer() -> Observer | None:
    """Return the observer of this thread. None: values need not be reported."""
    if not _active.is_set or torch.compiler.is_compiling():
        return None
    return _active.observer


def observe(part: nn.Module, name: str, value: Tensor) -> Tensor:
    """Report a value to the observer, if there is one. Return the value to continue with."""
    # `current_observer` is not called here: a step calls this function several times.
    if not _active.is_set or torch.compiler.is_compiling():
        return value
    assert _active.observer is not None
    return _active.observer.observe(part, name, value)


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Report the values of all passes of this thread to the observer, inside the `with` block."""
    outer = _active.observer
    _active.observer, _active.is_set = observer, True
    try:
        yield
    finally:
        _active.observer, _active.is_set = outer, outer is not None
