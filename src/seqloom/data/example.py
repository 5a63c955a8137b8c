"""Example: one source and its target, as plain text. InvalidLine: a line that is not an example."""

from dataclasses import dataclass
from typing import Literal

Split = Literal["train", "dev", "test"]
REPLAY_GROUP = "replay of the parent's data"
"""Value of `Example.group` for replayed examples: examples of the parent's training data that
fine-tuning adds to the new training data. The parent is the run from which fine-tuning starts."""


# Do not change an example. The class is not frozen, because creating a frozen one takes three times as
# long, which is 5 % of the time to prepare a corpus.
@dataclass(slots=True, unsafe_hash=True)
class Example:
    """One source-target pair as read from the data, before tokenisation.

    source:     the input text, the path of an image, or a sequence of vectors written as text (see
                `readers/frames.py`); "" for data without sources. If the corpus has a tag, the
                source starts with the tag: "<2de> A dog runs."
    target:     the output text to train on
    references: all outputs that count as correct when scoring, the target first
    where:      file:line, for error messages
    group:      the name of the corpus or, without a name, its tag, for scores by group. A corpus
                with neither has the group "" if no corpus of the split has a name or a tag,
                otherwise the name of its table in the recipe, such as "data.train[1]"
    tag:        the tag at the start of the source; "" if there is none
    corpus:     identifies the corpus of the example, for data.temperature. It equals `group`. If
                `group` is "", it is the table of the corpus in the recipe; "" if the split has only
                one corpus
    """

    source: str
    target: str
    references: tuple[str, ...]
    where: str
    group: str = ""
    tag: str = ""
    corpus: str = ""


@dataclass(frozen=True, slots=True)
class InvalidLine:
    """A line of a data file that cannot be used.

    where:   file:line
    problem: what is wrong with the line
    advice:  what to do; the same for similar lines. Default: empty
    """

    where: str
    problem: str
    advice: str = ""

    def __str__(self) -> str:
        advice = f"; {self.advice}" if self.advice else ""
        return f"{self.where}: {self.problem}{advice}"
