"""The command `seqloom explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from seqloom.cli.options import Full, Json, RunFolder, RunSettings, SourceText, option
from seqloom.cli.output import print_json, print_warnings
from seqloom.cli.parameters.prediction_options import with_prediction_options
from seqloom.cli.tables import stdout_console, supports_unicode
from seqloom.inference.options import DEFAULT_OPTIONS, PredictionOptions

if TYPE_CHECKING:
    from seqloom.analysis.explanation import Explanation


@with_prediction_options("explain")
def explain(
    run_folder: RunFolder,
    text: SourceText = "",
    step: Annotated[int, option("N", "Step of the output to explain, counted from 1.")] = 1,
    target: Annotated[
        str | None, option("TEXT", "Output to explain. Default: the output of the run.")
    ] = None,
    layer: Annotated[
        int | None,
        option("N", "Layer whose attention is shown, counted from 1. Default: the last."),
    ] = None,
    head: Annotated[int | None, option("N", "Attention head, counted from 1. Default: 1.")] = None,
    full: Full = False,
    options: PredictionOptions = DEFAULT_OPTIONS,
    json: Json = False,
    settings: RunSettings = None,
) -> None:
    """Explain one decoder step: query, keys, scores, weights, values, context, best tokens.

    Prints the shape, the numbers and the formula of every value. `seqloom example attention`
    explains an example that needs no run.
    """
    from seqloom.analysis.explanation import HeadSelection
    from seqloom.analysis.explanation import explain as explain_run
    from seqloom.cli.recipe_settings import change_decoding, load_run

    run, settings = load_run([run_folder], settings)
    decoding = change_decoding(run.config, settings, options.beam)
    print_warnings(run.source_tags.warnings([text], "text"))
    explanation = explain_run(
        run, text, step, target=target, focus=HeadSelection(layer, head), decoding=decoding
    )
    print_explanation(explanation, full=full, json=json)


def print_explanation(explanation: Explanation, *, full: bool, json: bool) -> None:
    """Print an explanation as JSON, or draw it for the terminal.

    full: print all numbers of long vectors
    """
    from seqloom.viz.explanation_terminal import draw_explanation

    if json:
        print_json(explanation.to_json())
        return
    console = stdout_console()
    drawing = draw_explanation(
        explanation, width=console.width, ascii_only=not supports_unicode(), full=full
    )
    console.print(drawing, soft_wrap=True, end="")
