"""The commands `seqloom gradients` and `seqloom gradient-profile`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.text import Text

from seqloom.cli.options import FigureFile, Json, RunFolder, argument, flag, option
from seqloom.cli.output import Figure, print_warning, show_result
from seqloom.cli.process.progress import progress_bar
from seqloom.cli.tables import stdout_console, supports_unicode
from seqloom.core.errors import ConfigError, DataError

if TYPE_CHECKING:
    from seqloom.analysis.gradients import GradientProfile, GradientTrace
    from seqloom.inference.run import Run

Place = Literal["inputs", "states", "attention", "weights"]
Step = Annotated[
    int | None,
    option("N", "Use only the loss of target token N, counted from 1. Default: of all tokens."),
]


def gradients(
    run_folder: RunFolder,
    text: Annotated[str, argument("TEXT", "Source text; for a language model, the text itself.")],
    target: Annotated[
        str | None, argument("[TARGET]", "Target text. Default: the output of the run.")
    ] = None,
    step: Step = None,
    at: Annotated[
        Place,
        option(
            "PLACE",
            "Where the loss is differentiated. inputs: at the embedded token of every step, by "
            "path. states: at the hidden states of every layer. attention: at context, weights, "
            "scores, queries and keys of cross-attention; with --step, prints the backward pass of "
            "this step with formulas. weights: at every parameter.",
        ),
    ] = "inputs",
    layer: Annotated[
        int | None,
        option("N", "Decoder layer for --at attention, counted from 1. Default: the last."),
    ] = None,
    head: Annotated[
        int | None, option("N", "Attention head for --at attention, counted from 1. Default: 1.")
    ] = None,
    full: Annotated[
        bool,
        flag("--full", "Print all numbers of long vectors, for --at attention with --step."),
    ] = False,
    out: FigureFile = None,
    json: Json = False,
) -> None:
    """Show the norm of the gradient of the training loss at each source and target token.

    Also shows how much of the gradient passes through attention. --at shows the gradient at other
    places: at hidden states, inside attention or at the weights.
    """
    _check_options(at, step, full, {"--layer": layer, "--head": head})
    run, is_language_model = _load_run(run_folder)
    if is_language_model and target is not None:
        raise ConfigError(f"{run.name}: a language model has no source. Give one text.")
    source, output = ("", text) if is_language_model else (text, target)
    _show(_report_sentence(run, source, output, step, at, (layer, head), full), out, json)


def gradient_profile(
    run_folder: RunFolder,
    files: Annotated[
        list[Path],
        argument(
            "FILE...",
            "Two files, sources and targets, with one sentence per line; for a language model, one "
            "file.",
        ),
    ],
    step: Step = None,
    out: FigureFile = None,
    json: Json = False,
) -> None:
    """Show the mean gradient of the training loss by the distance to the end of the sentence.

    The gradients are those of `seqloom gradients`, averaged over all sentences of the files.
    """
    run, is_language_model = _load_run(run_folder)
    profile = _average_over_files(run, files, step, is_language_model)
    _show(_report_inputs(profile), out, json)


def _load_run(folder: Path) -> tuple[Run, bool]:
    """Load a run. Also returns True if it is a language model."""
    from seqloom.core.signature import NoSource
    from seqloom.inference.run import load

    run = load(folder)
    return run, isinstance(run.task.signature.source, NoSource)


def _show(report: _Report, out: Path | None, json: bool) -> None:
    """Print a report. If `out` is given, also write a figure or the numbers to this file."""
    show_result(
        report.numbers,
        lambda: stdout_console().print(report.drawing(), soft_wrap=True, end=""),
        report.figure,
        out=out,
        json=json,
        title="gradients",
    )


@dataclass(frozen=True)
class _Report:
    """The gradients, ready for output.

    numbers: the gradients as a JSON object
    drawing: returns a drawing for the terminal
    figure:  returns a figure
    """

    numbers: dict[str, Any]
    drawing: Callable[[], Text]
    figure: Callable[[], Figure]


def _check_options(at: Place, step: int | None, full: bool, heads: dict[str, int | None]) -> None:
    """Raise one BadParameter that lists all options that the value of --at does not allow.

    heads: the values of --layer and --head
    """
    problems = []
    given = [name for name, number in heads.items() if number is not None]
    if given and at != "attention":
        problems.append(f"{' and '.join(given)} can only be used with --at attention.")
    if full and (at != "attention" or step is None):
        problems.append("--full can only be used with --at attention and --step.")
    if problems:
        raise typer.BadParameter(" ".join(problems))


def _report_inputs(result: GradientTrace | GradientProfile) -> _Report:
    from seqloom.viz.gradients import draw_gradients, draw_gradients_figure

    return _Report(
        result.to_json(),
        lambda: draw_gradients(result, ascii_only=not supports_unicode()),
        lambda: draw_gradients_figure(result),
    )


def _report_sentence(
    run: Run,
    text: str,
    target: str | None,
    step: int | None,
    at: Place,
    selected: tuple[int | None, int | None],
    full: bool,
) -> _Report:
    """Differentiate the loss of one sentence, and return the gradients as a report.

    at:       where the gradients are measured, for example at the hidden "states"
    selected: layer and head, used only if `at` is "attention"
    """
    from seqloom.analysis.gradients import trace_gradients, trace_loss_gradients
    from seqloom.viz.gradients import draw_loss_gradients, draw_loss_gradients_figure

    if at == "inputs":
        return _report_inputs(trace_gradients(run, text, target, step))
    if at == "attention":
        return _report_attention(run, text, target, step, selected, full)
    trace = trace_loss_gradients(run, text, target, step)
    return _Report(
        trace.to_json(at),
        lambda: draw_loss_gradients(trace, at, ascii_only=not supports_unicode()),
        lambda: draw_loss_gradients_figure(trace, at),
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
    from seqloom.analysis.explanation import (
        HeadSelection,
        describe_backward,
        select_cross_attention,
    )
    from seqloom.analysis.gradients import differentiate_output, norms_of
    from seqloom.viz.explanation_terminal import draw_explanation
    from seqloom.viz.gradients import draw_loss_gradients, draw_loss_gradients_figure

    focus = select_cross_attention(run, HeadSelection(*selected))
    prediction, gradients = differentiate_output(run, text, target, step)
    trace = norms_of(prediction, gradients, step)
    shown = trace.head(focus.layer or 1, focus.head or 1)
    numbers = trace.to_json("attention")
    options: dict[str, Any] = {"width": stdout_console().width}
    options["ascii_only"] = not supports_unicode()

    def figure() -> Figure:
        return draw_loss_gradients_figure(trace, "attention", shown)

    if step is None:
        return _Report(
            numbers, lambda: draw_loss_gradients(trace, "attention", head=shown, **options), figure
        )
    explanation = describe_backward(prediction, gradients, step, focus)
    numbers["explanation"] = explanation.to_json()
    return _Report(numbers, lambda: draw_explanation(explanation, full=full, **options), figure)


def _average_over_files(
    run: Run, files: list[Path], step: int | None, is_language_model: bool
) -> GradientProfile:
    from seqloom.analysis.gradients import profile_gradients
    from seqloom.data.readers.example_files import check_files, read_aligned_lines

    if len(files) != (1 if is_language_model else 2):
        required = "one file" if is_language_model else "two files, sources and targets"
        raise ConfigError(f"{run.name}: needs {required}.")
    check_files(files)
    rows = [row for portion in read_aligned_lines(files) for row in portion]
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
