"""Command and group classes that adjust how typer prints help and errors.

typer shows the Python type of every parameter: `<bool>` beside a flag, `<list[Path]>` beside an
argument. These classes show no type for a flag, and only the metavar for an argument.
typer also keeps the line breaks of docstrings. These classes wrap paragraphs to the width of the
terminal.
"""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from seqloom.cli.process.interrupts import explained_interruption

MOVED = {
    ("align", "--find-heads"): "alignment-heads",
    ("align", "--gold"): "alignment-error",
    ("config", "--schema"): "schema",
    ("explain", "--example"): "example attention",
    ("gradients", "--lines"): "gradient-profile",
    ("search", "--example"): "example search",
    ("translate", "--input"): "translate-files",
}
"""Options that are now commands: (command, option) -> new command."""


class _Argument(TyperArgument):
    """A positional argument. The help shows its metavar, but not its type."""

    def display_type_rich(self, ctx: Any) -> str | None:
        return None

    def get_usage_pieces(self, ctx: Any) -> list[str]:
        return [self.metavar or self.name]


def _hide_python_types(parameters: Sequence[Any]) -> None:
    for parameter in parameters:
        if isinstance(parameter, TyperArgument):
            # typer creates its arguments itself and offers no way to choose their class.
            parameter.__class__ = _Argument
        elif isinstance(parameter, TyperOption) and parameter.is_flag:
            parameter.metavar = ""


class Command(TyperCommand):
    """A command whose help contains no Python types and no line breaks within paragraphs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        paragraphs = (self.help or "").split("\n\n")
        self.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)

    def get_params(self, ctx: Any) -> Any:
        parameters = super().get_params(ctx)
        _hide_python_types(parameters)
        return parameters

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        for (command, option), new in MOVED.items():
            if command == self.name and any(arg.partition("=")[0] == option for arg in args):
                ctx.fail(f"`{command} {option}` is now `seqloom {new}`.")
        return super().parse_args(ctx, args)


class CommandGroup(TyperGroup):
    """The group of all commands. The error for an unknown command suggests similar commands.

    If no command is similar, the error lists all commands.
    """

    def get_params(self, ctx: Any) -> Any:
        parameters = super().get_params(ctx)
        _hide_python_types(parameters)
        return parameters

    def invoke(self, ctx: Any) -> Any:
        # typer turns a KeyboardInterrupt into exit code 130 without a message.
        with explained_interruption():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, commands = args[0], self.list_commands(ctx)
        if name not in commands and not get_close_matches(name, commands):
            ctx.fail(f"No such command '{name}'. Available commands: {', '.join(commands)}.")
        return super().resolve_command(ctx, args)
