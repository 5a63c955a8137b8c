"""The command `seqloom augment`."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.options import Engine, EnsembleMembers, RunFolder
from seqloom.cli.output import print_message
from seqloom.cli.parameters.prediction_options import with_prediction_options
from seqloom.cli.process.interrupts import current_command, set_interruption_message
from seqloom.cli.process.progress import count_lines, portion_progress, progress_bar
from seqloom.cli.process.resumable_output import (
    OutputFile,
    interruption_message,
    open_output_file,
    output_request,
)
from seqloom.inference.options import DEFAULT_OPTIONS, PredictionOptions


class TextSide(StrEnum):
    """Whether the given text becomes the target or the source of the new pairs."""

    target = "target"
    source = "source"


@with_prediction_options("augment")
def augment(
    context: typer.Context,
    run_folder: RunFolder,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Text files with one sentence per line."),
    ],
    output: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="TSV file for the pairs: source, tab, target. If the command is interrupted, the "
            "same command continues it.",
        ),
    ],
    side: Annotated[
        TextSide,
        typer.Option(
            help="Side of the pairs on which the given text is placed. target: the translations "
            "become sources (back-translation), so the run must translate in the opposite "
            "direction. source: the translations become targets (self-training, distillation)."
        ),
    ] = TextSide.target,
    tag: Annotated[
        str,
        typer.Option(
            metavar="TAG",
            help="With --side target: a string in front of each synthetic source, for example "
            "'<BT>'. List it in text.tags of the recipe. Default: none.",
        ),
    ] = "",
    max_ratio: Annotated[
        float,
        typer.Option(
            metavar="X",
            min=1,
            help="Leave out pairs in which one side has more than X times as many characters as "
            "the other.",
        ),
    ] = 4.0,
    options: PredictionOptions = DEFAULT_OPTIONS,
    engine: Engine = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Override a decoding or engine setting, for example decoding.kind=sample. "
            "Can be repeated.",
        ),
    ] = None,
    ensemble: EnsembleMembers = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Replace an existing file, and discard an unfinished one."
        ),
    ] = False,
) -> None:
    """Make training pairs from text in one language, for example by back-translation.

    Translates each line, and writes the line and its translation as one row. Leaves out blank
    lines, and lines whose translation is empty, truncated, a copy of the line, or much longer or
    shorter than the line.
    """
    if tag and side is TextSide.source:
        raise typer.BadParameter("--tag marks synthetic sources, so it requires --side target.")
    if any(character.isspace() for character in tag):
        raise typer.BadParameter(f"--tag {tag!r}: a tag must not contain white space.")

    set_interruption_message(
        lambda: f"Interrupted before the first pair. To repeat it, run: {current_command()}"
    )

    from seqloom.cli.engine import prepare_engine
    from seqloom.cli.inputs import STDIN, check_files, read_portions, skip_lines
    from seqloom.cli.recipe_settings import change_recipe, load_run
    from seqloom.core.errors import ConfigError
    from seqloom.jobs.synthetic_pairs import SyntheticPairs

    if STDIN in files:
        raise ConfigError("augment reads files, not standard input. Write the text to a file.")
    check_files(files)
    output_file = OutputFile(output)
    output_file.check(files, overwrite)
    run, settings = load_run([run_folder, *(ensemble or ())], settings)
    config = change_recipe(
        run.config, settings, beam=options.beam, engine=engine, sections=("decoding", "engine")
    )
    run.engine = config.engine
    run.languages.path(options.to)  # reports an unknown language before any input is read
    options = replace(options, decoding=config.decoding, attention=False, probabilities="none")
    engine_choice = prepare_engine(run, options, config.decoding)
    engine_name = f"{engine_choice.name} on {run.predictor.device.type}"
    request = output_request(context, run, files, engine_name)

    pairs = SyntheticPairs(side.value, tag, max_ratio)
    with (
        open_output_file(output_file, request, overwrite) as lines,
        progress_bar("translating", "lines") as show,
    ):
        set_interruption_message(lambda: interruption_message(lines, output_file, files))
        total = count_lines(files)
        first_line = line_number = lines.finished
        if first_line:
            print_message(f"{output}: continues after line {first_line:,} of the input.")
        portions = read_portions(files, run.predictor.device.type)
        for texts in skip_lines(portions, first_line):
            outputs = run.predict(
                texts,
                replace(options, first=line_number),
                progress=portion_progress(show, line_number, total),
            )
            for text, [prediction] in zip(texts, outputs, strict=True):
                pair = pairs.make(text, prediction)
                if pair is not None:
                    lines.write("\t".join(pair))
            line_number += len(texts)
            lines.end_portion(line_number)
            show(line_number, total)
    print_message(f"{output}: {pairs.pairs:,} pairs from {line_number - first_line:,} lines.")
    for reason, count in pairs.left_out.most_common():
        print_message(f"Left out {count:,} lines: {reason}.")
