"""The command `seqloom augment`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seqloom.cli.options import (
    Engine,
    EngineSettings,
    EnsembleMembers,
    RunFolder,
    argument,
    flag,
    option,
)
from seqloom.cli.output import print_message
from seqloom.cli.parameters.prediction_options import with_prediction_options
from seqloom.cli.process.interrupts import current_command, set_interruption_message
from seqloom.cli.process.line_output import translate_lines
from seqloom.core.errors import ConfigError
from seqloom.inference.options import DEFAULT_OPTIONS, PredictionOptions

if TYPE_CHECKING:
    from seqloom.inference.prediction import Prediction

Side = Literal["target", "source"]


@with_prediction_options("augment")
def augment(
    context: typer.Context,
    run_folder: RunFolder,
    files: Annotated[list[Path], argument("FILE...", "Text files with one sentence per line.")],
    output: Annotated[
        Path,
        option(
            "FILE",
            "TSV file for the pairs: source, tab, target. If the command is interrupted, the same "
            "command continues it.",
        ),
    ],
    side: Annotated[
        Side,
        option(
            "SIDE",
            "Side of the pairs on which the given text is placed. target: the translations become "
            "sources (back-translation), so the run must translate in the opposite direction. "
            "source: the translations become targets (self-training, distillation).",
        ),
    ] = "target",
    tag: Annotated[
        str,
        option(
            "TAG",
            "With --side target: a string in front of each synthetic source, for example '<BT>'. "
            "List it in text.tags of the recipe. Default: none.",
            advanced=True,
        ),
    ] = "",
    max_ratio: Annotated[
        float,
        option(
            "X",
            "Leave out pairs in which one side has more than X times as many characters as the "
            "other.",
            min=1,
            advanced=True,
        ),
    ] = 4.0,
    options: PredictionOptions = DEFAULT_OPTIONS,
    overwrite: Annotated[
        bool, flag("--overwrite", "Replace an existing file, and discard an unfinished one.")
    ] = False,
    settings: EngineSettings = None,
    engine: Engine = None,
    ensemble: EnsembleMembers = None,
) -> None:
    """Make training pairs from text in one language, for example by back-translation.

    Translates each line, and writes the line and its translation as one row. Leaves out blank
    lines, and lines whose translation is empty, truncated, a copy of the line, or much longer or
    shorter than the line.
    """
    if tag and side == "source":
        raise typer.BadParameter("--tag marks synthetic sources, so it requires --side target.")
    if any(character.isspace() for character in tag):
        raise typer.BadParameter(f"--tag {tag!r}: a tag must not contain white space.")

    set_interruption_message(
        lambda: f"Interrupted before the first pair. To repeat it, run: {current_command()}"
    )

    from seqloom.cli.engine import load_translator
    from seqloom.cli.inputs import STDIN
    from seqloom.data.readers.example_files import check_files
    from seqloom.jobs.batch_translation.output_file import OutputFile
    from seqloom.jobs.synthetic_pairs import SyntheticPairs

    if STDIN in files:
        raise ConfigError("augment reads files, not standard input. Write the text to a file.")
    check_files(files)
    output_file = OutputFile(output)
    output_file.check(files, overwrite)
    translator = load_translator([run_folder, *(ensemble or ())], settings, options, engine)
    pairs = SyntheticPairs(side, tag, max_ratio)

    def make_lines(number: int, text: str, outputs: Sequence[Prediction]) -> list[str]:
        pair = pairs.make(text, outputs[0])
        return [] if pair is None else ["\t".join(pair)]

    report = translate_lines(
        context, translator, files, output_file, make_lines, overwrite=overwrite
    )
    print_message(f"{output}: {pairs.pairs:,} pairs from {report.total:,} lines.")
    for reason, count in pairs.left_out.most_common():
        print_message(f"Left out {count:,} lines: {reason}.")
