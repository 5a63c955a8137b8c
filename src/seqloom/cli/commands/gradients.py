"""The command `seqloom gradients`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.text import Text

from seqloom.cli.options import Json, RunFolder
from seqloom.cli.output import print_json, print_message, print_warning, write_json
from seqloom.cli.process.progress import progress_bar
from seqloom.cli.tables import stdout_console, supports_unicode
from seqloom.core.errors import ConfigError, DataError

if TYPE_CHECKING:
    from seqloom.analysis.gradients import GradientProfile, GradientTrace
    from seqloom.inference.run import Run


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
    at: Annotated[
        Literal["inputs", "states", "attention", "weights"],
        typer.Option(
            metavar="PLACE",
            help="Where the loss is differentiated. inputs: at the embedded token of every step, "
            "by path. states: at the hidden states of every layer. attention: at context, "
            "weights, scores, queries and keys of cross-attention; with --step, prints the "
            "backward pass of this step with formulas. weights: at every parameter.",
        ),
    ] = "inputs",
    layer: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Decoder layer for --at attention, counted from 1. Default: the last.",
        ),
    ] = None,
    head: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Attention head for --at attention, counted from 1. Default: 1."
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Print all numbers of long vectors, for --at attention with --step."
        ),
    ] = False,
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
    """Show the norm of the gradient of the training loss at each source and target token.

    Also shows how much of the gradient passes through attention. --at shows the gradient at other
    places: at hidden states, inside attention or at the weights. With --lines, prints the means
    over all sentences, by distance from the end of the sentence.
    """
    _check_options(at, lines, step, full, {"--layer": layer, "--head": head})

    from seqloom.core.signature import NoSource
    from seqloom.inference.run import load
    from seqloom.viz.figures import image_format

    if out is not None and out.suffix.lower() != ".json":
        image_format(out)  # reports an unknown format before the run is loaded
    run = load(run_folder)
    is_language_model = isinstance(run.task.signature.source, NoSource)
    if is_language_model and target is not None and not lines:
        raise ConfigError(f"{run.name}: a language model has no source. Give one text.")
    report: _Report
    if lines:
        files = [Path(text)] if target is None else [Path(text), Path(target)]
        report = _report_inputs(_average_over_files(run, files, step, is_language_model))
    else:
        source, output = ("", text) if is_language_model else (text, target)
        report = _report_sentence(run, source, output, step, at, (layer, head), full)
    if json:
        print_json(report.numbers)
    else:
        stdout_console().print(report.drawing(), soft_wrap=True, end="")
    if out is None:
        return
    if out.suffix.lower() == ".json":
        write_json(out, report.numbers)
    else:
        report.save(out)
    print_message(f"written to {out}")


@dataclass(frozen=True)
class _Report:
    """The gradients, ready for output.

    numbers: the gradients as a JSON object
    drawing: returns a drawing for the terminal
    save:    writes a figure to a file
    """

    numbers: dict[str, Any]
    drawing: Callable[[], Text]
    save: Callable[[Path], None]


def _check_options(
    at: str, lines: bool, step: int | None, full: bool, heads: dict[str, int | None]
) -> None:
    """Raise one BadParameter that lists all options that the value of --at does not allow.

    heads: the values of --layer and --head
    """
    problems = []
    if lines and at != "inputs":
        problems.append(f"--lines averages gradients at the inputs. Omit it for --at {at}.")
    given = [name for name, number in heads.items() if number is not None]
    if given and at != "attention":
        problems.append(f"{' and '.join(given)} can only be used with --at attention.")
    if full and (at != "attention" or step is None):
        problems.append("--full can only be used with --at attention and --step.")
    if problems:
        raise typer.BadParameter(" ".join(problems))


def _report_inputs(result: GradientTrace | GradientProfile) -> _Report:
    from seqloom.viz.gradients import draw_gradients, save_gradients

    return _Report(
        result.to_json(),
        lambda: draw_gradients(result, ascii_only=not supports_unicode()),
        lambda path: save_gradients(path, result),
    )


def _report_sentence(
    run: Run,
    text: str,
    target: str | None,
    step: int | None,
    at: Literal["inputs", "states", "attention", "weights"],
    selected: tuple[int | None, int | None],
    full: bool,
) -> _Report:
    """Differentiate the loss of one sentence, and return the gradients as a report.

    at:       where the gradients are measured, for example at the hidden "states"
    selected: layer and head, used only if `at` is "attention"
    """
    from seqloom.analysis.gradients import trace_gradients
    from seqloom.analysis.loss_gradient_norms import trace_loss_gradients
    from seqloom.viz.loss_gradients import draw_loss_gradients, save_loss_gradients

    if at == "inputs":
        return _report_inputs(trace_gradients(run, text, target, step))
    if at == "attention":
        return _report_attention(run, text, target, step, selected, full)
    trace = trace_loss_gradients(run, text, target, step)
    return _Report(
        trace.to_json(at),
        lambda: draw_loss_gradients(trace, at, ascii_only=not supports_unicode()),
        lambda path: save_loss_gradients(path, trace, at),
    )


def _report_attention(
    run: Run,
    text: str,
    target: str | None,
    step: int | None,
    selected: tuple[int | None, int | None],
    full: bool,
) -> _Report:
    """Compute the gradients of the loss inside cross-attention, and return them as a report.

    If `step` is given, the report explains the backward pass of this step.

    selected: layer and head to show
    """
    from seqloom.analysis.explain.backward import describe_backward, select_cross_attention
    from seqloom.analysis.explain.explanation import HeadSelection
    from seqloom.analysis.loss_gradient_norms import differentiate_output, norms_of
    from seqloom.viz.explanation_terminal import draw_explanation
    from seqloom.viz.loss_gradients import draw_loss_gradients, save_loss_gradients

    focus = select_cross_attention(run, HeadSelection(*selected))
    prediction, gradients = differentiate_output(run, text, target, step)
    trace = norms_of(prediction, gradients, step)
    shown = trace.head(focus.layer or 1, focus.head or 1)
    numbers = trace.to_json("attention")
    options: dict[str, Any] = {"width": stdout_console().width}
    options["ascii_only"] = not supports_unicode()

    def save(path: Path) -> None:
        save_loss_gradients(path, trace, "attention", shown)

    if step is None:
        return _Report(
            numbers, lambda: draw_loss_gradients(trace, "attention", head=shown, **options), save
        )
    explanation = describe_backward(run.model.decoder, prediction, gradients, step, focus)
    numbers["explanation"] = explanation.to_json()
    return _Report(numbers, lambda: draw_explanation(explanation, full=full, **options), save)


def _average_over_files(
    run: Run, files: list[Path], step: int | None, is_language_model: bool
) -> GradientProfile:
    from seqloom.analysis.gradients import profile_gradients
    from seqloom.cli.inputs import check_files
    from seqloom.data.readers.text_files import read_lines

    if len(files) != (1 if is_language_model else 2):
        required = "one file" if is_language_model else "two files, sources and targets"
        raise ConfigError(f"--lines: the run {run.name} needs {required} as arguments.")
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
