"""Inputs that travel together: what is asked for each, and who waits for the answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seqloom.decoding.audience import Attended, Audience
from seqloom.decoding.search import Request, Stepper
from seqloom.runs.fitting import halved
from seqloom.tasks.task import ModelInput


def _nobody_counts(done: int, of: int) -> None:
    """Told how many inputs of how many are done, and does not care."""


@dataclass(frozen=True)
class Askers:
    """Of inputs that are answered together, and may be of many people.

    numbers:  of each input in its asker's own list: a sample depends on it
    advance:  told how many inputs of how many are done; may raise to stop
    audience: where somebody may leave, or wants to hear every token; it calls an input by its
              place here
    """

    numbers: Sequence[int]
    advance: Callable[[int, int], None] = _nobody_counts
    audience: Audience | None = None

    def attended(self, decoder: Stepper, inputs: Sequence[int], limits: Sequence[int]) -> Stepper:
        """The decoder, heard by those who wait for these inputs, if anybody does.

        limits: tokens that each output may have
        """
        if self.audience is None:
            return decoder
        return Attended(decoder, self.audience, inputs, limits)


@dataclass(frozen=True)
class Asked:
    """Some inputs, their numbers among all there are, and what is wanted for each of them."""

    batch: Sequence[ModelInput]
    inputs: Sequence[int]
    request: Request

    def only(self, places: Sequence[int]) -> "Asked":
        batch = [self.batch[place] for place in places]
        inputs = [self.inputs[place] for place in places]
        return Asked(batch, inputs, self.request.only(places))

    def halves(self) -> list["Asked"]:
        return [self.only(half) for half in halved(list(range(len(self.batch))))]
