"""The names of the runs in the catalogue."""

from pathlib import Path

import pytest

from seqloom.serving.server.catalogue import _unique_names


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["demo", "plain"], ["demo", "plain"]),
        (["demo", "demo", "demo"], ["demo", "demo-2", "demo-3"]),
        (["demo-3", "demo", "demo"], ["demo-3", "demo", "demo-2"]),
        (["demo", "demo", "demo-2"], ["demo", "demo-3", "demo-2"]),
        (["demo-2", "demo", "demo", "demo-2"], ["demo-2", "demo", "demo-3", "demo-2-2"]),
    ],
)
def test_every_run_has_a_name_of_its_own(folders: list[str], names: list[str]) -> None:
    paths = [Path(f"runs-{index}") / name for index, name in enumerate(folders)]
    assert _unique_names(paths) == names
