"""seqloom config"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from seqloom.cli.later import resolved_recipe
from seqloom.cli.options import Recipe, Settings
from seqloom.cli.output import put, styled

if TYPE_CHECKING:
    from seqloom.config.loading.settings import Setting

_COLOURS = {
    "recipe": typer.colors.GREEN,
    "--set": typer.colors.MAGENTA,
    "preset": typer.colors.CYAN,
    "default": typer.colors.BRIGHT_BLACK,
}


def config(recipe: Recipe, settings: Settings = None) -> None:
    """Show a recipe whole: every setting, where its value comes from, and what it means.

    What is put out is itself a recipe.
    """
    from seqloom.config.loading.settings import list_settings

    resolved = resolved_recipe(recipe, settings)
    for line in _as_toml(list_settings(resolved)):
        put(line)


def _as_toml(settings: "list[Setting]") -> Iterator[str]:
    table = ""
    for line in settings:
        parent, _, name = line.key.rpartition(".")
        if parent != table:
            if table:
                yield ""
            table = parent
            yield styled(_header(parent), bold=True)
        yield _setting(name, line)


def _header(table: str) -> str:
    return f"[[{table.partition('[')[0]}]]" if table.endswith("]") else f"[{table}]"


def _setting(name: str, line: "Setting") -> str:
    value = f"{name} = {line.value}  #" if line.value else f"# {name} is left out"
    meaning = f": {line.meaning}" if line.meaning else ""
    origin = styled(f"({line.origin})", fg=_COLOURS[line.origin])
    return f"{value} {origin}{styled(meaning, dim=True)}"
