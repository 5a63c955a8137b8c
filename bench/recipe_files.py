"""Where a recipe is: bundled, or waiting for its figures."""

from pathlib import Path

WAITING = Path(__file__).parent / "waiting"


def recipe_file(name: str) -> str:
    """What `find_recipe` and `seqloom train` take: a file, or the name of a bundled recipe."""
    path = WAITING / f"{name}.toml"
    return str(path) if path.exists() else name
