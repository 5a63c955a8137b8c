"""The command `seqloom translate`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.options import (
    Engine,
    EngineSettings,
    EnsembleMembers,
    Json,
    RunFolder,
    argument,
    flag,
    option,
)
from seqloom.cli.output import print_warning, print_warnings
from seqloom.cli.parameters.prediction_options import with_prediction_options
from seqloom.cli.process.interrupts import current_command, set_interruption_message
from seqloom.cli.process.line_output import translate_lines
from seqloom.inference.options import DEFAULT_OPTIONS, PredictionOptions

Scores = Annotated[bool, flag("--scores", "Print the score after each translation.")]
Alignments = Annotated[
    bool, flag("--alignments", "Print the word alignment (0-0 1-2) after each translation.")
]
Through = Annotated[
    str | None,
    option("LANGUAGE", "With --to: translate to this pivot language first.", advanced=True),
]


@with_prediction_options("translate")
def translate(
    context: typer.Context,
    run_folder: RunFolder,
    files: Annotated[
        list[Path] | None,
        argument(
            "[FILE]...",
            "Text files with one text per line. - is standard input. Default: standard input.",
        ),
    ] = None,
    options: PredictionOptions = DEFAULT_OPTIONS,
    scores: Scores = False,
    alignments: Alignments = False,
    json: Json = False,
    output: Annotated[
        Path | None,
        option(
            "FILE",
            "Write to this file instead of standard output. Until it is complete, its name is "
            "FILE.partial. If the command is interrupted, the same command continues it, unless "
            "the input is standard input.",
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        flag(
            "--overwrite",
            "With --output: replace an existing file, and discard an unfinished one.",
        ),
    ] = False,
    settings: EngineSettings = None,
    through: Through = None,
    engine: Engine = None,
    ensemble: EnsembleMembers = None,
) -> None:
    """Translate text: one output line for each input line, in the same order.

    Blank lines stay blank. A line can have several sentences. With --n-best N, the format of a line is
    `id ||| translation ||| log-probabilities ||| score`.
    """
    if overwrite and output is None:
        raise typer.BadParameter("--overwrite requires --output, the file to replace.")
    options = with_pivot(options, through)
    set_interruption_message(
        lambda: f"Interrupted before the first translation. To repeat it, run: {current_command()}"
    )

    from seqloom.cli.engine import load_translator
    from seqloom.cli.inputs import check_text_files
    from seqloom.jobs.batch_translation.output_file import OutputFile
    from seqloom.jobs.batch_translation.output_lines import TranslationFormatter

    formatter = TranslationFormatter(
        options.n_best, scores=scores, alignments=alignments, json=json
    )
    check_text_files(files)
    output_file = None if output is None else OutputFile(output)
    if output_file is not None:
        output_file.check(files or (), overwrite)
    translator = load_translator(
        [run_folder, *(ensemble or ())],
        settings,
        options,
        engine,
        attention=alignments,
        probabilities=formatter.probabilities,
    )
    if alignments and translator.run.heads_note:
        print_warning(translator.run.heads_note)
    report = translate_lines(
        context, translator, files, output_file, formatter.lines, overwrite=overwrite
    )
    print_warnings(report.messages())


def with_pivot(options: PredictionOptions, through: str | None) -> PredictionOptions:
    """Return the options with the pivot language that --through gives."""
    if through is None:
        return options
    if options.to is None:
        raise typer.BadParameter("--through requires --to, the final target language.")
    return replace(options, to=[through, str(options.to)])
