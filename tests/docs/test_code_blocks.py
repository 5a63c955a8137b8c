"""The commands, recipes and programs on all pages are valid. Other tests run many of them."""

import ast
import re
import shlex
import tomllib
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command

import seqloom
from seqloom.cli.main import app
from seqloom.config.loading.bundled import bundled_recipes
from seqloom.config.loading.json_schema import recipe_schema
from seqloom.config.loading.loader import load_bundled_recipe
from tools.site.links import DOCS, ROOT

NOT_HERE = {"generated", "course"}
"""Folders of pages that are generated from the program, or executed as notebooks."""
PAGES = [
    ROOT / "README.md",
    *(
        path
        for path in sorted(DOCS.rglob("*.md"))
        if not NOT_HERE & set(path.relative_to(DOCS).parts)
    ),
]
DATA = {"train": {"kind": "tsv", "path": "pairs.tsv"}}
PACKAGING = "extending.md"
"""Page that also shows a part of a pyproject.toml."""


def blocks(page: Path, *languages: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    fenced = re.findall(r"^ *```([^\n`]*)\n(.*?)^ *```$", text, flags=re.M | re.S)
    return [block for language, block in fenced if language in languages]


def _exists(module: str, name: str) -> bool:
    """True if a module has this name, or a module of this name in it."""
    return hasattr(import_module(module), name) or find_spec(f"{module}.{name}") is not None


def commands(page: Path) -> list[list[str]]:
    """The arguments of every seqloom command in the shell blocks of a page."""
    found = []
    for block in blocks(page, "sh", ""):
        for line in block.replace("\\\n", " ").splitlines():
            match = re.search(r"(?:^|[|;] *|PYTHONPATH=\. )seqloom ([a-z].*)$", line.strip())
            if match and "$" not in line and "…" not in line:
                command = re.split(r" (?:[|<>]|2>) ?|   +(?=[a-z\[])", match[1].split("  #")[0])[0]
                found.append(shlex.split(command, comments=True))
    return found


@cache
def validator() -> jsonschema_rs.Draft7Validator:
    return jsonschema_rs.Draft7Validator(recipe_schema())


@cache
def group() -> TyperGroup:
    found = get_command(app)
    assert isinstance(found, TyperGroup)
    return found


def parse(arguments: list[str]) -> dict[str, Any]:
    """Parse a command. Raises an error for unknown commands and options."""
    name, *rest = arguments
    command = group().commands[name]
    context = typer.Context(command, info_name=name)
    values, extra, _ = command.make_parser(context).parse_args(args=rest)
    assert not extra, extra
    return dict(values)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_program_accepts_every_command_of_a_page(page: Path) -> None:
    for arguments in commands(page):
        values = parse(arguments)
        recipe = values.get("recipe")
        if recipe in bundled_recipes():
            settings = [each.replace("PATH", "/data") for each in values.get("settings") or ()]
            load_bundled_recipe(recipe, settings)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_recipe_of_a_page_is_valid(page: Path) -> None:
    for block in blocks(page, "toml"):
        tables = tomllib.loads(block)
        if page.name == PACKAGING:
            tables.pop("project", None)
        problems = validator().iter_errors({"data": DATA, **tables})
        assert [str(problem) for problem in problems] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_program_of_a_page_uses_existing_names(page: Path) -> None:
    for block in blocks(page, "python"):
        for node in ast.walk(ast.parse(block)):
            match node:
                case ast.ImportFrom(module=str(module)) if module.startswith("seqloom"):
                    for alias in node.names:
                        assert _exists(module, alias.name), alias.name
                case ast.Attribute(value=ast.Name(id="seqloom"), attr=name):
                    assert hasattr(seqloom, name), name
                case _:
                    pass


def test_most_pages_have_commands() -> None:
    assert sum(len(commands(page)) for page in PAGES) > 150
