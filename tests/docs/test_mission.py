"""docs/mission.md lists every capability with valid commands and existing tests."""

import ast
import shlex
from functools import cache
from pathlib import Path

import pytest

from seqloom.config.loading.bundled import bundled_recipes
from seqloom.config.loading.loader import load_bundled_recipe
from seqloom.lab.registry import claim_names
from support.cli_runner import all_commands, split_command
from tools.mission import PAGE, MissionLine, read_lines, render

TESTS = Path(__file__).parents[1]
COUNTS = {"M": 18, "T": 8, "D": 4, "V": 3, "K": 9, "N": 6}
"""Number of lines by the first letter of their id."""
LINES = [line for lines in read_lines().values() for line in lines]
every_line = pytest.mark.parametrize("line", LINES, ids=[line.id for line in LINES])


def test_the_page_equals_the_rendered_list() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(read_lines())


def test_every_capability_and_every_claim_has_a_line() -> None:
    numbered = {
        f"{letter}{number:02}" for letter, count in COUNTS.items() for number in range(1, count + 1)
    }
    assert {line.id for line in LINES} == numbered | set(claim_names())


@every_line
def test_a_line_has_commands_that_the_program_accepts(
    line: MissionLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert line.show
    monkeypatch.chdir(tmp_path)
    for command in line.show:
        program, *words = shlex.split(command)
        assert program == "seqloom"
        name, arguments = split_command(words)
        for run in (argument for argument in arguments if argument.startswith("runs/")):
            (tmp_path / run).mkdir(parents=True, exist_ok=True)
        context = all_commands()[name].make_context(name, arguments)
        if name == "train":
            recipe = context.params["recipe"]
            assert recipe in bundled_recipes()
            settings = [each.replace("PATH", "/data") for each in context.params["settings"] or ()]
            load_bundled_recipe(recipe, settings)
        if name == "lab":
            assert set(context.params["claims"] or ()) <= set(claim_names())


@every_line
def test_a_line_has_tests_that_exist(line: MissionLine) -> None:
    assert line.tests
    for test in line.tests:
        path, _, name = test.partition("::")
        assert name in _functions(TESTS / path), test


@cache
def _functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
