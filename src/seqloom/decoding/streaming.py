"""Streaming and cancellation: reports tokens while a search runs, and ends cancelled outputs.

Searches are not involved: they see an ordinary decoder, and `StreamingDecoder` wraps the real one.
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
    """Receives the tokens of outputs as they are generated. Inputs are identified by an index."""

    def is_cancelled(self, index: int) -> bool:
        """True if the output of this input is no longer needed."""
        ...

    def is_streaming(self, index: int) -> bool:
        """True if `on_token` should be called for this input."""
        ...

    def on_token(self, index: int, position: int, token: int, log_probability: float) -> None:
        """Called for each generated token; the first token of an output has position 1.

        The last token of an output may be missing. If a search is repeated, for example after it
        ran out of memory, the tokens are reported again.
        """
        ...


@dataclass(frozen=True)
class StreamedSources:
    """`fixed` of the wrapped decoder, and the index in the batch of each remaining source."""

    fixed: Rows
    indices: tuple[int, ...]

    def select(self, rows: Tensor) -> "StreamedSources":
        return StreamedSources(
            self.fixed.select(rows), tuple(self.indices[row] for row in rows.tolist())
        )


@dataclass(frozen=True)
class StreamedRows:
    """`moving` of the wrapped decoder, and the values needed to report the next token of each row.

    logits:   (R, V) of the last step; None if no input is streaming
    finished: (R,) True for rows that have generated END
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

    A cancelled output ends at the next step, because END becomes its only possible token. It then
    leaves the batch like any other finished output.

    input_indices: index of each source, for the callback
    max_lengths:   maximum number of tokens of each output, END included
    """

    decoder: StepDecoder
    callback: StreamingCallback
    input_indices: Sequence[int]
    max_lengths: Sequence[int]

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        """The state of the wrapped decoder, extended by what streaming needs."""
        state = self.decoder.start(memory, max_steps, need_attention=need_attention)
        batch_indices = tuple(range(len(self.input_indices)))
        fixed = StreamedSources(state.fixed, batch_indices)
        return replace(state, fixed=fixed, moving=StreamedRows(state.moving))

    def step(self, tokens: Tensor, state: State) -> Step:
        """The step of the wrapped decoder. Reports `tokens` and ends cancelled outputs."""
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
        """Report the token of each row, which was chosen by the logits (R, V) of the last step.

        Finished outputs stay in the batch for some steps; their tokens are not reported.
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
    """Logits (R, V) in which END is the only possible token of cancelled sources."""
    if not any(cancelled):
        return logits
    rows = torch.tensor(cancelled, device=logits.device)
    rows = rows.repeat_interleave(len(logits) // len(cancelled))
    new_logits = logits.masked_fill(rows.unsqueeze(1), float("-inf"))
    new_logits[rows, END] = 0.0
    return new_logits
