"""`fine_tune`: continues the training of a finished run on other data."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seqloom.runs.recipe import load_recipe
from seqloom.training.event_log import EventCallback, note
from seqloom.training.loop import Summary, train


def fine_tune(
    recipe: str | Path | Mapping[str, Any],
    source_run: str | Path,
    run: str | Path,
    *,
    settings: Sequence[str] = (),
    report: EventCallback = lambda event: None,
) -> Summary:
    """Train on new data, starting from the best weights of another run.

    To continue an interrupted fine-tuning, call `seqloom.train(run, run, resume=True)`.

    recipe:     a TOML file, the name of a bundled recipe, or a dict. Only [data] is required. Model
                and vocabulary are those of `source_run`
    source_run: run folder or packed run to start from. It is not changed
    run:        the new run folder. It must be empty or not exist yet
    settings:   changes to the recipe, such as "training.steps=500"
    report:     called with every event (progress, evaluation, checkpoint …)
    """
    resolved = load_recipe(recipe, settings, parent=source_run)
    for text in resolved.notes:
        report(note(text))
    return train(resolved.config, run, report=report)
