"""The list of bugs in tools/mutants.toml fits the source. `make campaign` runs the tests with the bugs."""

from collections import Counter
from pathlib import Path

import pytest

from tools.mutants import ROOT, Mutant, format_table, read_mutants

MUTANTS = read_mutants()


def test_every_bug_changes_one_place_and_leaves_valid_python() -> None:
    for mutant in MUTANTS:
        changed = mutant.apply(ROOT / "src")
        assert mutant.old != mutant.new, mutant.bug
        compile(changed, mutant.file, "exec")


def test_every_bug_names_existing_tests() -> None:
    for mutant in MUTANTS:
        assert mutant.tests, mutant.bug
        assert all((ROOT / test.split("::")[0]).is_file() for test in mutant.tests), mutant.bug


def test_there_are_fifty_different_bugs() -> None:
    assert len(MUTANTS) >= 50
    assert max(Counter(mutant.bug for mutant in MUTANTS).values()) == 1


@pytest.mark.parametrize("text", ["", "old old"])
def test_a_text_that_does_not_occur_once_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "seqloom").mkdir()
    (tmp_path / "seqloom" / "a.py").write_text(text, encoding="utf-8")
    mutant = Mutant("area", "the bug", "a.py", "old", "new", ("tests/a.py",))
    with pytest.raises(
        ValueError, match=rf"the bug: the old text occurs {text.count('old')} times in a.py"
    ):
        mutant.apply(tmp_path)


def test_the_table_names_survivors() -> None:
    table = format_table([(MUTANTS[0], True), (MUTANTS[1], False)])
    assert "1 of 2 bugs are noticed" in table
    assert table.count("| noticed |") == table.count("| **survived** |") == 1
