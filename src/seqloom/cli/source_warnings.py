"""Prints warnings about input lines and their outputs.

The warnings are about:

- characters and words that the vocabulary does not contain
- parts of the input that the model left out and seqloom inserted into the output
- numbers and glossary phrases that are missing in the output
- empty outputs
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqloom.cli.output import print_warning

if TYPE_CHECKING:
    from seqloom.inference.prediction import Prediction
    from seqloom.inference.run import Run


class SourceWarnings:
    """Collects warnings about all inputs and outputs, such as characters that the vocabulary does
    not contain. Prints a summary of them at the end."""

    def __init__(self, run: Run, first_line: int = 0) -> None:
        """
        first_line: number of input lines that are skipped, because an earlier command has already
                    processed them
        """
        from seqloom.inference.texts.input_reports import InputReport

        tokenizer = run.task.source_tokenizer
        self._report = InputReport(
            "word" if tokenizer is None else tokenizer.unknown_unit, total=first_line
        )

    def add(self, output: Prediction) -> None:
        """Collect the warnings about the output for the next input line."""
        self._report.add(output)

    def warn(self) -> None:
        """Print one warning for each kind of problem."""
        for message in self._report.messages():
            print_warning(message)
