"""The validators of editors accept all bundled recipes and report unknown keys.

The tests install the validators with npm and run them with Node.js.
"""

import json
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from seqloom.config.loading.bundled import bundled_recipes
from seqloom.config.loading.error_messages import NO_SUCH_SETTING
from seqloom.config.loading.json_schema import SCHEMA_FILE
from seqloom.config.loading.toml import parse_toml
from support.recipe_tables import Table, recipe_tables

pytestmark = pytest.mark.long

SCRIPT = Path(__file__).with_name("json_schema_engines.cjs")
SCHEMA = Path(str(files("seqloom").joinpath("recipes", SCHEMA_FILE)))
PACKAGES = ["ajv", "ajv-errors", "vscode-json-languageservice", "@taplo/cli"]


@pytest.fixture(scope="module")
def node_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which npm has installed the validators."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("needs Node.js and npm")
    folder = tmp_path_factory.mktemp("node")
    install = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", *PACKAGES]
    result = subprocess.run(install, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        pytest.skip(f"npm cannot install the validators: {result.stderr[-300:]}")
    return folder


def validate(recipes: list[Table], folder: Path, tmp_path: Path) -> list[dict[str, Any]]:
    """Return what ajv-errors and Visual Studio Code report about each recipe."""
    file = tmp_path / "recipes.json"
    file.write_text(json.dumps(recipes), encoding="utf-8")
    command = ["node", str(SCRIPT), str(folder), str(SCHEMA), str(file)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    reports: list[dict[str, Any]] = json.loads(result.stdout)
    return reports


def test_ajv_and_visual_studio_code_accept_all_bundled_recipes(
    node_folder: Path, tmp_path: Path
) -> None:
    recipes = [parse_toml(path.read_bytes()) for path in bundled_recipes().values()]
    assert validate(recipes, node_folder, tmp_path) == [{"ajv": {}, "vscode": {}}] * len(recipes)


def test_ajv_and_visual_studio_code_report_an_unknown_key_in_every_table(
    node_folder: Path, tmp_path: Path
) -> None:
    tables = recipe_tables()
    recipes = [table.recipe(no_such_key=1) for table in tables]
    for table, report in zip(tables, validate(recipes, node_folder, tmp_path), strict=True):
        pointer = "/" + re.sub(r"\[(\d+)\]", r".\1", table.key("no_such_key")).replace(".", "/")
        for engine in ("ajv", "vscode"):
            assert report[engine][pointer] == [NO_SUCH_SETTING]


def lint(files: list[Path], folder: Path) -> subprocess.CompletedProcess[str]:
    program = folder / "node_modules" / "@taplo" / "cli" / "dist" / "cli.js"
    command = ["node", str(program), "lint", *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=files[0].parent)


def test_taplo_accepts_all_bundled_recipes(node_folder: Path) -> None:
    result = lint(sorted(SCHEMA.parent.glob("*.toml")), node_folder)
    assert result.returncode == 0, result.stderr


def test_taplo_marks_the_line_of_an_unknown_key(node_folder: Path, tmp_path: Path) -> None:
    shutil.copy(SCHEMA, tmp_path / SCHEMA_FILE)
    recipe = tmp_path / "recipe.toml"
    text = f"""#:schema ./{SCHEMA_FILE}
presett = "small"
[data.train]
kind = "tsv"
path = "pairs.tsv"
tga = 1
[model.decoder]
kind = "recurrent"
attention = {{ score = {{ kind = "additive", widht = 8 }} }}
[training]
step = 500
"""
    recipe.write_text(text, encoding="utf-8")
    result = lint([recipe], node_folder)
    assert result.returncode != 0
    assert sorted(map(int, re.findall(r"recipe\.toml:(\d+):", result.stderr))) == [2, 6, 9, 11]
