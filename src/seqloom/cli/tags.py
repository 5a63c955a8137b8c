"""Prints a warning about source texts without a tag.

A tag is a string such as <U> in the source text. It tells the model what to do with the text. The
setting `text.tags` lists the tags of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seqloom.cli.output import print_warning

if TYPE_CHECKING:
    from seqloom.inference.run import Run


@dataclass
class MissingTags:
    """Collects the numbers of the input lines without a tag, for one warning at the end.

    numbers: the numbers of the lines without a tag, counted from 1
    total:   the number of all lines so far
    """

    run: Run
    numbers: list[int] = field(default_factory=list)
    total: int = 0

    def add(self, texts: Sequence[str]) -> None:
        """Find the lines without a tag among the next input lines, and store their numbers."""
        missing = self.run.source_tags.missing(texts)
        self.numbers += [self.total + index + 1 for index in missing]
        self.total += len(texts)

    def warn(self) -> None:
        """Print one warning if there were lines without a tag."""
        if self.numbers:
            print_warning(self.run.source_tags.warning(self.numbers, self.total))


def warn_about_missing_tags(run: Run, texts: Sequence[str]) -> None:
    """If the run has tags, print a warning about the texts that contain none of them."""
    for warning in run.source_tags.warnings(texts, "text"):
        print_warning(warning)
