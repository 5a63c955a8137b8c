"""The commands `seqloom config` and `seqloom schema`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from seqloom.cli.options import Recipe, Settings
from seqloom.cli.output import print_json, print_line, styled
from seqloom.cli.recipe_settings import resolve_recipe

if TYPE_CHECKING:
    from seqloom.config.loading.settings_list import Setting

ORIGIN_COLOURS = {
    "recipe": typer.colors.GREEN,
    "--set": typer.colors.MAGENTA,
    "preset": typer.colors.CYAN,
    "parent": typer.colors.CYAN,
    "default": typer.colors.BRIGHT_BLACK,
}


def config(
    recipe: Recipe,
    settings: Settings = None,
) -> None:
    """Print a complete recipe: every setting with its value, origin and description.

    The output is a valid recipe.
    """
    from seqloom.config.loading.settings_list import list_settings

    for line in _to_toml(list_settings(resolve_recipe(recipe, settings))):
        print_line(line)


def schema() -> None:
    """Print the JSON Schema of recipes, with which editors complete and check them."""
    from seqloom.config.loading.json_schema import recipe_schema

    print_json(recipe_schema(), indent=1)


def _to_toml(settings: list[Setting]) -> Iterator[str]:
    current_table = ""
    for setting in settings:
        table, _, name = setting.key.rpartition(".")
        if table != current_table:
            if current_table:
                yield ""
            current_table = table
            yield styled(_table_header(table), bold=True)
        yield _setting_line(name, setting)


def _table_header(table: str) -> str:
    return f"[[{table.partition('[')[0]}]]" if table.endswith("]") else f"[{table}]"


def _setting_line(name: str, setting: Setting) -> str:
    value = f"{name} = {setting.value}  #" if setting.value else f"# {name} is not set"
    origin = styled(f"({setting.origin})", fg=ORIGIN_COLOURS[setting.origin])
    description = f": {setting.meaning}" if setting.meaning else ""
    return f"{value} {origin}{styled(description, dim=True)}"
