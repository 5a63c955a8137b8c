"""The command `seqloom prepare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from seqloom.cli.options import ParentFolder, Recipe, Settings, flag, option
from seqloom.cli.output import print_line, print_message
from seqloom.cli.process.interrupts import current_command, set_interruption_message
from seqloom.cli.process.progress import progress_bar
from seqloom.cli.recipe_settings import resolve_recipe

if TYPE_CHECKING:
    from seqloom.cli.process.progress import ShowProgress
    from seqloom.data.corpus.corpus import Corpus
    from seqloom.training.event_log import Event


def prepare(
    recipe: Recipe,
    parent: ParentFolder = None,
    settings: Settings = None,
    workers: Annotated[
        int | None,
        option("N", "Number of processes. Default: one for each CPU core (data.workers).", min=1),
    ] = None,
    verify: Annotated[
        bool, flag("--verify", "Also compare all prepared files with their SHA-256.")
    ] = False,
) -> None:
    """Learn the vocabularies of a recipe and tokenise its data, before training.

    `seqloom train` does the same if the data is not prepared. The result does not depend on the
    number of processes. After an interruption, the same command continues.
    """
    set_interruption_message(
        lambda: f"Interrupted. Finished shards are kept. To continue, run:\n  {current_command()}"
    )
    overrides = [*(settings or ()), *([] if workers is None else [f"data.workers={workers}"])]
    config = resolve_recipe(recipe, overrides, parent).config

    from seqloom.training.setup import prepare_data

    with progress_bar("learning vocabularies", "examples") as show:
        corpora = prepare_data(config, lambda event: _show(show, event))
        if verify:
            show(0, None, "comparing files with their SHA-256")
            _verify(list(corpora.values()))
    for split, corpus in corpora.items():
        report = corpus.report
        print_line(
            f"{split}: {report.kept:,} of {report.read:,} examples, {report.source_tokens:,} source "
            f"and {report.target_tokens:,} target tokens"
        )
        for reason, count in report.dropped.items():
            print_line(f"  skipped {count:,} examples: {reason}")
        print_line(f"  {corpus.folder}")


def _show(show: ShowProgress, event: Event) -> None:
    if event.kind == "note":
        print_message(f"note: {event.data['text']}")
    elif event.data["waits"]:
        print_message("waiting for another process that prepares the same data")
    else:
        description = f"tokenising {event.data['split']}"
        show(event.data["examples"], event.data["total"], description)


def _verify(corpora: list[Corpus]) -> None:
    """Compare all prepared files with their checksums.

    Raises a StorageError that lists the files that are missing or have changed.
    """
    from seqloom.core.errors import StorageError
    from seqloom.core.storage import find_damage

    folders = [variant.folder for corpus in corpora for variant in corpus.variants()]
    damaged = {folder: problems for folder in folders if (problems := find_damage(folder))}
    if damaged:
        listed = [problem for problems in damaged.values() for problem in problems]
        raise StorageError(
            "prepared data is damaged:\n  "
            + "\n  ".join(listed)
            + "\nDelete these folders, then prepare the data again:\n  "
            + "\n  ".join(map(str, damaged))
        )
