"""Handles Ctrl-C: the command prints what was saved and how to continue. Its exit code is 130."""

import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import typer

from seqloom.cli.output import program_name
from seqloom.core.errors import SeqloomError

EXIT_CODE = 128 + signal.SIGINT
"""Exit code of a program that Ctrl-C ended."""


class CommandInterrupted(Exception):
    """Ctrl-C ended the command. The message says what was saved and how to continue."""


def _default_message() -> str:
    return "Interrupted."


class _Interrupts:
    """Whether the user pressed Ctrl-C, and the message to print in this case.

    received: True if the user pressed Ctrl-C. This flag is needed because Python sometimes replaces
              the KeyboardInterrupt by another exception, such as an ImportError.
    describe: function that returns the message
    """

    def __init__(self) -> None:
        self.received = False
        self.describe: Callable[[], str] = _default_message

    def handle(self, _number: int, _frame: FrameType | None) -> None:
        self.received = True
        raise KeyboardInterrupt


_interrupts = _Interrupts()


def set_interruption_message(describe: Callable[[], str]) -> None:
    """Set the message that is printed if Ctrl-C ends the current command.

    describe: function that returns the message, which says what was saved and how to continue. It
              is called after Ctrl-C.
    """
    _interrupts.describe = describe


@contextmanager
def catch_interrupts() -> Iterator[None]:
    """Context manager in which Ctrl-C raises CommandInterrupted instead of KeyboardInterrupt.

    Python sometimes replaces the KeyboardInterrupt by another exception, such as an ImportError.
    This context manager also replaces that exception by CommandInterrupted.

    Ctrl-C is not handled outside the main thread, or if the process ignores SIGINT, for example
    because a shell script started it in the background.
    """
    _interrupts.describe = _default_message
    previous = signal.getsignal(signal.SIGINT)
    in_main_thread = threading.current_thread() is threading.main_thread()
    if previous == signal.SIG_IGN or not in_main_thread:
        yield
        return
    _interrupts.received = False
    signal.signal(signal.SIGINT, _interrupts.handle)
    unraisable_hook = sys.unraisablehook
    sys.unraisablehook = _ignore_interrupts
    try:
        with explained_interruption():
            yield
    finally:
        sys.unraisablehook = unraisable_hook
        signal.signal(signal.SIGINT, previous)


def _ignore_interrupts(unraisable: "sys.UnraisableHookArgs") -> None:
    """Replaces `sys.unraisablehook`, and prints no traceback for a KeyboardInterrupt.

    Python calls this hook for exceptions that it cannot propagate, for example from a destructor.
    """
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)


@contextmanager
def explained_interruption() -> Iterator[None]:
    """Context manager in which Ctrl-C raises CommandInterrupted.

    The message of the exception is the one that `set_interruption_message` has set.
    """
    try:
        yield
    except BaseException as error:
        if not _is_interruption(error):
            raise
        # A second Ctrl-C must not interrupt the message.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise CommandInterrupted(_interrupts.describe()) from None


def _is_interruption(error: BaseException) -> bool:
    if isinstance(error, KeyboardInterrupt):
        return True
    if isinstance(error, SystemExit):  # typer turns a KeyboardInterrupt outside the command into it
        return _interrupts.received and error.code == EXIT_CODE
    is_own = isinstance(error, CommandInterrupted | SeqloomError | typer.Exit)
    return _interrupts.received and isinstance(error, Exception) and not is_own


def training_interrupted(folder: Path, start: str, resume: str | None = None) -> str:
    """Return the message for a training that Ctrl-C ended without saving its current state.

    The message names the last checkpoint of the run folder, if there is one.

    start:  the command to recommend if there is no run folder yet
    resume: the command that resumes the training. Default: `seqloom train FOLDER --resume`
    """
    if not (folder / "config.toml").is_file():
        return (
            f"Interrupted before the first training step. {folder} was not created. Vocabularies "
            "and finished shards of tokenised data stay in the cache. To start again, run:\n"
            f"  {start}"
        )
    command = resume or f"{program_name()} train {shlex.quote(str(folder))} --resume"
    return f"Interrupted. {_last_checkpoint(folder)} To resume, run:\n  {command}"


def _last_checkpoint(folder: Path) -> str:
    """Return a sentence that says at which step the training would resume."""
    try:
        step = int((folder / "latest").read_text(encoding="utf-8").split()[0].removeprefix("step-"))
    except (OSError, ValueError, IndexError):
        return f"{folder} has no checkpoint yet, so training will start from the first step."
    return f"{folder} has the checkpoint of step {step:,}, from which training resumes."


def current_command(without: str = "") -> str:
    """Return the command line of this process, for messages that ask the user to repeat it.

    without: an option to leave out of the command line
    """
    arguments = [argument for argument in sys.argv[1:] if argument != without]
    return " ".join([program_name(), *map(shlex.quote, arguments)])
