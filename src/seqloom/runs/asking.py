"""Askers: who waits for the answers to inputs that travel together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seqloom.decoding.audience import Attended, Audience
from seqloom.decoding.search import Stepper


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
