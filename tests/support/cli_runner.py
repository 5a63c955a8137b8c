"""Runs the command line in this process."""

import io
import sys
from dataclasses import dataclass
from functools import cache
from typing import cast

import pytest
import typer.main
from typer.core import TyperCommand, TyperGroup

from seqloom.cli.main import app, run


@dataclass(frozen=True)
class CliResult:
    exit_code: int
    stdout: str
    stderr: str

    @property
    def error(self) -> str:
        """stderr without line breaks and the frame that typer draws around usage errors."""
        return " ".join(self.stderr.replace("│", " ").split())


class TerminalStream(io.TextIOWrapper):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


build_command = cache(typer.main.get_command)
"""Builds the commands of an application once. This takes longer than most commands."""


def run_cli(*arguments: object, stdin: bytes = b"", terminal: bool = False) -> CliResult:
    """Run `seqloom` with these arguments and this standard input.

    terminal: stderr claims to be a terminal
    """
    buffers = (io.BytesIO(), io.BytesIO())
    out = io.TextIOWrapper(buffers[0], encoding="ascii", newline="")
    stream = TerminalStream if terminal else io.TextIOWrapper
    err = stream(buffers[1], encoding="ascii", newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", build_command)
        patch.setattr(sys, "argv", ["seqloom", *(str(argument) for argument in arguments)])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as caught:
            run()
        out.flush()
        err.flush()
    code = caught.value.code
    assert code is None or isinstance(code, int)
    stdout, stderr = (buffer.getvalue().decode() for buffer in buffers)
    return CliResult(code or 0, stdout, stderr)


def set_options(*settings: str) -> list[str]:
    """["--set", setting] for each setting."""
    return [argument for setting in settings for argument in ("--set", setting)]


def all_commands() -> dict[str, TyperCommand]:
    """Return all commands by name. Commands of groups have names such as "draw search"."""
    commands: dict[str, TyperCommand] = {}
    for name, command in cast(TyperGroup, build_command(app)).commands.items():
        if isinstance(command, TyperGroup):
            members = cast(dict[str, TyperCommand], command.commands)
            commands |= {f"{name} {member}": each for member, each in members.items()}
        else:
            commands[name] = cast(TyperCommand, command)
    return commands


def split_command(arguments: list[str]) -> tuple[str, list[str]]:
    """Split a command line, without the word "seqloom", into the command and its arguments."""
    count = 1 if arguments[0] in all_commands() else 2
    return " ".join(arguments[:count]), arguments[count:]
