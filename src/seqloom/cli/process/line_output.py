"""Translates input lines and writes the outputs to stdout, or to a file that can be continued."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import typer

from seqloom.cli.output import flush_output, print_line, print_message
from seqloom.cli.process.interrupts import current_command, set_interruption_message
from seqloom.cli.process.progress import count_lines, portion_progress, progress_bar

if TYPE_CHECKING:
    from seqloom.cli.engine import Translator
    from seqloom.inference.prediction import Prediction
    from seqloom.jobs.batch_translation.line_report import LineReport
    from seqloom.jobs.batch_translation.output_file import OutputFile
    from seqloom.jobs.batch_translation.request import TranslationRequest

NOT_IN_REQUEST = (
    *("run_folder", "files", "ensemble", "patterns", "output", "overwrite", "glossary"),
    *("workers", "shard", "ray", "threads", "device", "quiet"),
)
"""Parameters that are not among the "options" of a request.

They do not change the outputs, or the request stores them in another form, for example as digests.
"""


class OutputLines(Protocol):
    """Interface of the objects that write the output line by line.

    finished: number of input lines whose output is complete
    """

    finished: int

    def write(self, line: str) -> None: ...

    def end_portion(self, finished: int) -> None:
        """Store the lines written since the last call.

        finished: number of input lines whose output is complete
        """
        ...


class StdoutLines:
    """Writes the output to stdout."""

    def __init__(self) -> None:
        self.finished = 0

    def write(self, line: str) -> None:
        print_line(line)

    def end_portion(self, finished: int) -> None:
        flush_output()
        self.finished = finished


LineWriter = Callable[[int, str, "Sequence[Prediction]"], Iterable[str]]
"""Returns the output lines of an input line. Arguments: the number of earlier input lines, the input
line and its outputs."""


def translate_lines(
    context: typer.Context,
    translator: Translator,
    files: Sequence[Path] | None,
    output: OutputFile | None,
    make_lines: LineWriter,
    *,
    overwrite: bool,
) -> LineReport:
    """Translate the lines of the files, and write the output lines to a file or to stdout.

    An unfinished output file is continued if an earlier command had the same request. Returns a
    report about the lines that this command translated.

    files:      input files. None: standard input
    output:     output file. None: standard output
    make_lines: returns the output lines of an input line
    """
    from seqloom.cli.inputs import read_portions, skip_lines
    from seqloom.jobs.batch_translation.line_report import LineReport
    from seqloom.jobs.batch_translation.output_file import open_output_file

    run, options = translator.run, translator.options
    target: AbstractContextManager[OutputLines] = nullcontext(StdoutLines())
    if output is not None:
        request = line_request(context, translator, files)
        if request is None:
            print_message(
                "The input is standard input, so this translation cannot be continued after an "
                "interruption. To be able to continue it, give an input file."
            )
        target = open_output_file(output, request, overwrite)
    prints = output is None
    with target as lines, progress_bar("translating", "lines", prints=prints) as show:
        set_interruption_message(lambda: _interruption_message(lines, output, files))
        total = count_lines(files, prints=prints)
        first = number = lines.finished
        if first and output is not None:
            print_message(f"{output.path}: continues after line {first:,} of the input.")
        report = LineReport.of(run, first)
        for texts in skip_lines(read_portions(files, run.predictor.device.type), first):
            outputs = run.predict(
                texts,
                replace(options, first=number),
                progress=portion_progress(show, number, total),
            )
            for text, predictions in zip(texts, outputs, strict=True):
                for line in make_lines(number, text, predictions):
                    lines.write(line)
                number += 1
            report.add_lines(texts, [predictions[0] for predictions in outputs])
            lines.end_portion(number)
            show(number, total)
    return report


def line_request(
    context: typer.Context, translator: Translator, files: Sequence[Path] | None
) -> TranslationRequest | None:
    """Return everything that determines the output: runs, input files, options and versions.

    Runs, input files and the glossary are represented by digests of their contents. Returns None if
    the input includes standard input, which cannot be read again.
    """
    from seqloom.cli.inputs import STDIN
    from seqloom.data.corpus.digests import file_digest

    if not files or STDIN in files:
        return None
    return make_request(context, translator, [file_digest(path) for path in files], "portion")


def make_request(
    context: typer.Context, translator: Translator, input_files: Any, portion: str
) -> TranslationRequest:
    """Return a dictionary of everything that determines the outputs.

    A command can continue the unfinished output of an earlier command only if this dictionary is
    the same for both.

    input_files: what identifies the contents of the input files
    portion:     name of the group of lines that are decoded together
    """
    from seqloom import __version__
    from seqloom.data.corpus.digests import file_digest
    from seqloom.jobs.batch_translation.portions import portion_lines
    from seqloom.runs.bundle import run_digest

    run = translator.run
    glossary: Path | None = context.params.get("glossary")
    count = portion_lines(run.predictor.device.type)
    return {
        "runs": [run_digest(folder) for folder in (run.folder, *run.partners)],
        "input files": input_files,
        "options": {
            parameter.opts[0]: context.params[parameter.name]
            for parameter in context.command.params
            if parameter.name in context.params and parameter.name not in NOT_IN_REQUEST
        },
        **({} if glossary is None else {"glossary": file_digest(glossary)}),
        "engine": translator.engine,
        "seqloom version": f"{__version__}, {count} lines per {portion}",
    }


def _interruption_message(
    lines: OutputLines, output: OutputFile | None, files: Sequence[Path] | None
) -> str:
    """Return the message about Ctrl-C: how many lines are written, where, and how to continue."""
    from seqloom.cli.inputs import STDIN

    count = f"the translations of the first {lines.finished:,} input lines"
    if output is None:
        return (
            f"Interrupted. Standard output has {count}. To be able to continue, give input files "
            "and write to a file with --output FILE."
        )
    if not files or STDIN in files:
        return (
            f"Interrupted. {output.partial} has {count}. A translation of standard input cannot be "
            "continued. To start again, add --overwrite."
        )
    command = current_command(without="--overwrite")
    return f"Interrupted. {output.partial} has {count}. To continue, run: {command}"
