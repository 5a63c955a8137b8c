"""seqloom doctor"""

import typer

from seqloom.cli.later import resolved_recipe, work
from seqloom.cli.options import Json, Recipe, Settings


def doctor(recipe: Recipe, settings: Settings = None, json: Json = False) -> None:
    """Look a recipe's data over before training on it.

    Unequal, empty and extreme lines, duplicates, unknown tokens, test sentences that are also in
    the training data, lengths, and the memory of the worst batch. Exits with 66 if a file is missing, with 65 on other errors.
    """
    resolved = resolved_recipe(recipe, settings)
    raise typer.Exit(work("doctor")(resolved.config, json))
