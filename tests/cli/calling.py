"""The command line, called in this process."""

import io
import sys
from dataclasses import dataclass

import pytest

from seqloom.cli.main import run


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


def call(*arguments: object, given: bytes = b"") -> Answer:
    """Run the command line with these arguments and this on stdin."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="")
    err = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["seqloom", *(str(argument) for argument in arguments)])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as caught:
            run()
        out.flush()
        err.flush()
    code = caught.value.code
    assert code is None or isinstance(code, int)
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return Answer(code or 0, *texts)
