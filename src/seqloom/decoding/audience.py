"""Audience: those who wait for outputs while a search is under way.

Somebody may leave before the search is done, and somebody may want to hear every token as it is
decided. Neither is a search's business: it sees a decoder, and this one listens to both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from seqloom.decoding.search import Stepper, log_softmax
from seqloom.models.interface import Memory, Rows, State, Step
from seqloom.text.vocabulary import END


class Audience(Protocol):
    """Who waits for the outputs of inputs, each called by its number."""

    def gone(self, number: int) -> bool:
        """Does nobody wait for this input's output any more?"""
        ...

    def listens(self, number: int) -> bool:
        """Does somebody want to hear the tokens of this input's output?"""
        ...

    def hear(self, number: int, place: int, token: int, log_probability: float) -> None:
        """This token was decided, the first of an output being at place 1. The last one may come
        with the output alone; a search that has to be done again tells all of them again."""
        ...


@dataclass(frozen=True)
class StreamedSources:
    """The decoder's own `fixed`, and the index in the batch of each remaining source."""

    fixed: Rows
    indices: tuple[int, ...]

    def select(self, rows: Tensor) -> "StreamedSources":
        return StreamedSources(
            self.fixed.select(rows), tuple(self.indices[row] for row in rows.tolist())
        )


@dataclass(frozen=True)
class StreamedRows:
    """The decoder's own `moving`, and what is needed to report the next token of each row.

    logits:   (R, V) of the last step; None if no callback listens
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
class Attended:
    """A decoder with an audience.

    An output that nobody waits for any more ends at the next step: END is made its only token. So
    it leaves the batch as every finished output does, and no search needs to know.

    numbers: what the audience calls each source
    limits:  tokens that each output may have, END included
    """

    decoder: Stepper
    audience: Audience
    numbers: Sequence[int]
    limits: Sequence[int]

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        """The state of the wrapped decoder, extended by what streaming needs."""
        state = self.decoder.start(memory, max_steps, need_attention=need_attention)
        indices = tuple(range(len(self.numbers)))
        fixed = StreamedSources(state.fixed, indices)
        return replace(state, fixed=fixed, moving=StreamedRows(state.moving))

    def step(self, tokens: Tensor, state: State) -> Step:
        """The decoder's own step, which ends the outputs that nobody waits for."""
        sources: StreamedSources = state.fixed
        rows: StreamedRows = state.moving
        ended = torch.zeros_like(tokens, dtype=torch.bool)
        if rows.logits is not None and rows.finished is not None:
            ended = rows.finished | (tokens == END)
            self._tell(sources.indices, tokens, rows.logits, ended, state.position)
        step = self.decoder.step(tokens, replace(state, fixed=sources.fixed, moving=rows.moving))
        numbers = [self.numbers[source] for source in sources.indices]
        logits = _only_end(step.logits, [self.audience.gone(number) for number in numbers])
        heard = any(map(self.audience.listens, numbers))
        after = replace(
            step.state,
            fixed=StreamedSources(step.state.fixed, sources.indices),
            moving=StreamedRows(step.state.moving, *((logits, ended) if heard else ())),
        )
        return replace(step, logits=logits, state=after)

    def _tell(
        self,
        sources: Sequence[int],
        tokens: Tensor,
        before: Tensor,
        ended: Tensor,
        position: int | Tensor,
    ) -> None:
        """Each token that was chosen by the logits before. Outputs that are done are carried along
        for a while, and silent."""
        if len(tokens) != len(sources):
            return  # several hypotheses of each source: nothing is decided before the end
        chosen, done = tokens.tolist(), ended.tolist()
        for row, source in enumerate(sources):
            number = self.numbers[source]
            silent = done[row] or position > self.limits[source]
            if not silent and self.audience.listens(number):
                likely = log_softmax(before[row : row + 1])[0, chosen[row]]
                self.audience.hear(number, int(position), chosen[row], float(likely))


def _only_end(logits: Tensor, gone: Sequence[bool]) -> Tensor:
    """(R, V) logits, in which END is all that the rows of sources that are gone can put out."""
    if not any(gone):
        return logits
    rows = torch.tensor(gone, device=logits.device)
    rows = rows.repeat_interleave(len(logits) // len(gone))
    ended = logits.masked_fill(rows.unsqueeze(1), float("-inf"))
    ended[rows, END] = 0.0
    return ended
