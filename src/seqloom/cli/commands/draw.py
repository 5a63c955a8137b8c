"""The command `seqloom draw`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, assert_never

import typer

from seqloom.cli.options import BeamWidth, existing_run
from seqloom.cli.output import print_line, print_message
from seqloom.cli.parameters.completion import complete_run

if TYPE_CHECKING:
    from seqloom.inference.run import Run
    from seqloom.viz.diagrams.svg import Svg

Kind = Literal["rnn", "encoder-decoder", "search", "lookup", "transformer"]
Part = Literal["encoder", "decoder"]


def draw(
    kind: Annotated[
        Kind,
        typer.Argument(
            metavar="KIND",
            help="rnn: an unrolled recurrent network; encoder-decoder: states, attention and "
            "probabilities; search: a beam search; lookup: attention as a soft lookup; "
            "transformer: a Transformer layer with shapes.",
        ),
    ],
    run_folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RUN]",
            help="Run folder, written by `seqloom train`. Default: a built-in example for search, "
            "lookup and transformer.",
            autocompletion=complete_run,
        ),
    ] = None,
    text: Annotated[
        str,
        typer.Argument(metavar="[TEXT]", help="Source text; for a language model, the prompt."),
    ] = "",
    target: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Output text, for rnn, encoder-decoder and lookup. Default: the output of the run.",
        ),
    ] = None,
    step: Annotated[
        int, typer.Option(metavar="N", help="Step of the output, for lookup, counted from 1.")
    ] = 1,
    part: Annotated[
        Part,
        typer.Option(metavar="PART", help="Layer for transformer: encoder or decoder."),
    ] = "decoder",
    beam: BeamWidth = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the figure to this .svg file. Default: stdout."),
    ] = None,
) -> None:
    """Draw a figure for teaching as SVG, with the numbers of a run or of a built-in example."""
    problems = []
    if run_folder is None and kind in ("rnn", "encoder-decoder"):
        problems.append(f"{kind} draws the states of a model. Give a run folder and a text.")
    if out is not None and out.suffix.lower() != ".svg":
        problems.append(f"--out {out}: only SVG is written. Name the file {out.stem}.svg.")
    if problems:
        raise typer.BadParameter("\n".join(problems))
    existing_run(run_folder)

    from seqloom.inference.run import load

    run = None if run_folder is None else load(run_folder)
    match kind:
        case "search":
            figure = _draw_search(run, text, beam)
        case "lookup":
            figure = _draw_lookup(run, text, target, step)
        case "transformer":
            figure = _draw_transformer(run, part)
        case "rnn" | "encoder-decoder":
            assert run is not None
            figure = _draw_states(kind, run, text, target)
        case _:
            assert_never(kind)
    if out is None:
        print_line(figure)
        return
    figure.save(out)
    print_message(f"{out}: the figure")


def _draw_states(
    kind: Literal["rnn", "encoder-decoder"], run: Run, text: str, target: str | None
) -> Svg:
    from seqloom.analysis.forward_trace import trace_forward
    from seqloom.viz.diagrams.encoder_decoder import draw_encoder_decoder
    from seqloom.viz.diagrams.unrolled_rnn import draw_unrolled_rnn

    trace = trace_forward(run, text, target)
    return draw_unrolled_rnn(trace) if kind == "rnn" else draw_encoder_decoder(trace)


def _draw_search(run: Run | None, text: str, beam: int | None) -> Svg:
    from seqloom.analysis.search_example import example_recipe, search_example
    from seqloom.analysis.search_inspection import SearchInspection
    from seqloom.inference.options import PredictionOptions
    from seqloom.inference.search_settings import resolve_decoding
    from seqloom.viz.diagrams.search_tree import draw_search_tree

    config = example_recipe() if run is None else run.config
    decoding = resolve_decoding(config.decoding, PredictionOptions(beam=beam))
    if run is None:
        return draw_search_tree(search_example(decoding))
    return draw_search_tree(SearchInspection.of(run, text, decoding).search())


def _draw_lookup(run: Run | None, text: str, target: str | None, step: int) -> Svg:
    from seqloom.analysis.explain.explainer import explain
    from seqloom.analysis.lookup import LookupTable
    from seqloom.viz.diagrams.soft_lookup import draw_soft_lookup

    if run is None:
        return draw_soft_lookup(LookupTable())
    return draw_soft_lookup(explain(run, text, step, target=target))


def _draw_transformer(run: Run | None, part: Part) -> Svg:
    from seqloom.viz.diagrams.transformer_layer import (
        draw_transformer_layer,
        find_layer,
        layer_of_paper,
    )

    if run is None:
        return draw_transformer_layer(layer_of_paper(part))
    return draw_transformer_layer(find_layer(run.model, part, run.name))
