"""The commands `seqloom draw …`: figures for teaching as SVG."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seqloom.cli.options import OptionalRun, RunFolder, SourceText, option
from seqloom.cli.output import print_line, print_message
from seqloom.cli.parameters.prediction_options import with_prediction_options
from seqloom.inference.options import DEFAULT_OPTIONS, PredictionOptions

if TYPE_CHECKING:
    from seqloom.viz.drawing import Svg


def _check_suffix(out: Path | None) -> Path | None:
    if out is not None and out.suffix.lower() != ".svg":
        raise typer.BadParameter(f"--out {out}: only SVG is written. Name the file {out.stem}.svg.")
    return out


Target = Annotated[str | None, option("TEXT", "Output text. Default: the output of the run.")]
SvgFile = Annotated[
    Path | None,
    option("FILE", "Write the figure to this .svg file. Default: stdout.", callback=_check_suffix),
]


def rnn(
    run_folder: RunFolder, text: SourceText = "", target: Target = None, out: SvgFile = None
) -> None:
    """Draw an unrolled recurrent network with the numbers of a run."""
    from seqloom.analysis.forward_trace import trace_forward
    from seqloom.inference.run import load
    from seqloom.viz.diagrams.recurrent_models import draw_unrolled_rnn

    _write(draw_unrolled_rnn(trace_forward(load(run_folder), text, target)), out)


def encoder_decoder(
    run_folder: RunFolder, text: SourceText = "", target: Target = None, out: SvgFile = None
) -> None:
    """Draw the states, the attention and the probabilities of a run."""
    from seqloom.analysis.forward_trace import trace_forward
    from seqloom.inference.run import load
    from seqloom.viz.diagrams.recurrent_models import draw_encoder_decoder

    _write(draw_encoder_decoder(trace_forward(load(run_folder), text, target)), out)


@with_prediction_options("draw search")
def search(
    run_folder: OptionalRun = None,
    text: SourceText = "",
    options: PredictionOptions = DEFAULT_OPTIONS,
    out: SvgFile = None,
) -> None:
    """Draw the tree of a beam search."""
    from seqloom.analysis.search_example import example_recipe, search_example
    from seqloom.analysis.search_inspection import SearchInspection
    from seqloom.inference.run import load
    from seqloom.inference.search_settings import resolve_decoding
    from seqloom.viz.search_tree import draw_search_tree

    if run_folder is None:
        trace = search_example(resolve_decoding(example_recipe().decoding, options))
    else:
        run = load(run_folder)
        decoding = resolve_decoding(run.config.decoding, options)
        trace = SearchInspection.of(run, text, decoding).search()
    _write(draw_search_tree(trace), out)


def lookup(
    run_folder: OptionalRun = None,
    text: SourceText = "",
    target: Target = None,
    step: Annotated[int, option("N", "Step of the output, counted from 1.")] = 1,
    out: SvgFile = None,
) -> None:
    """Draw attention as a soft lookup in a table of keys and values."""
    from seqloom.analysis.explanation import explain
    from seqloom.analysis.lookup import LookupTable
    from seqloom.inference.run import load
    from seqloom.viz.diagrams.soft_lookup import draw_soft_lookup

    if run_folder is None:
        _write(draw_soft_lookup(LookupTable()), out)
    else:
        _write(draw_soft_lookup(explain(load(run_folder), text, step, target=target)), out)


def transformer(
    run_folder: OptionalRun = None,
    part: Annotated[
        Literal["encoder", "decoder"], option("PART", "Layer to draw: encoder or decoder.")
    ] = "decoder",
    out: SvgFile = None,
) -> None:
    """Draw a Transformer layer with the shapes of its values."""
    from seqloom.inference.run import load
    from seqloom.viz.diagrams.transformer_layer import (
        draw_transformer_layer,
        find_layer,
        layer_of_paper,
    )

    if run_folder is None:
        layer = layer_of_paper(part)
    else:
        run = load(run_folder)
        layer = find_layer(run.model, part, run.name)
    _write(draw_transformer_layer(layer), out)


def _write(figure: Svg, out: Path | None) -> None:
    if out is None:
        print_line(figure)
        return
    figure.save(out)
    print_message(f"{out}: the figure")
