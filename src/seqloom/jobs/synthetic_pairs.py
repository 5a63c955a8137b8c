"""Synthetic training pairs: a text and its translation by a model.

Back-translation (Sennrich et al. 2016) translates text of the target language with a run for the
opposite direction. The pair consists of the synthetic source and the real target.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from seqloom.inference.prediction import Prediction

Side = Literal["source", "target"]

BLANK = "the line is blank"
EMPTY = "the output is empty"
TRUNCATED = "the output reached the length limit"
COPY = "the output is a copy of the line"
RATIO = "one side has more than {ratio:g} times as many characters as the other"


@dataclass
class SyntheticPairs:
    """Makes training pairs from texts and their translations. Leaves out unusable pairs.

    side:      "target" if the text is the target of a pair and its translation is the source
               (back-translation). "source" if the text is the source.
    tag:       a string in front of each synthetic source, which lets a model treat synthetic pairs
               differently from real ones (Caswell et al. 2019). Empty: no tag
    max_ratio: a pair is left out if one side has more than `max_ratio` times as many characters as
               the other
    pairs:     number of pairs made
    left_out:  number of texts that were left out, by reason
    """

    side: Side = "target"
    tag: str = ""
    max_ratio: float = 4.0
    pairs: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def make(self, text: str, prediction: Prediction) -> tuple[str, str] | None:
        """Return the source and the target of a training pair; None if the pair is unusable."""
        # A tab separates the columns of a TSV file, so it becomes a space.
        real, synthetic = " ".join(text.split()), " ".join(prediction.text.split())
        reason = self._reason_to_leave_out(real, synthetic, prediction)
        if reason is not None:
            self.left_out[reason] += 1
            return None
        self.pairs += 1
        if self.side == "source":
            return real, synthetic
        return f"{self.tag} {synthetic}".strip(), real

    def _reason_to_leave_out(self, real: str, synthetic: str, prediction: Prediction) -> str | None:
        if not real:
            return BLANK
        if not synthetic:
            return EMPTY
        if not prediction.finished:
            return TRUNCATED
        if real.casefold() == synthetic.casefold():
            return COPY
        lengths = sorted((len(real), len(synthetic)))
        if lengths[1] > self.max_ratio * lengths[0]:
            return RATIO.format(ratio=self.max_ratio)
        return None
