"""train --from, doctor --from, info, pack and unpack, on small runs."""

import json
from pathlib import Path

import pytest

from support.cli_runner import run_cli, set_options

pytestmark = pytest.mark.slow
SHORT = set_options("training.steps=4", "training.evaluate_every=2")


@pytest.fixture(scope="module")
def parent(recipes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "parent"
    assert run_cli("train", recipes / "reverse.toml", "--run", folder, *SHORT).exit_code == 0
    return folder


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe that contains only data: words in capitals, which the parent does not know."""
    lines = [f"{word}\t{word[::-1]}\n" for word in ("AB", "abX", "ba", "cab", "XYZ")] * 8
    (tmp_path / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    path = tmp_path / "new.toml"
    train = f'{{ kind = "tsv", path = "{tmp_path}/pairs.tsv" }}'
    path.write_text(f"[data]\ntrain = {train}\ndev = {train}\n", encoding="utf-8")
    return path


def test_a_run_is_fine_tuned_described_and_packed(
    parent: Path, recipe: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "child"
    trained = run_cli("train", recipe, "--from", parent, "--run", folder, *SHORT)
    assert trained.exit_code == 0
    assert "fine-tuning uses" in trained.stderr
    assert "step 0  dev loss" in trained.stderr
    assert "  general loss" in trained.stderr
    assert "before training" in trained.stderr
    described = run_cli("info", folder)
    assert f"fine-tuned from    {parent}" in described.stdout
    file = tmp_path / "model.seqloom"
    assert run_cli("pack", folder, file).exit_code == 0
    record = json.loads(run_cli("info", file, "--json").stdout)
    assert record["bytes"] == file.stat().st_size
    assert record["parent"]["run"] == str(parent)
    outputs = [run_cli("translate", each, stdin=b"ab\nba\n").stdout for each in (folder, file)]
    assert outputs[0] == outputs[1]
    evaluated = run_cli("evaluate", file, "--split", "dev")
    assert evaluated.exit_code == 0
    assert "not stored, because this is a packed run" in evaluated.stderr
    assert run_cli("unpack", file, tmp_path / "copy").exit_code == 0
    assert run_cli("evaluate", tmp_path / "copy", "--split", "dev").stderr.startswith("Outputs and")
    again = run_cli("train", recipe, "--from", file, "--run", tmp_path / "again", *SHORT)
    assert again.exit_code == 0


def test_doctor_compares_the_vocabulary_of_the_parent_with_the_data(
    parent: Path, recipe: Path
) -> None:
    result = run_cli("doctor", recipe, "--from", parent)
    assert "vocabulary of the parent, source:" in result.stdout
    assert "in the parent's data" in result.stdout
    assert "fine-tuning cannot learn them" in result.stdout
    record = json.loads(run_cli("doctor", recipe, "--from", parent, "--json").stdout)
    (source, _) = record["vocabulary_fit"]
    assert source["new"]["unknown"] > 0
    assert source["parent"]["unknown"] == 0
    assert source["new"]["pieces_per_word"] > 1


def test_usage_errors_say_what_to_do(parent: Path, recipe: Path, tmp_path: Path) -> None:
    missing = run_cli("train", recipe, "--from", tmp_path / "nowhere", "--run", tmp_path / "x")
    assert missing.exit_code == 66
    assert "no such run folder" in missing.stderr
    alone = run_cli("train", recipe, "--set", "training.start.optimizer=continued")
    assert alone.exit_code == 78
    assert "training.start.run: is missing" in alone.stderr
    other = run_cli("train", recipe, "--from", parent, *set_options("model.decoder.width=64"))
    assert other.exit_code == 78
    assert "model.decoder.width: " in other.stderr
    folder = run_cli("pack", parent, tmp_path)
    assert folder.exit_code == 78
    assert "is a folder" in folder.stderr
    damaged = tmp_path / "damaged.seqloom"
    run_cli("pack", parent, damaged)
    damaged.write_bytes(damaged.read_bytes()[:-100])
    result = run_cli("translate", damaged)
    assert result.exit_code == 74
    assert "is damaged" in result.stderr
