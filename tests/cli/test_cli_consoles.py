"""Consoles and tables of the command line."""

from collections.abc import Callable

import pytest
from rich.console import Console

from seqloom.cli.tables import make_table, stderr_console, stdout_console

TEXT = ":smile: [bold]x[/bold]"


@pytest.mark.parametrize("console", [stdout_console, stderr_console])
def test_texts_are_printed_as_they_are(
    console: Callable[[], Console], capsys: pytest.CaptureFixture[str]
) -> None:
    console().print(TEXT)
    console().print(make_table([TEXT], [[TEXT]]))
    captured = capsys.readouterr()
    assert [line.rstrip() for line in (captured.out + captured.err).splitlines()] == [TEXT] * 3
