"""seqloom lab: what there is, what comes of it, and what is refused."""

import json
from pathlib import Path

import pytest
from calling import call

from seqloom.lab.names import claim_names


def test_without_a_name_every_claim_is_listed_with_its_state(tmp_path: Path) -> None:
    before = call("lab", "--out", tmp_path)
    assert before.code == 0
    assert before.out.count("not yet run") == len(claim_names())
    call("lab", "scale", "--out", tmp_path)
    after = call("lab", "--out", tmp_path).out
    assert "scale  confirmed (small, 3 seeds)" in after
    assert after.count("not yet run") == len(claim_names()) - 1
    listed = {one["claim"]: one for one in json.loads(call("lab", "--json", "--out", tmp_path).out)}
    assert listed["scale"]["reports"]["small"]["verdict"]["state"] == "confirmed"


def test_a_claim_is_measured_once_and_reported_for_people_and_programs(tmp_path: Path) -> None:
    first = call("lab", "scale", "--size", "tiny", "--out", tmp_path)
    assert first.code == 0
    assert "9/9  scale: d, seed 3: done" in first.err
    assert "only shows that the experiment runs" in first.out
    again = call("lab", "scale", "--size", "tiny", "--json", "--out", tmp_path)
    assert "9/9  scale: d, seed 3: known" in again.err
    folder = tmp_path / "tiny" / "scale"
    assert json.loads(again.out) == [json.loads((folder / "report.json").read_bytes())]
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_another_seed_adds_to_what_is_known(tmp_path: Path) -> None:
    call("lab", "scale", "--size", "tiny", "--seeds", "1", "--out", tmp_path)
    more = call("lab", "scale", "--size", "tiny", "--seeds", "2", "--out", tmp_path)
    assert more.err.count("known") == 3
    assert more.err.count("done") == 3


def test_seeds_that_no_design_has_seen_can_be_asked_for(tmp_path: Path) -> None:
    fresh = call("lab", "scale", "--size", "tiny", "--seeds", "11-13", "--out", tmp_path, "--json")
    assert fresh.code == 0, fresh.err
    assert json.loads(fresh.out)[0]["seeds"] == [11, 12, 13]
    page = (tmp_path / "tiny" / "scale" / "report.html").read_text(encoding="utf-8")
    assert "--seeds 11-13" in page


def test_a_damaged_measurement_is_made_again(tmp_path: Path) -> None:
    call("lab", "scale", "--size", "tiny", "--seeds", "1", "--out", tmp_path)
    [damaged, *_] = sorted((tmp_path / "tiny" / "scale" / "measured").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:20])
    assert (
        call("lab", "scale", "--size", "tiny", "--seeds", "1", "--out", tmp_path).err.count("done")
        == 1
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("scales",), "there is no claim 'scales' (did you mean scale?); `seqloom lab` lists them"),
        (("zzz", "scale", "qqq"), "there is no claim 'zzz'; there is no claim 'qqq'"),
        (("scale", "--size", "huge"), "there is no size 'huge'; there are tiny, small, full"),
        (("scale", "--seeds", "0"), "'0' says no seeds; give how many (3)"),
        (("scale", "--seeds", "5-3"), "'5-3' says no seeds"),
        (("scale", "--seeds", "1-9999"), "the first and the last (11-13), at most 1,000"),
    ],
)
def test_what_does_not_exist_is_refused_in_words(
    arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    answer = call("lab", *arguments, "--out", tmp_path / "out")
    assert answer.code != 0
    assert words in " ".join(answer.err.replace("│", " ").split())
    assert not (tmp_path / "out").exists()


def test_one_claim_that_cannot_be_tried_does_not_stop_the_others(
    tmp_path: Path,
) -> None:
    (tmp_path / "tiny").mkdir(parents=True)
    (tmp_path / "tiny" / "hard-attention").write_text("in the way", encoding="utf-8")
    answer = call("lab", "hard-attention", "scale", "--size", "tiny", "--out", tmp_path)
    assert answer.code == 1
    assert "error: hard-attention: exact match, seed 1: " in answer.err
    assert (tmp_path / "tiny" / "scale" / "report.html").exists()
