"""Streaming and cancellation: reports tokens while a search runs, and ends cancelled outputs.

`StreamingDecoder` wraps a decoder and does both, so the search algorithms need no extra code.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from seqloom.decoding.search import StepDecoder, log_softmax
from seqloom.models.interface import Memory, Rows, State, Step
from seqloom.text.vocabulary import END


class StreamingCallback(Protocol):
    """Receives output tokens as they are generated. `index` identifies the input to which an output
    belongs."""

    def is_cancelled(self, index: int) -> bool:
        """Return True if the output for this input is no longer needed."""
        ...

    def is_streaming(self, index: int) -> bool:
        """Return True if `on_token` should be called for this input."""
        ...

    def on_token(self, index: int, position: int, token: int, log_probability: float) -> None:
        """Called for each generated token except END. The first token has position 1.

        Not called if the search keeps several hypotheses per source.

        A token is reported when the next decoder step begins. If an output reaches its maximum
        length, there may be no next step. Its last token is then not reported.

        If a search is repeated, for example after it ran out of memory, its tokens are reported
        again.
        """
        ...


@dataclass(frozen=True)
class StreamedSources:
    """The part of the state of a `StreamingDecoder` with one row per source (`State.fixed`).

    A `StreamingDecoder` wraps another decoder and reports its tokens. A search drops finished
    sources from the batch, so `indices` tells which sources remain.

    fixed:   `State.fixed` of the wrapped decoder
    indices: for each remaining source, its index in the original batch
    """

    fixed: Rows
    indices: tuple[int, ...]

    def select(self, rows: Tensor) -> "StreamedSources":
        return StreamedSources(
            self.fixed.select(rows), tuple(self.indices[row] for row in rows.tolist())
        )


@dataclass(frozen=True)
class StreamedRows:
    """The part of the state of a `StreamingDecoder` with one row per hypothesis (`State.moving`).

    A `StreamingDecoder` wraps another decoder and reports its tokens. If no token has to be
    reported, `logits` and `finished` are None.

    moving:   `State.moving` of the wrapped decoder
    logits:   (R, V) logits of the previous step
    finished: (R,) True for hypotheses that have generated END
    """

    moving: Rows
    logits: Tensor | None = None
    finished: Tensor | None = None

    def select(self, rows: Tensor) -> "StreamedRows":
        return StreamedRows(
            self.moving.select(rows),
            None if self.logits is None else self.logits.index_select(0, rows),
            None if self.finished is None else self.finished.index_select(0, rows),
        )


@dataclass(frozen=True)
class StreamingDecoder:
    """A decoder that reports generated tokens to a callback and supports cancellation.

    For a cancelled output, END becomes the only possible token. The output therefore ends at the
    next step, and the search removes it from the batch like any other finished output.

    input_indices: for each source, the index that is passed to the callback
    max_lengths:   maximum number of output tokens of each source, END included
    """

    decoder: StepDecoder
    callback: StreamingCallback
    input_indices: Sequence[int]
    max_lengths: Sequence[int]

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        """Start the wrapped decoder. The state also contains the values that streaming needs."""
        state = self.decoder.start(memory, max_steps, need_attention=need_attention)
        batch_indices = tuple(range(len(self.input_indices)))
        fixed = StreamedSources(state.fixed, batch_indices)
        return replace(state, fixed=fixed, moving=StreamedRows(state.moving))

    def step(self, tokens: Tensor, state: State) -> Step:
        """Report `tokens` to the callback, then run a step of the wrapped decoder.

        For cancelled outputs, the returned logits allow only END.
        """
        sources: StreamedSources = state.fixed
        rows: StreamedRows = state.moving
        finished = torch.zeros_like(tokens, dtype=torch.bool)
        if rows.logits is not None and rows.finished is not None:
            finished = rows.finished | (tokens == END)
            self._report(sources.indices, tokens, rows.logits, finished, state.position)
        step = self.decoder.step(tokens, replace(state, fixed=sources.fixed, moving=rows.moving))
        inputs = [self.input_indices[source] for source in sources.indices]
        cancelled = [self.callback.is_cancelled(index) for index in inputs]
        logits = _end_cancelled(step.logits, cancelled)
        report = (logits, finished) if any(map(self.callback.is_streaming, inputs)) else ()
        new_state = replace(
            step.state,
            fixed=StreamedSources(step.state.fixed, sources.indices),
            moving=StreamedRows(step.state.moving, *report),
        )
        return replace(step, logits=logits, state=new_state)

    def _report(
        self,
        sources: Sequence[int],
        tokens: Tensor,
        logits: Tensor,
        finished: Tensor,
        position: int | Tensor,
    ) -> None:
        """Pass the newest token of each row (hypothesis) to the callback.

        Does nothing if a source has several rows.

        tokens:   (R,) the newest tokens
        sources:  for each source that is still in the batch, its index in the original batch
        logits:   (R, V) logits of the previous step, from which the search chose the token
        finished: (R,) True for rows that have generated END. They may stay in the batch for some
                  steps, but their tokens are not reported
        position: number of tokens generated so far
        """
        if len(tokens) != len(sources):
            return  # With several hypotheses per source, no token is final before the end.
        row_tokens, row_finished = tokens.tolist(), finished.tolist()
        for row, source in enumerate(sources):
            index, token = self.input_indices[source], row_tokens[row]
            is_over = row_finished[row] or position > self.max_lengths[source]
            if not is_over and self.callback.is_streaming(index):
                log_probability = log_softmax(logits[row : row + 1])[0, token]
                self.callback.on_token(index, int(position), token, float(log_probability))


def _end_cancelled(logits: Tensor, cancelled: Sequence[bool]) -> Tensor:
    """Return logits (R, V) that allow only END in the rows of cancelled sources."""
    if not any(cancelled):
        return logits
    rows = torch.tensor(cancelled, device=logits.device)
    rows = rows.repeat_interleave(len(logits) // len(cancelled))
    new_logits = logits.masked_fill(rows.unsqueeze(1), float("-inf"))
    new_logits[rows, END] = 0.0
    return new_logits
