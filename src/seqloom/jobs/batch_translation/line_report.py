"""Warnings about input lines and their outputs."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run
from seqloom.inference.source_tags import SourceTags
from seqloom.inference.texts.input_reports import InputReport, Problem

MAX_LISTED_LINES = 5
"""Maximum number of line numbers in the warning about truncated outputs."""


@dataclass
class LineReport:
    """The lines that need a warning. Line numbers are counted from 1.

    tags:         the tags of the run, one of which each source line should contain
    inputs:       problems such as unknown words in the source, with their line numbers
    total:        number of translated lines
    missing_tags: numbers of the source lines that contain no tag, although the run expects one of
                  its tags, such as <U>, in every line
    truncated:    numbers of the lines whose output reached the length limit
    """

    tags: SourceTags
    inputs: InputReport
    total: int = 0
    missing_tags: list[int] = field(default_factory=list)
    truncated: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, run: Run, first: int = 0) -> "LineReport":
        """Return an empty report about lines that a run translates.

        first: number of lines before the first line of this report
        """
        tokenizer = run.task.source_tokenizer
        unknown_unit = "word" if tokenizer is None else tokenizer.unknown_unit
        return cls(run.source_tags, InputReport(unknown_unit, total=first))

    def add_lines(self, texts: Sequence[str], outputs: Sequence[Prediction]) -> None:
        """Add the next lines and the best output of each."""
        first = self.inputs.total + 1
        self.missing_tags += [first + index for index in self.tags.missing(texts)]
        for number, output in enumerate(outputs, first):
            self.inputs.add(output)
            if not output.finished:
                self.truncated.append(number)
        self.total += len(texts)

    def add(self, other: "LineReport") -> None:
        """Add the contents of a report about other lines of the same file."""
        self.total += other.total
        self.inputs.total = self.total
        self.missing_tags += other.missing_tags
        self.truncated += other.truncated
        for kind, problem in other.inputs.problems.items():
            sum_of_blocks = self.inputs.problems.setdefault(kind, Problem())
            sum_of_blocks.numbers += problem.numbers
            sum_of_blocks.parts.update(problem.parts)

    def messages(self) -> list[str]:
        """Return one warning for each kind of problem."""
        messages = []
        if self.missing_tags:
            messages.append(self.tags.warning(self.missing_tags, self.inputs.total))
        messages += self.inputs.messages()
        if self.truncated:
            listed = ", ".join(map(str, self.truncated[:MAX_LISTED_LINES]))
            more = ", …" if len(self.truncated) > MAX_LISTED_LINES else ""
            messages.append(
                f"{len(self.truncated):,} of {self.total:,} outputs reached the length limit "
                f"(line {listed}{more}). Raise it with --set decoding.max_length=…"
            )
        return messages
