"""Runs the command line in this process."""

import io
import sys
from dataclasses import dataclass

import pytest

from seqloom.cli.main import run


@dataclass(frozen=True)
class CliResult:
    exit_code: int
    stdout: str
    stderr: str

    @property
    def error(self) -> str:
        """stderr without line breaks and the frame that typer draws around usage errors."""
        return " ".join(self.stderr.replace("│", " ").split())


def run_cli(*arguments: object, stdin: bytes = b"") -> CliResult:
    """Run `seqloom` with these arguments and this standard input."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="")
    err = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="")
    with pytest.MonkeyPatch.context() as patch:
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
    stdout, stderr = (stream.buffer.getvalue().decode() for stream in (out, err))
    return CliResult(code or 0, stdout, stderr)


def set_options(*settings: str) -> list[str]:
    """["--set", setting] for each setting."""
    return [argument for setting in settings for argument in ("--set", setting)]
