"""Results go to stdout. Messages, progress and errors go to stderr."""

import json
from pathlib import Path

import pytest
from typer.core import TyperArgument

from support.cli_runner import all_commands, run_cli

COMMANDS = all_commands()
WITH_INPUT = [
    name
    for name, command in COMMANDS.items()
    if any(isinstance(each, TyperArgument) and each.required for each in command.params)
]
COLOUR = "\x1b[3"
"""Start of the codes that set a colour."""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_usage_error_leaves_stdout_empty(command: str) -> None:
    result = run_cli(*command.split(), "--no-such-option")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--no-such-option" in result.error


@pytest.mark.parametrize("command", WITH_INPUT)
def test_missing_input_leaves_stdout_empty(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    required = [
        each
        for each in COMMANDS[command].params
        if each.required and not isinstance(each, TyperArgument)
    ]
    options = [part for each in required for part in (each.opts[-1], "missing")]
    arguments = [
        f"missing-{number}"
        for number, each in enumerate(COMMANDS[command].params)
        if isinstance(each, TyperArgument) and each.required
    ]
    result = run_cli(*command.split(), *arguments, *options)
    assert result.exit_code in (2, 65, 66, 78), result.stderr
    assert result.stdout == ""
    assert result.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    "command",
    [
        ["translate", "RUN", "--json"],
        ["evaluate", "RUN", "--json"],
        ["info", "RUN", "--json"],
        ["runs", "RUNS", "--json"],
        ["inspect", "RUN", "ab", "--json"],
        ["search", "RUN", "ab", "--json"],
        ["explain", "RUN", "ab", "--json"],
        ["gradients", "RUN", "ab", "--json"],
        ["compare", "RUN", "RUN", "--text", "ab", "--json"],
        ["doctor", "RECIPE", "--json"],
        ["lookup", "--json"],
    ],
    ids=lambda command: command[0],
)
def test_stdout_holds_only_json_and_stderr_has_no_colour_with_no_color(
    command: list[str],
    recipes: Path,
    reverse: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    names = {
        "RUN": str(reverse),
        "RUNS": str(reverse.parent),
        "RECIPE": str(recipes / "reverse.toml"),
    }
    arguments = [names.get(argument, argument) for argument in command]
    result = run_cli(*arguments, stdin=b"ab\ncd\n", terminal=True)
    assert result.exit_code == 0, result.stderr
    try:
        json.loads(result.stdout)
    except json.JSONDecodeError:  # one JSON object per line
        assert all(json.loads(line) for line in result.stdout.splitlines())
    assert COLOUR not in result.stderr
