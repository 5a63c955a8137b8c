"""The warning about texts without a tag, for runs whose task is chosen by a tag in the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seqloom.cli.output import print_warning

if TYPE_CHECKING:
    from seqloom.runs.run import Run


@dataclass
class MissingTags:
    """Counts the lines without a tag over all portions of the input.

    numbers: the numbers of these lines, counted from 1
    total:   the number of all lines
    """

    run: Run
    numbers: list[int] = field(default_factory=list)
    total: int = 0

    def add(self, texts: Sequence[str]) -> None:
        """Count the next lines."""
        missing = self.run.source_tags.missing(texts)
        self.numbers += [self.total + index + 1 for index in missing]
        self.total += len(texts)

    def warn(self) -> None:
        """Print one warning if there were lines without a tag."""
        if self.numbers:
            print_warning(self.run.source_tags.warning(self.numbers, self.total))


def warn_about_missing_tags(run: Run, texts: Sequence[str]) -> None:
    """Print a warning if one of the texts has no tag, but the run has tags."""
    for warning in run.source_tags.warnings(texts, "text"):
        print_warning(warning)
