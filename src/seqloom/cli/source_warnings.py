"""Prints warnings about input lines and their outputs.

They are about characters and words that the vocabulary does not contain, parts of the input that
seqloom inserted into the output, numbers missing in the output, empty outputs, and missing glossary
phrases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqloom.cli.output import print_warning

if TYPE_CHECKING:
    from seqloom.runs.prediction import Prediction
    from seqloom.runs.run import Run


class SourceWarnings:
    """Collects the warnings of all outputs, and prints a summary of them at the end."""

    def __init__(self, run: Run, first_line: int = 0) -> None:
        """`first_line` is the number of input lines before the first output that is added."""
        from seqloom.runs.texts.input_reports import InputReport

        tokenizer = run.task.source_tokenizer
        self._report = InputReport(
            "word" if tokenizer is None else tokenizer.unknown_unit, total=first_line
        )

    def add(self, output: Prediction) -> None:
        """Add the best output of the next line."""
        self._report.add(output)

    def warn(self) -> None:
        """Print one warning for each kind of problem."""
        for message in self._report.messages():
            print_warning(message)
