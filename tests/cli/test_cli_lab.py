"""seqloom lab."""

import json
from pathlib import Path

import pytest

from seqloom.lab.registry import claim_names
from support.cli_runner import run_cli

pytestmark = pytest.mark.slow


def test_claims_are_listed_with_their_verdicts(tmp_path: Path) -> None:
    before = run_cli("lab", "--out", tmp_path)
    assert before.exit_code == 0
    assert before.stdout.count("not tested") == len(claim_names())
    run_cli("lab", "scale", "--out", tmp_path)
    after = run_cli("lab", "--out", tmp_path).stdout
    assert "scale  confirmed (small, 3 seeds)" in after
    assert after.count("not tested") == len(claim_names()) - 1
    records = json.loads(run_cli("lab", "--json", "--out", tmp_path).stdout)
    listed = {record["claim"]: record for record in records}
    assert listed["scale"]["reports"]["small"]["verdict"]["state"] == "confirmed"


def test_measurements_are_reused_and_reports_are_html_and_json(tmp_path: Path) -> None:
    first = run_cli("lab", "scale", "--size", "tiny", "--out", tmp_path)
    assert first.exit_code == 0
    assert "9/9  scale: d, seed 3: done" in first.stderr
    again = run_cli("lab", "scale", "--size", "tiny", "--json", "--out", tmp_path)
    assert "9/9  scale: d, seed 3: cached" in again.stderr
    folder = tmp_path / "tiny" / "scale"
    assert json.loads(again.stdout)[0]["verdict"]["state"] == "undecided"  # tiny is too small
    assert json.loads(again.stdout) == [json.loads((folder / "report.json").read_bytes())]
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_another_seed_adds_to_existing_measurements(tmp_path: Path) -> None:
    run_cli("lab", "scale", "--size", "tiny", "--seeds", "1", "--out", tmp_path)
    more = run_cli("lab", "scale", "--size", "tiny", "--seeds", "2", "--out", tmp_path)
    assert more.stderr.count("cached") == 3
    assert more.stderr.count("done") == 3


def test_seeds_can_be_a_range(tmp_path: Path) -> None:
    result = run_cli(
        "lab", "scale", "--size", "tiny", "--seeds", "11-13", "--out", tmp_path, "--json"
    )
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)[0]["seeds"] == [11, 12, 13]
    page = (tmp_path / "tiny" / "scale" / "report.html").read_text(encoding="utf-8")
    assert "--seeds 11-13" in page


@pytest.mark.long
def test_a_claim_runs_with_as_many_seeds_as_its_verdict_needs(tmp_path: Path) -> None:
    result = run_cli("lab", "related-languages", "scale", "--size", "tiny", "--out", tmp_path)
    assert result.exit_code == 0, result.stderr
    seeds = {
        name: json.loads((tmp_path / "tiny" / name / "report.json").read_bytes())["seeds"]
        for name in ("related-languages", "scale")
    }
    assert seeds == {"related-languages": [1, 2, 3, 4, 5], "scale": [1, 2, 3]}


def test_damaged_measurement_is_repeated(tmp_path: Path) -> None:
    run_cli("lab", "scale", "--size", "tiny", "--seeds", "1", "--out", tmp_path)
    [damaged, *_] = sorted((tmp_path / "tiny" / "scale" / "measured").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:20])
    again = run_cli("lab", "scale", "--size", "tiny", "--seeds", "1", "--out", tmp_path)
    assert again.stderr.count("done") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("scales",), "'scales' (did you mean scale?)"),
        (("zzz", "scale", "qqq"), "'qqq'"),
        (("scale", "--size", "huge"), "'huge' is not one of 'tiny', 'small', 'full'"),
        (("scale", "--seeds", "0"), "'0': give a number of seeds"),
        (("scale", "--seeds", "5-3"), "'5-3': give a number of seeds"),
        (("scale", "--seeds", "1-9999"), "The maximum is 1,000 seeds"),
    ],
)
def test_unknown_claims_sizes_and_seeds_are_rejected(
    arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    result = run_cli("lab", *arguments, "--out", tmp_path / "out")
    assert result.exit_code != 0
    assert message in result.error
    assert not (tmp_path / "out").exists()


def test_failed_claim_does_not_stop_the_others(
    tmp_path: Path,
) -> None:
    (tmp_path / "tiny").mkdir(parents=True)
    (tmp_path / "tiny" / "hard-attention").write_text("in the way", encoding="utf-8")
    result = run_cli("lab", "hard-attention", "scale", "--size", "tiny", "--out", tmp_path)
    assert result.exit_code == 1
    assert "error: hard-attention: exact match, seed 1: " in result.stderr
    assert (tmp_path / "tiny" / "scale" / "report.html").exists()
