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
    group:      the group for which scores are computed. If no corpus of the split has a name or a
                tag, there are no groups, and this is "". Otherwise, it is the name of the corpus;
                if the corpus has no name, its tag; if it has neither, its table in the recipe, such
                as "data.train[1]"
    tag:        the tag at the start of the source; "" if there is none
    corpus:     the group for temperature sampling. It equals `group`, with one exception: if
                `group` is "" and the split has several corpora, it is the table of the corpus in
                the recipe
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
    advice:  what to do. Lines with similar problems have the same advice. Default: empty
    """

    where: str
    problem: str
    advice: str = ""

    def __str__(self) -> str:
        advice = f"; {self.advice}" if self.advice else ""
        return f"{self.where}: {self.problem}{advice}"
