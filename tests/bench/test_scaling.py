"""The tables of the scaling benchmark and its synthetic data."""

from pathlib import Path
from typing import Any

import pytest

from bench.scaling.metrics import growth_exponent
from bench.scaling.program import memory_above_smallest, table, tokenising_seconds
from bench.scaling.synthetic_pairs import write_pairs

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


def test_the_growth_exponent_of_a_power_is_its_exponent() -> None:
    sizes = [8, 16, 32, 64]
    assert growth_exponent(sizes, [3 * size**1.5 for size in sizes]) == pytest.approx(1.5)


def test_rows_have_tokenising_speed_time_to_the_first_step_and_memory() -> None:
    corpora = [corpus(10, 0.6, 100 * MIB), corpus(10_000, 4.5, 300 * MIB)]
    assert tokenising_seconds(corpora[0]) is None
    assert tokenising_seconds(corpora[1]) == pytest.approx(4.0)
    assert memory_above_smallest(corpora, "resident") == [0, 200 * MIB]
    rows = table({"corpora": corpora}).splitlines()
    assert rows[-2:] == [
        "| 10 | – | 100 | 1.5 | 15 | 0 (0) |",
        "| 10,000 | 2,500 | 300 | 1.5 | 15 | 200 (100) |",
    ]


def test_a_short_file_of_synthetic_pairs_is_the_start_of_a_long_one(tmp_path: Path) -> None:
    write_pairs(tmp_path / "short", 20)
    write_pairs(tmp_path / "long", 50)
    short, long = ((tmp_path / name).read_text().splitlines() for name in ("short", "long"))
    assert (len(short), len(long)) == (20, 50)
    assert long[:20] == short
    assert all(all(side.strip() for side in line.split("\t")) for line in long)
