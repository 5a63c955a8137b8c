"""The options --quiet, --threads and --device.

They can be given before or after the name of a command. --threads and --device set environment
variables before torch is imported, so they also apply to processes that the command starts.
"""

import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, get_type_hints

import typer

from seqloom.cli.output import set_quiet
from seqloom.core.device_setting import DEVICE_VARIABLE
from seqloom.core.threads import THREADS_VARIABLE, set_threads

HELP_PANEL = "Global options"


@contextmanager
def restored_settings() -> Iterator[None]:
    """Context manager that undoes the effect of --quiet, --threads and --device after the block."""
    saved = {name: os.environ.get(name) for name in (THREADS_VARIABLE, DEVICE_VARIABLE)}
    try:
        yield
    finally:
        set_quiet(False)
        for name, value in saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _apply_quiet(value: bool) -> bool:
    if value:
        set_quiet(True)
    return value


def _apply_threads(value: int | None) -> int | None:
    if value is not None:
        set_threads(value)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(value)
    return value


def _apply_device(value: str | None) -> str | None:
    if value is not None:
        if not re.fullmatch(r"cpu|cuda(:\d+)?", value):
            raise typer.BadParameter(
                f"'{value}' is not a device. Use cpu, cuda, or cuda:1 for the second GPU."
            )
        os.environ[DEVICE_VARIABLE] = value
    return value


Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        help="Print only warnings and errors.",
        callback=_apply_quiet,
        rich_help_panel=HELP_PANEL,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        min=1,
        help="Number of CPU threads. Default: OMP_NUM_THREADS, or all cores.",
        callback=_apply_threads,
        rich_help_panel=HELP_PANEL,
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="DEVICE",
        help="cpu, cuda or cuda:1. Default: SEQLOOM_DEVICE, or a GPU.",
        callback=_apply_device,
        rich_help_panel=HELP_PANEL,
    ),
]


def with_global_options(command: Callable[..., None], uses_model: bool) -> Callable[..., None]:
    """Return the command with the global options as additional parameters.

    uses_model: True if the command computes with torch. Other commands get only --quiet.
    """
    options: dict[str, tuple[Any, Any]] = {"quiet": (Quiet, False)}
    if uses_model:
        options |= {"threads": (Threads, None), "device": (Device, None)}

    @functools.wraps(command)
    def run(**arguments: Any) -> None:
        # The callbacks of the options have already applied them.
        command(**{name: value for name, value in arguments.items() if name not in options})

    hints = get_type_hints(command, include_extras=True)
    signature = inspect.signature(command)
    own = [
        parameter.replace(annotation=hints[name])
        for name, parameter in signature.parameters.items()
    ]
    added = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )
        for name, (annotation, default) in options.items()
    ]
    run.__annotations__ = hints | {name: annotation for name, (annotation, _) in options.items()}
    run.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    return run
