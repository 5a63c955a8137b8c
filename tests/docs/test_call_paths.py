"""The call paths that ARCHITECTURE.md shows are the measured ones, and they are short."""

import pytest

from tools import call_paths


@pytest.mark.slow
def test_architecture_md_shows_the_measured_paths_and_they_are_short(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call_paths.main(["--check"]) == 0, capsys.readouterr().out


def test_a_table_replaces_the_first_block_after_its_heading() -> None:
    page = "## A\n\n```text\n1  one\n```\n\n## B\n\nWords.\n\n```text\n2  two\n```\nEnd.\n"
    assert call_paths.with_table(page, "## B", "3  three\n") == page.replace("2  two", "3  three")
