"""seqloom evaluate"""

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.later import work
from seqloom.cli.options import (
    BeamWidth,
    EvaluationSettings,
    Json,
    Partners,
    RunFolder,
    existing_run,
    existing_runs,
    known_engine,
)


def evaluate(
    run: RunFolder,
    split: Annotated[
        str, typer.Option(help="Which part of the recipe's data: test, dev or train.")
    ] = "test",
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="RUN", help="Another run to compare with (bootstrap)."),
    ] = None,
    beam: BeamWidth = None,
    json: Json = False,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="torch|ctranslate2",
            help="What computes: torch, the model itself, unless ctranslate2 is named.",
        ),
    ] = None,
    settings: EvaluationSettings = None,
    partners: Partners = None,
    lowercase: Annotated[
        bool, typer.Option("--lowercase", help="Lower-cased BLEU, too, as some papers report it.")
    ] = False,
) -> None:
    """Score a run on held-out data: a table of scores, by length, and the worst outputs.

    The data are those of the recipe, or others: --set data.folder=… where they have moved,
    --set data.test=… for another test set. With --against, both runs side by side. What is scored
    is the model itself, by torch, unless --engine ctranslate2 is given.
    """
    runs = existing_runs(run, partners)
    if against is not None:
        existing_run(against)
    if split not in ("test", "dev", "train"):
        raise typer.BadParameter(f"'{split}' is no split; there are test, dev and train")
    how = [*(settings or []), *([f"engine.kind={known_engine(engine)}"] if engine else [])]
    work("evaluate")(runs, against, split, (beam, how), lowercase, json)
