"""What is said about growth follows from what was measured."""

from pathlib import Path
from typing import Any

import pytest

from bench.growth import table
from bench.growth.figures import slope
from bench.growth.pairs import write_pairs
from bench.growth.table import above_smallest, tokenising

MIB = 2**20


def run(opening: float, resident: int) -> dict[str, Any]:
    phases = ("importing", "vocabulary", "opening", "warming up", "training")
    clocks = {"importing": 1.0, "vocabulary": 2.0, "opening": 2.0 + opening}
    clocks |= {"warming up": 10.0 + opening, "training": 20.0 + opening}
    return {
        "steps": 200,
        "peaks": {phase: {"resident": resident, "anonymous": resident // 2} for phase in phases},
        "ends": {phase: {"seconds": clocks[phase], "processor": clocks[phase]} for phase in phases},
    }


def corpus(pairs: int, cold: float, resident: int) -> dict[str, Any]:
    return {"pairs": pairs, "cold": run(cold, resident), "warm": run(0.5, resident)}


def test_the_slope_of_a_power_is_its_exponent() -> None:
    sizes = [8, 16, 32, 64]
    assert slope(sizes, [3 * size**1.5 for size in sizes]) == pytest.approx(1.5)


def test_rows_say_pairs_a_second_time_to_the_first_step_and_memory_above_the_smallest() -> None:
    corpora = [corpus(10, 0.6, 100 * MIB), corpus(10_000, 4.5, 300 * MIB)]
    assert tokenising(corpora[0]) is None
    assert tokenising(corpora[1]) == pytest.approx(4.0)
    assert above_smallest(corpora, "resident") == [0, 200 * MIB]
    rows = table({"corpora": corpora}).splitlines()
    assert rows[-2:] == [
        "| 10 | – | 100 | 1.5 | 15 | 0 (0) |",
        "| 10,000 | 2,500 | 300 | 1.5 | 15 | 200 (100) |",
    ]


def test_made_up_pairs_are_as_many_as_wanted_and_begin_alike(tmp_path: Path) -> None:
    write_pairs(tmp_path / "few", 20)
    write_pairs(tmp_path / "many", 50)
    few, many = ((tmp_path / name).read_text().splitlines() for name in ("few", "many"))
    assert (len(few), len(many)) == (20, 50)
    assert many[:20] == few
    assert all(all(side.strip() for side in line.split("\t")) for line in many)
