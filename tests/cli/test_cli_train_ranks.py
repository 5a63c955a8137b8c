"""`seqloom train` as one of several ranks prints each error once."""

from pathlib import Path

import pytest

from cli_runner import run_cli


@pytest.mark.parametrize(("rank", "printed"), [(0, True), (1, False)])
def test_an_invalid_recipe_is_reported_by_the_first_rank_of_a_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: int, printed: bool
) -> None:
    monkeypatch.setenv("LOCAL_RANK", str(rank))
    result = run_cli("train", tmp_path / "missing.toml")
    assert result.exit_code != 0
    assert ("missing.toml" in result.stderr) == printed
