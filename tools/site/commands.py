"""Writes the reference of the command line from the commands themselves."""

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from seqloom.cli.main import app
from tools.site.markdown import escape

GLOBAL_PANEL = "Global options"
"""Help panel of the options that commands share."""
INTRODUCTION = """\
# Commands and options

All commands, with the texts of `seqloom COMMAND --help`. Rules that hold for every command are on the page
[](/command-line.md).
"""


def render_commands() -> str:
    """Return the page in Markdown: every command by help panel, with arguments and options."""
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    panels: dict[str, list[str]] = {}
    for name, command in group.commands.items():
        assert isinstance(command, TyperCommand | TyperGroup)
        rendered = panels.setdefault(str(command.rich_help_panel), [])
        if isinstance(command, TyperGroup):
            rendered += [
                _render_command(f"{name} {sub}", each) for sub, each in command.commands.items()
            ]
        else:
            rendered.append(_render_command(name, command))
    parts = [INTRODUCTION, _render_shared(next(iter(group.commands.values())), group)]
    for panel, commands in panels.items():
        parts += [f"## {panel}\n", *commands]
    return "\n".join(parts)


def _render_shared(command: Any, group: TyperGroup) -> str:
    """Return the section on the options of `seqloom` itself and of all commands."""
    context = typer.Context(command, info_name="seqloom")
    shared = [each for each in command.get_params(context) if _is_global(each)]
    own = [each for each in group.get_params(context) if each.name not in {p.name for p in shared}]
    lines = [
        "## Global options\n",
        "`--quiet` belongs to all commands, `--threads` and `--device` to those that compute with torch.\n",
        "```{program} seqloom\n```\n",
    ]
    return "\n".join([*lines, *(_render_parameter(each, context) for each in (*shared, *own))])


def _render_command(name: str, command: Any) -> str:
    context = typer.Context(command, info_name=f"seqloom {name}")
    usage = command.get_usage(context).removeprefix("Usage: ")
    example = command.epilog.removeprefix("Example: ")
    parameters = [
        _render_parameter(each, context)
        for each in command.get_params(context)
        if not _is_global(each) and each.name != "help"
    ]
    return "\n".join(
        [
            f"(command-{name.replace(' ', '-')})=",
            f"### seqloom {name}\n",
            f"{escape(command.help)}\n",
            f"```text\n{usage}\n```\n",
            f"Example:\n\n```sh\n{example}\n```\n",
            f"```{{program}} seqloom {name}\n```\n",
            *parameters,
        ]
    )


def _is_global(parameter: Any) -> bool:
    return bool(getattr(parameter, "rich_help_panel", None) == GLOBAL_PANEL)


def _render_parameter(parameter: Any, context: typer.Context) -> str:
    """Return an argument or option with its help, as a target that other pages can link to."""
    names, text = parameter.get_help_record(context)
    signature = names.replace(" / ", ", ")
    return f"::::{{option}} {signature}\n{escape(text)}\n::::\n"
