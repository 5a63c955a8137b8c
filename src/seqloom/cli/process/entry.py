"""Entry point of the program `seqloom`. Handles Ctrl-C while the other modules are imported."""

import os
import signal
from types import FrameType


def _exit_at_once(number: int, _: FrameType | None) -> None:
    os.write(2, b"Interrupted.\n")
    os._exit(128 + number)


def run() -> None:
    """Run the command line. Ctrl-C never shows a traceback."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, _exit_at_once)
    from seqloom.cli.main import run as run_command

    try:
        run_command()
    finally:
        # The command is done. Ctrl-C must not interrupt the shutdown of the interpreter.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
