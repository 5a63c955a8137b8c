"""The command line as users have learned it. A change here is a change for all of them."""

from pathlib import Path

import pytest
from typer.main import get_command

from seqloom.cli.main import app
from seqloom.cli.output import program

SURFACE = {
    "demo": {"--run", "--set"},
    "train": {"RECIPE", "--run", "--set", "--resume", "--progress"},
    "translate": {
        *("RUN", "[FILE]...", "--beam", "--n-best", "--scores", "--alignments", "--json", "--set"),
        *("--with", "--engine", "--to", "--through"),
    },
    "complete": {
        *("RUN", "[PROMPT]...", "--samples", "--temperature", "--top-k", "--top-p", "--seed"),
        *("--set", "--with"),
    },
    "caption": {"RUN", "IMAGE...", "--show", "--beam", "--json", "--set", "--with"},
    "forecast": {"RUN", "FILE", "--json"},
    "label": {"RUN", "[TEXT]...", "--all", "--json", "--with"},
    "evaluate": {
        *("RUN", "--split", "--against", "--beam", "--json", "--set", "--with", "--lowercase"),
        "--engine",
    },
    "score": {"RUN", "SOURCE", "[TARGET]", "--per-token", "--with"},
    "lab": {"[CLAIM]...", "--size", "--seeds", "--out", "--jobs", "--json"},
    "search": {
        *("RUN", "[TEXT]", "--beam", "--n-best", "--instead", "--all", "--out", "--json", "--set"),
        *("--with", "--to"),
    },
    "slips": {"RUN", "[FILE]...", "--split", "--first", "--out", "--json", "--with"},
    "compare": {
        *("RUN", "[FILE]...", "--text", "--split", "--shown", "--beam", "--out", "--json", "--set"),
    },
    "explain": {
        *("[RUN]", "[TEXT]", "--step", "--target", "--layer", "--head", "--full", "--beam"),
        *("--json", "--set", "--example"),
    },
    "gradients": {"RUN", "TEXT", "[TARGET]", "--step", "--lines", "--out", "--json"},
    "serve": {
        *("RUN...", "--host", "--port", "--engine", "--languages", "--keys", "--limit"),
        "--metrics-port",
    },
    "doctor": {"RECIPE", "--set", "--json"},
    "config": {"RECIPE", "--set"},
    "inspect": {
        *("RUN", "[TEXT]...", "--out", "--layer", "--head", "--pieces", "--n-best", "--beam"),
        *("--plain", "--json", "--set", "--with", "--to"),
    },
    "align": {
        *("RUN", "SOURCE", "[TARGET]", "--soft", "--gold", "--find-heads", "--reverse"),
        *("--symmetrise", "--json", "--with"),
    },
}
EVERYWHERE = {"--version", "--install-completion", "--show-completion"}


def names_of(command: object) -> set[str]:
    """Options by their long name, arguments by what help calls them."""
    parameters = getattr(command, "params", [])
    found = {
        parameter.opts[0] if parameter.param_type_name == "option" else parameter.metavar
        for parameter in parameters
    }
    return found - {"-h", "--help"}


def test_the_commands_and_their_options_are_these() -> None:
    group = get_command(app)
    commands = getattr(group, "commands", {})
    assert {name: names_of(command) for name, command in commands.items()} == SURFACE
    assert names_of(group) == EVERYWHERE


def test_every_command_and_every_option_explains_itself() -> None:
    commands = getattr(get_command(app), "commands", {})
    for name, command in commands.items():
        assert command.help, name
        assert f"seqloom {name}" in command.epilog
        assert command.epilog.startswith("Example: ")
        assert all(parameter.help for parameter in command.params), name


def test_the_next_command_is_one_that_can_be_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From an environment that is not activated, the bare name would not be found."""
    away = tmp_path / "bin" / "seqloom"
    away.parent.mkdir()
    away.write_text("#!/bin/sh\n", encoding="utf-8")
    away.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(away)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert program() == str(away)
    monkeypatch.setenv("PATH", str(away.parent))
    assert program() == "seqloom"
    monkeypatch.setattr("sys.argv", ["/usr/bin/pytest"])
    assert program() == "seqloom"
