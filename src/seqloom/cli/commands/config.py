"""The command `seqloom config`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from seqloom.cli.options import OptionalRecipe, Settings
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
    recipe: OptionalRecipe = None,
    settings: Settings = None,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema", help="Print the JSON Schema of recipes, for editors. Needs no RECIPE."
        ),
    ] = False,
) -> None:
    """Print a complete recipe: every setting with its value, origin and description.

    The output is a valid recipe.
    """
    if schema:
        from seqloom.config.loading.json_schema import recipe_schema

        if recipe is not None or settings:
            raise typer.BadParameter(
                "--schema prints the schema of all recipes. Remove RECIPE and --set."
            )
        print_json(recipe_schema(), indent=1)
        return
    if recipe is None:
        raise typer.BadParameter("Give a recipe, or --schema.")

    from seqloom.config.loading.settings_list import list_settings

    for line in _to_toml(list_settings(resolve_recipe(recipe, settings))):
        print_line(line)


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
