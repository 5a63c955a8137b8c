"""The files, recipes, commands and tests in docs/extending.md work."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import seqloom
from seqloom.cli.main import run
from seqloom.config.extensions.section import PROVIDED
from seqloom.extensions import registry
from seqloom.extensions.registry import POINTS
from tools.site.links import ROOT

PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", PAGE, flags=re.M | re.S))
COMMANDS = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, flags=re.M | re.S)
    for line in block.splitlines()
]
MODULES = [name.removesuffix(".py") for name in FILES if name.endswith(".py")]
SMALL = (
    "training.steps=4",
    "training.evaluate_every=4",
    "training.evaluate_examples=4",
    "model.encoder.width=8",
    "model.decoder.width=16",
)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The files of the page, in a folder that is the current directory and on the path.

    The recipes use a small file instead of the bundled sentences.
    """
    bundled, small = 'kind = "bundled", source = "de", target = "en"', 'kind = "tsv", path = "few"'
    for name, text in FILES.items():
        (tmp_path / name).write_text(text.replace(bundled, small), encoding="utf-8")
    pairs = [
        f"Das {noun} ist sehr {one}.\tThe {noun} is very {one}."
        for noun in "abcd"
        for one in "efgh"
    ]
    (tmp_path / "few").write_text("\n".join(pairs), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for module in MODULES:
        sys.modules.pop(module, None)


def test_the_table_lists_every_extension_point_and_what_it_gets() -> None:
    rows = re.findall(r"^\| \*\*(\w+)\*\*: [^|]+\| [^|]+\| ([^|]+)\|", PAGE, flags=re.M)
    assert [point for point, _ in rows] == [*POINTS]
    for point, provided in rows:
        for name in PROVIDED[point]:
            assert f"`{name}`" in provided
        assert f"`seqloom.{point}`" in PAGE


def test_the_tests_of_the_page_pass(workspace: Path) -> None:
    tests = import_module("test_extensions")
    names = [name for name in vars(tests) if name.startswith("test_")]
    assert len(names) == len(POINTS)
    for name in names:
        getattr(tests, name)()


@pytest.mark.parametrize(
    "settings",
    [
        re.findall(r"`((?:text|model)\.\w+ = \{.*?\})`", paragraph)
        for paragraph in re.findall(r"^The recipe contains (.*?)\n\n", PAGE, flags=re.M | re.S)
    ],
)
def test_the_settings_of_the_page_are_valid(workspace: Path, settings: list[str]) -> None:
    overrides = [setting.replace(" = ", "=", 1) for setting in settings]
    config = seqloom.load_recipe("demo", overrides).config
    assert len(config.extensions) == len(settings) > 0


def test_the_entry_point_of_the_page_registers_its_name(workspace: Path) -> None:
    [(group, line)] = re.findall(r'\[project\.entry-points\."([\w.]+)"\]\n(.*)', PAGE)
    metadata = workspace / "my_scores-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: my-scores\nVersion: 1.0\n", encoding="utf-8")
    entry = line.replace('"', "")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{entry}\n", encoding="utf-8")
    registry._entry_points.cache_clear()
    try:
        score = "model.decoder.attention.score={kind='cosine'}"
        [extension] = seqloom.load_recipe("demo", [score]).config.extensions.values()
        assert extension.extension_target.__module__ == "cosine"
    finally:
        registry._entry_points.cache_clear()


def test_the_decorator_of_the_page_registers_its_name(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_registered", {point: {} for point in POINTS})
    [program] = re.findall(
        r"^```python\n(from seqloom import extensions\n.*?)^```$", PAGE, re.M | re.S
    )
    (workspace / "decorated.py").write_text(program, encoding="utf-8")
    metric = import_module("decorated").same_start
    assert metric(["ab", "c"], [["ax"], ["d"]]) == 50
    config = seqloom.load_recipe("demo", ["task.scores=['bleu', 'same-start']"]).config
    assert config.extensions["task.scores[1]"].extension_target is metric


@pytest.mark.slow
def test_the_commands_of_the_page_run(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(COMMANDS) == 7
    for command in COMMANDS:
        assert command.startswith("PYTHONPATH=. seqloom ")
        _, *arguments = shlex.split(command)
        if "train" in arguments:
            arguments += [part for setting in SMALL for part in ("--set", setting)]
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit) as caught:
            run()
        assert not caught.value.code, command
    for name in ("cosine", "words", "menus"):
        loaded = seqloom.load(f"runs/{name}")
        # Training replaces text.split_sentences = "auto".
        resolved = f"text.split_sentences={str(loaded.config.text.split_sentences).lower()}"
        assert loaded.config == seqloom.load_recipe(f"{name}.toml", [*SMALL, resolved]).config
        assert len(loaded.translate(["Open file", "Das gefällt mir."])) == 2


@pytest.mark.slow
def test_a_module_beside_the_recipe_needs_the_path(workspace: Path) -> None:
    """The error without PYTHONPATH names the command that works."""
    program = workspace / "seqloom"
    program.write_text(
        f"import sys\nsys.path[0] = {str(ROOT / 'src')!r}\nfrom seqloom.cli.main import run\nrun()\n",
        encoding="utf-8",
    )
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, str(program), "config", "menus.toml"]
    for path, exit_code in ((None, 78), (".", 0)):
        result = subprocess.run(
            command,
            env=environment if path is None else {**environment, "PYTHONPATH": path},
            capture_output=True,
            text=True,
        )
        assert result.returncode == exit_code, result.stderr
        advice = "so run: PYTHONPATH=. seqloom config menus.toml"
        assert (advice in result.stderr) == (path is None)
