"""Exit codes and error messages; data on stdout and messages on stderr."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from seqloom import __version__
from seqloom.cli import main, output
from seqloom.cli.help import MOVED
from seqloom.config.loading.bundled import bundled_recipes
from seqloom.config.loading.loader import load_recipe
from seqloom.core.errors import DataError
from support.cli_runner import run_cli

RECIPE = Path(__file__).parents[1] / "config" / "bundled-recipe.toml"


def test_version_is_printed() -> None:
    assert run_cli("--version").stdout == f"seqloom {__version__}\n"


def test_invalid_recipe_gives_message_and_exit_code(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text("[trainin]\n", encoding="utf-8")
    result = run_cli("train", path)
    assert (result.exit_code, result.stdout) == (78, "")
    assert result.stderr.startswith(f"error: {path} ")
    assert "trainin: " in result.stderr


def test_config_prints_a_recipe() -> None:
    settings = ["training.clip=none", "decoding.width=3"]
    result = run_cli("config", RECIPE, "--set", settings[0], "--set", settings[1])
    expected = load_recipe(str(RECIPE), settings).config
    assert load_recipe(tomllib.loads(result.stdout)).config == expected
    assert result.stdout.startswith("[task]\n")
    assert "width = 3  # (--set)" in result.stdout
    assert re.search(r"^steps = 100  # \(recipe\): \w", result.stdout, re.MULTILINE)
    assert "seed = 1  # (default)" in result.stdout
    assert re.search(r"^# patience is not set \(default\): \w", result.stdout, re.MULTILINE)


@pytest.mark.parametrize("command", ["train", "config", "doctor"])
def test_help_lists_every_bundled_recipe(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    result = run_cli(command, "--help")
    for name in bundled_recipes():
        assert name in result.stdout


def test_unknown_command_suggests_or_lists_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    similar, different = run_cli("trian"), run_cli("xyzzy")
    assert similar.exit_code == different.exit_code == 2
    assert "Did you mean 'train'" in similar.stderr
    commands = getattr(get_command(main.app), "commands", {})
    assert f"Available commands: {', '.join(commands)}." in different.stderr
    assert "translate" in commands


def test_override_that_drops_settings_gives_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(
        '[data.train]\nkind="bundled"\nsource="de"\ntarget="en"\n[model]\n'
        'encoder={kind="recurrent", cell="rnn"}\ndecoder={kind="recurrent"}\n'
        "[training]\nsteps=9\n",
        encoding="utf-8",
    )
    result = run_cli("config", path, "--set", "model.encoder.kind=transformer")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: --set model.encoder.kind=transformer: ")


@pytest.mark.parametrize(
    ("error", "exit_code", "message"),
    [
        (DataError("a.txt:3: is bad"), 65, "error: a.txt:3: is bad\n"),
        (KeyboardInterrupt(), 130, "Interrupted.\n"),
        (PermissionError(13, "Permission denied", "/x"), 74, "error: /x: Permission denied\n"),
        (OSError(28, "No space left on device"), 74, "error: No space left on device\n"),
    ],
)
def test_user_errors_end_in_a_message_without_traceback(
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    exit_code: int,
    message: str,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("seqloom.cli.commands.config.resolve_recipe", fail)
    result = run_cli("config", RECIPE)
    assert (result.exit_code, result.stdout, result.stderr) == (exit_code, "", message)


def test_programming_errors_show_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqloom.cli.commands.config.resolve_recipe", None)
    monkeypatch.setattr("sys.argv", ["seqloom", "config", str(RECIPE)])
    with pytest.raises(TypeError):
        main.run()


@pytest.mark.parametrize(
    ("variables", "allowed"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colour_depends_on_the_terminal_and_no_color(
    variables: dict[str, str], allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdout", Terminal())
    assert ("\x1b" in output.styled("word", bold=True)) == allowed


def test_invalid_run_folder_and_invalid_split_are_rejected(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert "is a file, not a run folder" in run_cli("translate", file).stderr
    assert "no such run folder" in run_cli("evaluate", tmp_path, "--against", "nope").stderr
    result = run_cli("evaluate", tmp_path, "--split", "tset")
    assert result.exit_code == 2
    assert "'tset' is not one of 'test', 'dev', 'train'" in result.error


def test_schema_prints_the_json_schema_of_recipes() -> None:
    result = run_cli("schema")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["title"] == "seqloom recipe"


@pytest.mark.parametrize(("command", "option", "new"), [(*old, new) for old, new in MOVED.items()])
def test_an_option_that_is_now_a_command_names_the_command(
    command: str, option: str, new: str
) -> None:
    result = run_cli(command, "runs/any", f"{option}=x")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"`{command} {option}` is now `seqloom {new}`." in result.error
    assert run_cli(*new.split(), "--help").exit_code == 0
