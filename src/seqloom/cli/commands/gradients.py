"""seqloom gradients"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqloom.cli.options import Json, RunFolder
from seqloom.cli.output import print_json, print_message, print_warning, write_json
from seqloom.cli.tables import progress_bar, stdout_console, supports_unicode
from seqloom.core.errors import ConfigError, DataError

if TYPE_CHECKING:
    from seqloom.analysis.gradients import GradientProfile, GradientTrace
    from seqloom.runs.run import Run


def gradients(
    run_folder: RunFolder,
    text: Annotated[
        str,
        typer.Argument(metavar="TEXT", help="Source text; for a language model, the text itself."),
    ],
    target: Annotated[
        str | None,
        typer.Argument(metavar="[TARGET]", help="Target text. Default: the output of the run."),
    ] = None,
    step: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Use only the loss of target token N, counted from 1. Default: of all tokens.",
        ),
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="TEXT and TARGET are files, one sentence per line.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write a figure (.png, .svg or .pdf), or the numbers (.json).",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show how much of the gradient of the loss reaches each position, and on which path.

    The paths are the recurrent chain and attention. With --lines, prints the means over all
    sentences, by distance from the end of the sentence.
    """
    from seqloom.core.signature import NoSource
    from seqloom.runs.run import load
    from seqloom.viz.figures import image_format
    from seqloom.viz.gradients import draw_gradients, save_gradients

    if out is not None and out.suffix.lower() != ".json":
        image_format(out)  # reports an unknown format before the run is loaded
    run = load(run_folder)
    is_language_model = isinstance(run.task.signature.source, NoSource)
    result: GradientTrace | GradientProfile
    if lines:
        files = [Path(text)] if target is None else [Path(text), Path(target)]
        result = _average_over_files(run, files, step, is_language_model)
    else:
        result = _trace_sentence(run, text, target, step, is_language_model)
    if json:
        print_json(result.to_json())
    else:
        drawing = draw_gradients(result, ascii_only=not supports_unicode())
        stdout_console().print(drawing, soft_wrap=True, end="")
    if out is None:
        return
    if out.suffix.lower() == ".json":
        write_json(out, result.to_json())
    else:
        save_gradients(out, result)
    print_message(f"written to {out}")


def _trace_sentence(
    run: Run, text: str, target: str | None, step: int | None, is_language_model: bool
) -> GradientTrace:
    from seqloom.analysis.gradients import trace_gradients

    if not is_language_model:
        return trace_gradients(run, text, target, step)
    if target is not None:
        raise ConfigError(f"{run.name}: a language model has no source. Give one text.")
    return trace_gradients(run, "", text, step)


def _average_over_files(
    run: Run, files: list[Path], step: int | None, is_language_model: bool
) -> GradientProfile:
    from seqloom.analysis.gradients import profile_gradients
    from seqloom.cli.inputs import check_files
    from seqloom.data.readers.text_files import read_lines

    if len(files) != (1 if is_language_model else 2):
        required = "one file" if is_language_model else "two files, sources and targets"
        raise ConfigError(f"{run.name}: give {required}.")
    check_files(files)
    columns = [list(read_lines(file)) for file in files]
    if len({len(column) for column in columns}) > 1:
        counts = " and ".join(f"{len(column):,}" for column in columns)
        raise DataError(
            f"{files[0]} and {files[1]}: have {counts} lines. Line n of one file must correspond "
            "to line n of the other."
        )
    rows = list(zip(*columns, strict=True))
    filled = [row for row in rows if all(text.strip() for text in row)]
    if len(filled) < len(rows):
        print_warning(f"skipped {len(rows) - len(filled):,} of {len(rows):,} lines: blank")
    if not filled:
        raise DataError(f"{files[0]}: all lines are blank. Give at least one sentence.")
    sources = ["" if is_language_model else row[0] for row in filled]
    with progress_bar("computing gradients") as advance:
        result = profile_gradients(run, sources, [row[-1] for row in filled], step, advance)
    if result.sentences < len(filled):
        short = len(filled) - result.sentences
        print_warning(
            f"skipped {short:,} of {len(filled):,} sentences: fewer than {step} target tokens"
        )
    return result
