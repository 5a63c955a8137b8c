"""Measuring: once, side by side, and by the code that is there now."""

import importlib.util
import math
import sys
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seqloom.lab import laboratory
from seqloom.lab.claims.scale import CLAIM
from seqloom.lab.code import code_of
from seqloom.lab.laboratory import Place, carry_out, jobs_of, results_of

CODE = '''"""A claim."""
from seqloom.lab.results import Results


def measure(trial: object) -> dict[str, float]:
    """What is measured."""
    return {"x": 1.0}  # always


def judge(results: Results) -> bool:
    return True


CLAIM = "it is so"
'''


def digest(folder: Path, name: str, text: str) -> str:
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        return code_of(name)
    finally:
        del sys.modules[name]


def test_other_words_do_not_ask_for_other_numbers_but_other_code_does(tmp_path: Path) -> None:
    before = digest(tmp_path, "claim_before", CODE)
    worded = CODE.replace("it is so", "so it is").replace("return True", "return False")
    worded = worded.replace("# always", "# for now").replace("What is measured", "Measured")
    assert digest(tmp_path, "claim_worded", worded) == before
    assert digest(tmp_path, "claim_changed", CODE.replace("1.0", "2.0")) != before


def test_processes_side_by_side_measure_what_one_alone_measures(tmp_path: Path) -> None:
    places = [Place(tmp_path / name, "scale", "tiny") for name in ("alone", "beside")]
    for place, at_once in zip(places, (1, 2), strict=True):
        assert not carry_out(jobs_of(place, range(1, 2)), at_once, lambda job, words, share: None)
    alone, beside = (results_of(place, range(1, 2)) for place in places)
    assert [one.numbers for one in alone.measurements] == [
        one.numbers for one in beside.measurements
    ]


def test_what_is_no_number_is_no_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = replace(CLAIM, measure=lambda trial: {"x": 1.0, "slope": math.nan})
    monkeypatch.setattr(laboratory, "find_claim", lambda name: claim)
    [job, *_] = jobs_of(Place(tmp_path, "scale", "tiny"), range(1, 2))
    trouble = carry_out([job], 1, lambda job, words, share: None)
    assert str(trouble[job]).startswith("slope came out as no number")
    assert not job.path.exists()


class Killed:
    """A pool whose processes die as soon as they have something to do."""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> "Killed":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, *_: object) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_exception(BrokenProcessPool("gone"))
        return future


def test_a_process_that_was_killed_is_told_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(laboratory, "ProcessPoolExecutor", Killed)
    jobs = jobs_of(Place(tmp_path, "scale", "tiny"), range(1, 2))
    trouble = carry_out(jobs, 2, lambda job, words, share: None)
    assert set(trouble) == set(jobs)
    assert all("start again with fewer --jobs" in str(error) for error in trouble.values())
