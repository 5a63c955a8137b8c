"""Options of commands that are derived from `PredictionOptions`.

    @with_prediction_options("translate-file")
    def translate_file(run_folder: RunFolder, options: PredictionOptions) -> None: ...

In the help, the options of the command stand in place of the parameter `options`. Which options a
command has, and their names, defaults and descriptions, are in `inference/options.py`.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from seqloom.cli.options import ADVANCED
from seqloom.inference.options import OPTION_TYPES, OPTIONS, PredictionOptions
from seqloom.text.glossary import Glossary, read_glossary

GLOSSARY_FILE = "The file is a text file with lines `source phrase TAB target phrase`."


def with_prediction_options(
    command_name: str,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command: replace its parameter `options` by the prediction options that it has.

    The command receives a `PredictionOptions` with the given values.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        added = {
            name: _parameter(command_name, name)
            for name, option in OPTIONS.items()
            if command_name in option.commands
        }

        @functools.wraps(command)
        def run(**arguments: Any) -> None:
            values = {name: arguments.pop(parameter.name) for name, parameter in added.items()}
            command(**arguments, options=PredictionOptions(**_read_files(values)))

        hints = get_type_hints(command, include_extras=True)
        parameters: list[inspect.Parameter] = []
        for name, parameter in inspect.signature(command).parameters.items():
            if name == "options":
                parameters += added.values()
            else:
                kind = inspect.Parameter.KEYWORD_ONLY
                parameters.append(parameter.replace(kind=kind, annotation=hints[name]))
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        vars(run)["__signature__"] = inspect.Signature(parameters)
        return run

    return decorate


def _parameter(command_name: str, name: str) -> inspect.Parameter:
    """Return the parameter with which typer adds an option to a command."""
    option, kind = OPTIONS[name], OPTION_TYPES[name]
    parameter_name = option.names.get(command_name, name)
    help, metavar = option.help, option.metavar or None
    if Glossary in get_args(kind):
        kind, help, metavar = Path | None, f"{help} {GLOSSARY_FILE}", "FILE"
    elif Sequence[str] in get_args(kind):  # several languages
        kind = str | None
    flag = f"--{parameter_name.replace('_', '-')}"
    if bool in get_args(kind):
        flag = f"{flag}/--no-{flag.removeprefix('--')}"
    typer_option = typer.Option(
        flag,
        metavar=metavar,
        min=option.at_least,
        max=option.at_most,
        help=help,
        rich_help_panel=ADVANCED if option.advanced else None,
    )
    return inspect.Parameter(
        parameter_name,
        inspect.Parameter.KEYWORD_ONLY,
        default=getattr(PredictionOptions, name),
        annotation=Annotated[kind, typer_option],
    )


def _read_files(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of options, with the content of a glossary file instead of its path."""
    path = values.get("glossary")
    return values if path is None else {**values, "glossary": read_glossary(path)}
