"""The commands, recipes and programs on all pages are valid. test_pages runs them."""

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
from page_blocks import PAGES, CodeBlock, code_blocks, page_name, shell_commands
from page_runner import INSTALLS

import seqloom
from seqloom.config.loading.bundled import bundled_recipes
from seqloom.config.loading.json_schema import recipe_schema
from seqloom.config.loading.loader import load_bundled_recipe
from support.cli_runner import all_commands, split_command
from tools.site.links import ROOT

every_page = pytest.mark.parametrize("page", PAGES, ids=page_name)
LANGUAGES = {"sh", "python", "toml", "text", "nginx", "po"}
"""Languages of code blocks. The blocks in the first three have code of seqloom."""
REASONS = {
    "long",
    "needs a cluster",
    "needs a data set",
    "needs a downloaded model",
    "needs a GPU",
    "opens a browser",
    "runs until it is stopped",
}
"""Why no test may run a block: <!-- not run: long -->"""
DATA = {"train": {"kind": "tsv", "path": "pairs.tsv"}}
PACKAGING = "extending.md"
"""Page that also shows a part of a pyproject.toml."""


def _exists(module: str, name: str) -> bool:
    """True if a module has this name, or a module of this name in it."""
    return hasattr(import_module(module), name) or find_spec(f"{module}.{name}") is not None


def commands(page: Path) -> list[list[str]]:
    """The arguments of every seqloom command in the shell blocks of a page."""
    found = []
    for line in (line for block in code_blocks(page, "sh") for line in shell_commands(block)):
        match = re.search(r"(?:^|[|;] *|PYTHONPATH=\. )seqloom ([a-z].*)$", line)
        if match and "$" not in line:
            found.append(shlex.split(re.split(r" (?:[|<>]|2>) ?", match[1])[0]))
    return found


def recipes(block: CodeBlock) -> list[dict[str, Any]]:
    """The recipe of a block, or several: lines that set the same key are alternatives."""
    lines = [line for line in block.code.splitlines() if line and not line.startswith("#")]
    keys = [line.partition(" = ")[0] for line in lines if line[0].isalpha()]
    header = next((line for line in lines if line.startswith("[")), "[data]")
    if len(keys) > 1 and len(set(keys)) == 1:
        return [tomllib.loads(f"{header}\n{line}") for line in lines if line != header]
    return [tomllib.loads(block.code)]


@cache
def validator() -> jsonschema_rs.Draft7Validator:
    return jsonschema_rs.Draft7Validator(recipe_schema())


def parse(arguments: list[str]) -> dict[str, Any]:
    """Parse a command. Raises an error for unknown commands and options."""
    name, rest = split_command(arguments)
    command = all_commands()[name]
    context = typer.Context(command, info_name=name)
    values, extra, _ = command.make_parser(context).parse_args(args=rest)
    assert not extra, extra
    return dict(values)


def test_every_block_runs_or_says_why_not() -> None:
    """test_pages runs all blocks in `sh` and `python` that have no comment <!-- not run: … -->."""
    for page in PAGES:
        blocks = code_blocks(page)
        for block in blocks:
            is_directive = block.language.startswith("{")  # such as a cell of a notebook
            assert is_directive or block.language in LANGUAGES, f"{block}: {block.language!r}"
            assert not block.reason or block.reason in REASONS, f"{block}: {block.reason!r}"
            assert (
                block.language != "text"
                or "\nseqloom " not in f"\n{block.code}"
                or "…" in block.code
            ), block
        text = page.read_text(encoding="utf-8")
        comments = re.findall("^ *<!-- not run", text, re.M)
        assert len(comments) == sum(bool(block.reason) for block in blocks), page
        assert len(re.findall("^ *```", text, re.M)) == 2 * len(blocks), page


@every_page
def test_the_program_accepts_every_command_of_a_page(page: Path) -> None:
    for arguments in commands(page):
        values = parse(arguments)
        recipe = values.get("recipe")
        if recipe in bundled_recipes():
            settings = [each.replace("PATH", "/data") for each in values.get("settings") or ()]
            load_bundled_recipe(recipe, settings)


@every_page
def test_the_targets_and_extras_that_a_page_installs_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [line for block in code_blocks(page, "sh") for line in shell_commands(block)]
    for line in (line for line in lines if line.startswith(INSTALLS)):
        if target := re.match(r"make (\S+)", line):
            assert re.search(rf"^{target[1]}:", makefile, re.M), line
        if extras := re.search(r"(?:seqloom|\.)\[([\w,]+)\]", line):
            assert {*extras[1].split(",")} <= {*project["optional-dependencies"]}, line


@every_page
def test_every_recipe_of_a_page_is_valid(page: Path) -> None:
    for block in code_blocks(page, "toml"):
        for tables in recipes(block):
            if page.name == PACKAGING:
                tables.pop("project", None)
            complete = {**tables, "data": {**DATA, **tables.get("data", {})}}
            assert [str(problem) for problem in validator().iter_errors(complete)] == [], block


@every_page
def test_every_program_of_a_page_uses_existing_names(page: Path) -> None:
    for block in code_blocks(page, "python"):
        for node in ast.walk(ast.parse(block.code)):
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
