"""The command `seqloom new`."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.options import argument, option
from seqloom.cli.output import print_message, program_name
from seqloom.core.errors import ConfigError


def new(
    files: Annotated[
        list[Path] | None,
        argument(
            "[FILE]...",
            "A file of pairs (tab-separated, CSV or JSONL), or two files: sources and targets. "
            "Default: ask for them on the terminal.",
        ),
    ] = None,
    recipe: Annotated[
        Path | None,
        option("RECIPE", "Recipe to write. Default: FILE with suffix .toml.", "--recipe"),
    ] = None,
    source: Annotated[
        str | None,
        option(
            "NAME",
            "Source language, for example de; or the key or column of the source.",
            "--source",
        ),
    ] = None,
    target: Annotated[
        str | None,
        option(
            "NAME",
            "Target language, for example en; or the key or column of the target.",
            "--target",
        ),
    ] = None,
) -> None:
    """Write a recipe for your own pairs of source and target.

    Detects the format of the files, counts the pairs, chooses a preset, and holds out pairs for the
    dev and test splits.
    """
    if (source is None) != (target is None):
        raise typer.BadParameter("Give both --source and --target, or neither of them.")
    if not files:
        if not sys.stdin.isatty():
            raise typer.BadParameter("Give a file of pairs, or two files: sources and targets.")
        files = [Path(name) for name in shlex.split(_ask("File of pairs, or two parallel files"))]
        source = source or _ask("Source language (may be empty)", "") or None
        target = target or _ask("Target language (may be empty)", "") or None
        recipe = recipe or Path(_ask("Recipe to write", str(_default_recipe(files))))
    recipe = recipe or _default_recipe(files)
    if recipe.exists():
        raise ConfigError(f"{recipe}: already exists. Choose another name with --recipe.")

    from seqloom.core.storage import make_folder, storage_errors, write_file
    from seqloom.data.new_recipe import new_recipe

    written = new_recipe(files, source, target)
    with storage_errors(recipe):
        make_folder(recipe.parent)
        write_file(recipe, written.text.encode())
    run = Path("runs") / recipe.stem
    path, program = shlex.quote(str(recipe)), program_name()
    print_message(
        f"{recipe}: {written.shown_pairs} ({written.corpus['kind']}), preset '{written.preset}'; next:"
    )
    print_message(f"  {program} doctor {path}")
    print_message(f"  {program} train {path} --run {shlex.quote(str(run))}")


def _ask(question: str, default: str | None = None) -> str:
    answer: str = typer.prompt(question, default=default, show_default=bool(default), err=True)
    return answer


def _default_recipe(files: list[Path]) -> Path:
    """Return the default file name of the recipe, for example pairs.toml for data/pairs.tsv.gz."""
    return Path(f"{files[0].name.partition('.')[0] or 'recipe'}.toml")
