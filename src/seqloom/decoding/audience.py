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
from seqloom.models.interface import Memory, State, Step
from seqloom.text.vocabulary import END


class Audience(Protocol):
    """Who waits for the outputs of inputs, each called by its number."""

    def gone(self, number: int) -> bool:
        """Does nobody wait for this input's output any more?"""
        ...

    def listens(self, number: int) -> bool:
        """Does somebody want to hear the tokens of this input's output?"""
        ...

    def hear(self, number: int, token: int, log_probability: float) -> None:
        """This token was decided. The last one may come with the output alone."""
        ...


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

    def start(
        self, memory: Memory, steps: int, *, watched: bool = True, static: bool = False
    ) -> State:
        """The decoder's own state. Beside it: which sources are left, and nothing said yet."""
        assert not static, "a step that is recorded and replayed asks nobody"
        state = self.decoder.start(memory, steps, watched=watched)
        sources = torch.arange(memory.mask.shape[0], device=memory.mask.device)
        unsaid = (None, torch.zeros_like(sources, dtype=torch.bool))
        return replace(state, fixed=(state.fixed, sources), moving=(state.moving, unsaid))

    def step(self, tokens: Tensor, state: State) -> Step:
        """The decoder's own step, which ends the outputs that nobody waits for."""
        fixed, sources = state.fixed
        moving, (before, ended) = state.moving
        left = sources.tolist()
        ended = ended | (tokens == END)
        if before is not None:
            self._tell(left, tokens, before, state.position, ended)
        step = self.decoder.step(tokens, replace(state, fixed=fixed, moving=moving))
        numbers = [self.numbers[source] for source in left]
        logits = _only_end(step.logits, [self.audience.gone(number) for number in numbers])
        said = (logits if any(map(self.audience.listens, numbers)) else None, ended)
        after = replace(
            step.state, fixed=(step.state.fixed, sources), moving=(step.state.moving, said)
        )
        return replace(step, logits=logits, state=after)

    def _tell(
        self,
        left: Sequence[int],
        tokens: Tensor,
        before: Tensor,
        position: int | Tensor,
        ended: Tensor,
    ) -> None:
        """Each token that was chosen by the logits before. Outputs that are done are carried along
        for a while, and silent."""
        if len(tokens) != len(left):
            return  # several hypotheses of each source: nothing is decided before the end
        chosen, done = tokens.tolist(), ended.tolist()
        for row, source in enumerate(left):
            number = self.numbers[source]
            silent = done[row] or position > self.limits[source]
            if not silent and self.audience.listens(number):
                likely = log_softmax(before[row : row + 1])[0, chosen[row]]
                self.audience.hear(number, chosen[row], float(likely))


def _only_end(logits: Tensor, gone: Sequence[bool]) -> Tensor:
    """(R, V) logits, in which END is all that the rows of sources that are gone can put out."""
    if not any(gone):
        return logits
    rows = torch.tensor(gone, device=logits.device)
    rows = rows.repeat_interleave(len(logits) // len(gone))
    ended = logits.masked_fill(rows.unsqueeze(1), float("-inf"))
    ended[rows, END] = 0.0
    return ended
