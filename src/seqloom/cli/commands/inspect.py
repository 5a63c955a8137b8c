"""The command `seqloom inspect`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from seqloom.cli.options import (
    EnsembleMembers,
    Json,
    RunFolder,
    RunSettings,
    argument,
    flag,
    option,
)
from seqloom.cli.output import (
    allows_colour,
    flush_output,
    print_json,
    print_line,
    print_message,
    print_warning,
    print_warnings,
    write_json,
)
from seqloom.cli.parameters.prediction_options import with_prediction_options
from seqloom.cli.tables import stdout_console
from seqloom.inference.options import DEFAULT_OPTIONS, PredictionOptions

if TYPE_CHECKING:
    from seqloom.analysis.attention_view import AttentionView
    from seqloom.inference.prediction import Prediction
    from seqloom.inference.run import Run
    from seqloom.viz.attention_matrix import AttentionPanel
    from seqloom.viz.pages import AttentionCard

BEST = "best"
OUTPUT_SUFFIXES = (".png", ".svg", ".pdf", ".html", ".json")


@with_prediction_options("inspect")
def inspect(
    run_folder: RunFolder,
    texts: Annotated[
        list[str] | None,
        argument("[TEXT]...", "Source texts. Default: the lines of standard input."),
    ] = None,
    out: Annotated[
        Path | None,
        option(
            "FILE", "Write to this file (.png, .svg, .pdf, .html or .json) instead of the terminal."
        ),
    ] = None,
    layer: Annotated[
        int | None, option("N", "Layer, counted from 1. Default: the mean over layers.", min=1)
    ] = None,
    head: Annotated[
        str | None,
        option(
            "N|best",
            "Attention head, counted from 1, or best: the heads that "
            "`seqloom alignment-heads` found. Default: the mean over heads.",
        ),
    ] = None,
    pieces: Annotated[bool, flag("--pieces", "Show the model's tokens instead of words.")] = False,
    options: PredictionOptions = DEFAULT_OPTIONS,
    json: Json = False,
    settings: RunSettings = None,
    ensemble: EnsembleMembers = None,
) -> None:
    """Show the attention map between each output and its source.

    Tokens are merged into words. The weights of the tokens of a source word are added. The weights
    of the tokens of a target word are averaged, so that the weights of a target word add up to one.
    """
    if out is not None and out.suffix.lower() not in OUTPUT_SUFFIXES:
        raise typer.BadParameter(
            f"--out {out}: unknown format. Name the file {out.stem}.png, or use one of "
            f"{', '.join(OUTPUT_SUFFIXES)}."
        )
    head_number = None
    if head is not None and head != BEST:
        if not (head.isascii() and head.isdigit() and int(head) > 0):
            raise typer.BadParameter(f"--head '{head}': give a number from 1, or best.")
        head_number = int(head)
    if head == BEST and layer is not None:
        raise typer.BadParameter("--head best also selects the layers. Remove --layer.")

    from seqloom.analysis.attention_view import AttentionView
    from seqloom.analysis.output import check_has_text_source
    from seqloom.cli.inputs import check_texts, read_portions
    from seqloom.cli.recipe_settings import change_decoding, load_run
    from seqloom.jobs.batch_translation.line_report import LineReport

    run, settings = load_run([run_folder, *(ensemble or ())], settings)
    check_has_text_source(run)
    if run.heads_note:
        print_warning(run.heads_note)
    decoding = change_decoding(run.config, settings, options.beam)
    run.languages.path(options.to)  # reports an unknown language before any input is read
    view = AttentionView.create(
        run, layer=layer, head=head_number, use_best_heads=head == BEST, pieces=pieces
    )
    results: list[InspectedText] = []
    options = replace(options, decoding=decoding, heads=True, split=False, pass_through=False)
    count = 0
    report = LineReport.of(run)
    for portion in read_portions(None) if texts is None else [check_texts(texts)]:
        outputs = run.predict(portion, replace(options, first=count))
        report.add_lines(portion, [predictions[0] for predictions in outputs])
        for source, predictions in zip(portion, outputs, strict=True):
            count += 1
            result = InspectedText(count, source, _check_attention(run, predictions))
            if out is not None:
                results.append(result)
            elif json:
                print_json(_to_json(result, view))
            else:
                _print_result(stdout_console(), result, view)
        flush_output()
    print_warnings(report.messages())
    for note in view.notes:
        print_message(f"note: {note}")
    if out is not None:
        _save(out, run.name, results, view)
        print_message(f"{out}: attention of each word")


@dataclass(frozen=True)
class InspectedText:
    """A source text and its predictions. A blank text has no predictions.

    number: position of the text in the input, counted from 1
    """

    number: int
    source: str
    predictions: Sequence[Prediction]


def _check_attention(run: Run, predictions: Sequence[Prediction]) -> list[Prediction]:
    """Return the predictions that have output tokens. Predictions of blank texts have none.

    Raises ConfigError if any of the returned predictions has no attention weights.
    """
    from seqloom.analysis.output import no_attention_error

    filled = [prediction for prediction in predictions if prediction.pieces]
    if any(prediction.heads is None for prediction in filled):
        raise no_attention_error(run)
    return filled


def _score_note(prediction: Prediction) -> str:
    truncated = "" if prediction.finished else "  (reached the length limit)"
    return f"score {prediction.score:.4f}{truncated}"


def _print_result(console: Console, result: InspectedText, view: AttentionView) -> None:
    from seqloom.viz.attention_terminal import draw_attention

    # Compute the maps before printing: a layer or head that does not exist raises ConfigError.
    maps = [view.selected_map(prediction) for prediction in result.predictions]
    console.print(Text(f"{result.number}  {result.source}", "dim"), soft_wrap=True)
    if not result.predictions:
        console.print(Text("   blank line: no output\n"), soft_wrap=True)
    for prediction, attention in zip(result.predictions, maps, strict=True):
        note = f"   {_score_note(prediction)}"
        line = Text.assemble("   ", (prediction.text, "bold"), (note, "dim"))
        console.print(line, soft_wrap=True)
        print_line("")
        drawing = draw_attention(
            attention.weights.tolist(),
            attention.outputs,
            attention.sources,
            width=console.width,
            marks="blocks" if allows_colour(sys.stdout) else "numbers",
        )
        console.print(drawing, soft_wrap=True)


def _to_json(result: InspectedText, view: AttentionView) -> dict[str, Any]:
    return {
        "id": result.number - 1,
        "source": result.source,
        "outputs": [view.to_json(prediction) for prediction in result.predictions],
    }


def _save(out: Path, run: str, results: Sequence[InspectedText], view: AttentionView) -> None:
    """Write all results to a file. The suffix of the file name selects the format."""
    match out.suffix.lower():
        case ".json":
            write_json(out, [_to_json(result, view) for result in results])
        case ".html":
            from seqloom.viz.pages import save_attention_page

            cards = [card for result in results for card in _cards(result, view)]
            save_attention_page(out, f"Attention of {run}", cards)
        case _:
            from seqloom.viz.attention_matrix import draw_attention_panels

            panels = [each for result in results for each in _matrices(result, view)]
            draw_attention_panels(panels).save(out)


def _cards(result: InspectedText, view: AttentionView) -> Iterator[AttentionCard]:
    """Yield the content of the HTML page for a text: one card for each prediction.

    A card shows the prediction and its attention maps. A blank text has one empty card.
    """
    from seqloom.viz.pages import AttentionCard

    count = len(result.predictions)
    if not count:
        yield AttentionCard(str(result.number))
    for rank, prediction in enumerate(result.predictions, start=1):
        yield AttentionCard(
            f"{result.number}, output {rank} of {count}" if count > 1 else str(result.number),
            prediction.text,
            _score_note(prediction),
            view.describe(prediction),
            view.selected_map(prediction),
            view.full_map(prediction),
        )


def _matrices(result: InspectedText, view: AttentionView) -> Iterator[AttentionPanel]:
    """Yield the attention matrices of a text for a figure, one for each prediction."""
    from seqloom.viz.attention_matrix import AttentionPanel

    if not result.predictions:
        yield AttentionPanel([], [], [], f"{result.number}: blank line")
    for prediction in result.predictions:
        attention = view.selected_map(prediction)
        title = f"{result.source}\n{prediction.text}"
        yield AttentionPanel(
            attention.weights.tolist(), attention.outputs, attention.sources, title
        )
