"""A search laid open, and what if it had gone otherwise."""

import json
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from seqloom.cli.output import put, tell
from seqloom.cli.work.changes import changed_decoding
from seqloom.cli.work.tables import draws_blocks, stdout_console
from seqloom.core.storage import write_file
from seqloom.runs.options import check_n_best
from seqloom.runs.question import Changed, Question, Searched
from seqloom.runs.run import load
from seqloom.viz.figures import image_format
from seqloom.viz.search_tree_figure import save_search_tree
from seqloom.viz.search_tree_layout import format_probability, search_title
from seqloom.viz.search_tree_page import save_search_tree_page
from seqloom.viz.search_tree_terminal import draw_change, draw_outputs, draw_search_steps


def search(
    folders: Sequence[Path],
    text: str,
    changes: tuple[int | None, Sequence[str]],
    wanted: tuple[int | None, tuple[int, str] | None, str | None],
    shown: tuple[bool, bool],
    out: Path | None,
) -> None:
    """changes: --beam, --set; wanted: --n-best, --instead, --to; shown: --all, --json."""
    beam, overrides = changes
    n_best, change, to = wanted
    everything, as_json = shown
    if out is not None and out.suffix.lower() not in (".html", ".json"):
        image_format(out)  # a name that is no picture's is told before anything is loaded
    run = load(folders)
    decoding = changed_decoding(run.config, overrides, beam)
    if n_best is not None:
        check_n_best(decoding, n_best)
    question = Question.of(run, text, decoding, to)
    searched = question.search(n_best)
    what_if = None if change is None else question.instead(*change)
    if out is not None:
        _save(out, searched, what_if)
    if as_json:
        put(json.dumps(_record(searched, what_if), ensure_ascii=False))
        return
    _show(searched, everything, draws_blocks())
    if what_if is not None:
        _show_change(what_if, draws_blocks())


def _record(searched: Searched, what_if: Changed | None) -> dict[str, object]:
    record = searched.to_json()
    return record if what_if is None else {**record, "instead": what_if.to_json()}


def _save(out: Path, searched: Searched, what_if: Changed | None) -> None:
    match out.suffix.lower():
        case ".json":
            text = json.dumps(_record(searched, what_if), ensure_ascii=False, indent=1)
            write_file(out, text.encode())
        case ".html":
            save_search_tree_page(out, searched)
        case _:
            save_search_tree(out, searched)
    tell(f"{out}: the search, step by step")


def _show(searched: Searched, everything: bool, blocks: bool) -> None:
    console = stdout_console()
    console.print(Text(search_title(searched), "bold"), soft_wrap=True)
    dropped = None if everything else 3
    console.print(draw_search_steps(searched, dropped=dropped, ascii_only=not blocks))
    console.print()
    console.print(draw_outputs(searched.outputs), soft_wrap=True)


def _show_change(what_if: Changed, blocks: bool) -> None:
    console = stdout_console()
    console.print()
    console.print(Text("what if", "bold"))
    for name, output in (("as it was", what_if.original), ("instead", what_if.changed)):
        total = sum(output.log_probabilities)
        words = Text.assemble(
            (f"{name:<10}", "dim"), f"{output.score:8.3f} {total:8.2f}  ", output.text
        )
        console.print(words, soft_wrap=True)
    console.print(draw_change(what_if, ascii_only=not blocks))
    liked = ", ".join(
        f"{each.piece} {format_probability(each.log_probability)}" for each in what_if.alternatives
    )
    console.print(Text(f"likeliest at step {what_if.step}: {liked}", "dim"), soft_wrap=True)
