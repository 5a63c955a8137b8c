"""One step of a decoder, laid open."""

import json
from collections.abc import Sequence
from pathlib import Path

from seqloom.cli.output import put
from seqloom.cli.work.changes import changed_decoding
from seqloom.cli.work.tables import draws_blocks, stdout_console
from seqloom.inside.explain import explain as explain_run
from seqloom.inside.explanation import Explanation, Focus
from seqloom.inside.lecture import explain_lecture
from seqloom.runs.run import load
from seqloom.viz.explanation_terminal import draw_explanation


def explain(
    folder: Path | None,
    text: str,
    asked: tuple[int, str | None, int | None, int | None],
    beam: int | None,
    overrides: Sequence[str],
    shown: tuple[bool, bool],
) -> None:
    """folder: None: the lecture's example. asked: step, target, layer and head."""
    step, target, layer, head = asked
    full, as_json = shown
    if folder is None:
        _show(explain_lecture(), full, as_json)
        return
    run = load(folder)
    decoding = changed_decoding(run.config, overrides, beam)
    focus = Focus(layer, head)
    _show(
        explain_run(run, text, step, target=target, focus=focus, decoding=decoding), full, as_json
    )


def _show(explanation: Explanation, full: bool, as_json: bool) -> None:
    if as_json:
        put(json.dumps(explanation.to_json(), ensure_ascii=False))
        return
    console = stdout_console()
    picture = draw_explanation(
        explanation, width=console.width, ascii_only=not draws_blocks(), full=full
    )
    console.print(picture, soft_wrap=True, end="")
