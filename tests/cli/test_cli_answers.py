"""Errors are sentences on stderr with an exit code; data alone are on stdout."""

import tomllib
from pathlib import Path

import pytest
from calling import call
from typer.main import get_command

from seqloom import __version__
from seqloom.cli import main, output
from seqloom.config.loading.bundled import bundled_recipes
from seqloom.config.loading.loader import load_recipe
from seqloom.core.errors import DataError

RECIPE = Path(__file__).parents[1] / "config" / "bundled-recipe.toml"


def test_the_version_is_told() -> None:
    assert call("--version").out == f"seqloom {__version__}\n"


def test_a_wrong_recipe_is_a_sentence_and_an_exit_code(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text("[trainin]\n", encoding="utf-8")
    answer = call("train", path)
    assert (answer.code, answer.out) == (78, "")
    assert answer.err.startswith(f"error: {path} cannot be used:\n  trainin: there is no such")


def test_config_puts_out_a_recipe() -> None:
    path = RECIPE
    answer = call("config", path, "--set", "training.clip=none", "--set", "decoding.width=3")
    expected = load_recipe(str(path), ["training.clip=none", "decoding.width=3"]).config
    assert load_recipe(tomllib.loads(answer.out)).config == expected
    assert answer.out.startswith("[task]\n")
    assert "width = 3  # (--set)" in answer.out
    assert "steps = 100  # (recipe): Optimiser steps." in answer.out
    assert "seed = 1  # (default)" in answer.out
    assert "# patience is left out (default): Stop after" in answer.out


@pytest.mark.parametrize("command", ["train", "config", "doctor"])
def test_help_names_every_bundled_recipe(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    answer = call(command, "--help")
    for name in bundled_recipes():
        assert name in answer.out


def test_a_mistyped_command_is_answered_with_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    near, far = call("trian"), call("xyzzy")
    assert near.code == far.code == 2
    assert "Did you mean 'train'?" in near.err
    known = getattr(get_command(main.app), "commands", {})
    assert f"There are {', '.join(known)}." in far.err
    assert "translate" in known


def test_settings_that_an_override_drops_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(
        '[data.train]\nkind="bundled"\nsource="de"\ntarget="en"\n[model]\n'
        'encoder={kind="recurrent", cell="rnn"}\ndecoder={kind="recurrent"}\n'
        "[training]\nsteps=9\n",
        encoding="utf-8",
    )
    answer = call("config", path, "--set", "model.encoder.kind=transformer")
    assert answer.code == 0
    assert answer.err.startswith("warning: --set model.encoder.kind=transformer: left out model.")


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (DataError("a.txt:3: is bad"), 65, "error: a.txt:3: is bad\n"),
        (KeyboardInterrupt(), 130, ""),
        (PermissionError(13, "Permission denied", "/x"), 74, "error: /x: Permission denied\n"),
        (OSError(28, "No space left on device"), 74, "error: No space left on device\n"),
    ],
)
def test_what_goes_wrong_ends_in_a_code_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    words: str,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("seqloom.config.loading.settings.lines", fail)
    answer = call("config", RECIPE)
    assert (answer.code, answer.out, answer.err) == (code, "", words)


def test_our_own_mistakes_do_show_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqloom.config.loading.settings.lines", None)
    monkeypatch.setattr("sys.argv", ["seqloom", "config", str(RECIPE)])
    with pytest.raises(TypeError):
        main.run()


@pytest.mark.parametrize(
    ("variables", "allowed"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colour_is_for_terminals_that_want_it(
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


def test_what_is_no_run_folder_and_what_is_no_split_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert "is a file, not a run folder" in call("translate", file).err
    assert "there is no such run folder" in call("evaluate", tmp_path, "--against", "nope").err
    answer = call("evaluate", tmp_path, "--split", "tset")
    assert answer.code == 2
    assert "'tset' is no split; there are test, dev and train" in answer.err
