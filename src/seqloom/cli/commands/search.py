"""The command `seqloom search`."""

from __future__ import annotations

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
from seqloom.cli.output import print_json, print_message, print_warnings, write_json
from seqloom.cli.parameters.prediction_options import with_prediction_options
from seqloom.cli.tables import stdout_console, supports_unicode
from seqloom.inference.options import DEFAULT_OPTIONS, PredictionOptions

if TYPE_CHECKING:
    from seqloom.analysis.search_inspection import InspectedSearch, TokenReplacement

ShowAll = Annotated[bool, flag("--all", "Print every candidate, not only the best dropped ones.")]
DROPPED_PER_STEP = 3
"""Maximum number of dropped candidates that are printed for each step, unless --all is given."""


@with_prediction_options("search")
def search(
    run_folder: RunFolder,
    text: Annotated[
        str,
        argument(
            "[TEXT]",
            "Source text; for a language model, the prompt; for captioning, an image file.",
        ),
    ] = "",
    options: PredictionOptions = DEFAULT_OPTIONS,
    n_best: Annotated[
        int | None,
        option(
            "N",
            "Number of outputs. Default: the beam width or the number of samples; 1 for "
            "greedy search; 5 for exhaustive search.",
            min=1,
            max=1000,
        ),
    ] = None,
    instead: Annotated[
        str | None,
        option(
            "STEP=TOKEN",
            "Replace the token at this step of the best output, and decode the rest again. "
            "The token </s> ends the output.",
        ),
    ] = None,
    show_all: ShowAll = False,
    out: Annotated[
        Path | None,
        option("FILE", "Write the search tree (.svg, .png, .pdf or .html), or all data (.json)."),
    ] = None,
    json: Json = False,
    settings: RunSettings = None,
    ensemble: EnsembleMembers = None,
) -> None:
    """Trace a search: the candidates of every step, and why candidates were dropped.

    Works for greedy search, beam search, sampling and exhaustive search. `seqloom example search`
    traces an example that needs no run.
    """
    replacement = None if instead is None else _parse_replacement(instead)

    from seqloom.analysis.search_inspection import SearchInspection
    from seqloom.cli.recipe_settings import change_decoding, load_run
    from seqloom.inference.search_settings import check_n_best

    check_suffix(out)
    run, settings = load_run([run_folder, *(ensemble or ())], settings)
    decoding = change_decoding(run.config, settings, options.beam)
    if n_best is not None:
        check_n_best(decoding, n_best)
    print_warnings(run.source_tags.warnings([text], "text"))
    inspection = SearchInspection.of(run, text, decoding, options.to)
    trace = inspection.search(n_best)
    change = None if replacement is None else inspection.replace_token(*replacement)
    show_search(trace, change, out, show_all=show_all, json=json)


def check_suffix(out: Path | None) -> None:
    """Raise ConfigError if a search cannot be written to this file, before the run is loaded."""
    from seqloom.viz.drawing import image_format

    if out is not None and out.suffix.lower() not in (".html", ".json"):
        image_format(out)


def show_search(
    trace: InspectedSearch,
    change: TokenReplacement | None,
    out: Path | None,
    *,
    show_all: bool,
    json: bool,
) -> None:
    """Write a search to the file `out` if it is given, and print it.

    change: the effect of replacing a token, printed after the search
    """
    if out is not None:
        _save(out, trace, change)
    if json:
        print_json(_to_json(trace, change))
        return
    console = stdout_console()
    _print_trace(console, trace, show_all)
    if change is not None:
        _print_change(console, change)


def _parse_replacement(value: str) -> tuple[int, str]:
    """ "3=word" -> (3, "word")"""
    step, equals, token = value.partition("=")
    if not (equals and token and step.strip().isascii() and step.strip().isdigit()):
        raise typer.BadParameter(
            f"--instead '{value}': give a step, counted from 1, and a token, for example 3=word."
        )
    return int(step), token


def _to_json(trace: InspectedSearch, change: TokenReplacement | None) -> dict[str, Any]:
    record = trace.to_json()
    return record if change is None else {**record, "instead": change.to_json()}


def _save(out: Path, trace: InspectedSearch, change: TokenReplacement | None) -> None:
    """Write the search to a file. The suffix of the file name selects the format."""
    from seqloom.viz.pages import save_search_page
    from seqloom.viz.search_tree import draw_search_tree

    match out.suffix.lower():
        case ".json":
            write_json(out, _to_json(trace, change), indent=1)
        case ".html":
            save_search_page(out, trace)
        case _:
            draw_search_tree(trace, DROPPED_PER_STEP).save(out)
    print_message(f"{out}: the search, step by step")


def _print_trace(console: Console, trace: InspectedSearch, show_all: bool) -> None:
    from seqloom.viz.search_tree import search_title
    from seqloom.viz.search_tree_terminal import draw_outputs, draw_search_steps

    console.print(Text(search_title(trace), "bold"), soft_wrap=True)
    dropped = None if show_all else DROPPED_PER_STEP
    console.print(draw_search_steps(trace, dropped=dropped, ascii_only=not supports_unicode()))
    console.print()
    console.print(draw_outputs(trace.outputs), soft_wrap=True)


def _print_change(console: Console, change: TokenReplacement) -> None:
    """Print the original output, and below it the output with the replaced token."""
    from seqloom.viz.search_tree import format_probability
    from seqloom.viz.search_tree_terminal import draw_change

    console.print()
    console.print(Text("what if", "bold"))
    for name, output in (("original", change.original), ("instead", change.changed)):
        total = sum(output.log_probabilities)
        line = Text.assemble(
            (f"{name:<10}", "dim"), f"{output.score:8.3f} {total:8.2f}  ", output.text
        )
        console.print(line, soft_wrap=True)
    console.print(draw_change(change, ascii_only=not supports_unicode()))
    alternatives = ", ".join(
        f"{each.piece} {format_probability(each.log_probability)}" for each in change.alternatives
    )
    line = Text(f"most likely tokens at step {change.step}: {alternatives}", "dim")
    console.print(line, soft_wrap=True)
