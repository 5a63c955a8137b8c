"""seqloom explain"""

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.options import BeamWidth, DecodingSettings, Json, existing_run
from seqloom.cli.output import print_json
from seqloom.cli.tables import stdout_console, supports_unicode


def explain(
    run_folder: Annotated[
        Path | None,
        typer.Argument(metavar="[RUN]", help="Run folder, written by `seqloom train`."),
    ] = None,
    text: Annotated[
        str,
        typer.Argument(metavar="[TEXT]", help="Source text; for a language model, the prompt."),
    ] = "",
    step: Annotated[
        int, typer.Option(metavar="N", help="Step of the output to explain, counted from 1.")
    ] = 1,
    target: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Output to explain. Default: the output of the run."),
    ] = None,
    layer: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Layer whose attention is shown, counted from 1. Default: the last."
        ),
    ] = None,
    head: Annotated[
        int | None, typer.Option(metavar="N", help="Attention head, counted from 1. Default: 1.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Print all numbers of long vectors.")
    ] = False,
    beam: BeamWidth = None,
    json: Json = False,
    settings: DecodingSettings = None,
    example: Annotated[
        bool,
        typer.Option("--example", help="Explain a small built-in example. Needs no run folder."),
    ] = False,
) -> None:
    """Explain one decoder step: query, keys, scores, weights, values, context, best tokens.

    Prints the shape, the numbers and the formula of every value.
    """
    if example and run_folder is not None:
        raise typer.BadParameter("--example cannot be combined with a run folder.")
    if run_folder is None and not example:
        raise typer.BadParameter("Give a run folder and a text, or --example.")
    existing_run(run_folder)

    from seqloom.analysis.explain.explainer import explain as explain_run
    from seqloom.analysis.explain.explanation import HeadSelection
    from seqloom.analysis.explain.lecture_example import explain_lecture
    from seqloom.cli.recipe_settings import change_decoding
    from seqloom.runs.run import load
    from seqloom.viz.explanation_terminal import draw_explanation

    if run_folder is None:
        explanation = explain_lecture()
    else:
        run = load(run_folder)
        decoding = change_decoding(run.config, settings, beam)
        explanation = explain_run(
            run, text, step, target=target, focus=HeadSelection(layer, head), decoding=decoding
        )
    if json:
        print_json(explanation.to_json())
        return
    console = stdout_console()
    drawing = draw_explanation(
        explanation, width=console.width, ascii_only=not supports_unicode(), full=full
    )
    console.print(drawing, soft_wrap=True, end="")
