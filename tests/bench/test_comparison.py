"""The comparison harness: time windows, workers, rounds and the prepared corpus."""

import gzip
import sys
from pathlib import Path

import pytest

from bench.comparison import prepare, training
from bench.comparison.rounds import RoundPlan, Spread, ratio_spread, run_rounds, start_workers
from bench.comparison.systems import System
from bench.comparison.worker import Worker, WorkerError

LOOP = """
from bench.comparison.time_window import TimeWindow, TokenCounts
print("printed before the protocol starts")
window = TimeWindow()
print("printed after the protocol starts")
window.ready(version="1")
while True:
    window.finish_step()
    window.add_batch(TokenCounts(3, 4, 5, 8))
"""


@pytest.fixture
def loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> System:
    """A system whose training loop does nothing. `printing_loop` is the same with output."""
    (tmp_path / "silent_loop.py").write_text(LOOP.replace("print(", "len("))
    (tmp_path / "printing_loop.py").write_text(
        LOOP.replace('print("printed before', 'len("printed before')
    )
    monkeypatch.setattr("bench.comparison.worker.ROOT", tmp_path)
    root = Path(__file__).parents[2]
    (tmp_path / "bench").symlink_to(root / "bench")
    return System("loop", "a loop", "silent_loop")


def test_ratios_are_taken_within_a_round() -> None:
    """A machine that is three times slower in one round does not change the ratio."""
    assert ratio_spread([30.0, 10.0, 30.0], [15.0, 5.0, 15.0]) == Spread(2.0, 2.0, 2.0)


@pytest.mark.slow
def test_a_worker_trains_for_the_requested_time_and_counts_tokens(
    loop: System, tmp_path: Path
) -> None:
    worker = Worker(loop, [], tmp_path)
    worker.wait_until_ready()
    assert worker.description["version"] == "1"
    first, second = worker.request(seconds=0.05), worker.request(seconds=0.2)
    worker.close()
    assert 0.05 <= first["seconds"] < 0.2 <= second["seconds"]
    for window in (first, second):
        assert window["target_tokens"] == 5 * window["steps"] > 0
        assert window["source_positions"] == 4 * window["steps"]


@pytest.mark.slow
def test_output_of_a_peer_goes_to_the_log(loop: System, tmp_path: Path) -> None:
    worker = Worker(System("printing", "a printing loop", "printing_loop"), [], tmp_path)
    worker.wait_until_ready()
    assert worker.request(seconds=0.0)["steps"] == 1
    worker.close()
    assert "printed after" in (tmp_path / "printing.log").read_text()


@pytest.mark.slow
def test_a_system_that_does_not_start_is_reported_with_the_reason(
    loop: System, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text("raise RuntimeError('needs another torch')")
    broken = System("broken", "a broken system", "broken")
    missing = System("missing", "a missing system", "silent_loop", environment="missing")
    workers = start_workers([loop, broken, missing], [], tmp_path)
    responses = run_rounds(workers, [{"seconds": 0.01}], RoundPlan(rounds=2))
    assert len(responses["loop"]) == 2
    assert responses["broken"] == "RuntimeError: needs another torch"
    assert "not installed" in responses["missing"]
    worker = workers["loop"]
    assert isinstance(worker, Worker)
    worker.close()


@pytest.mark.slow
def test_a_worker_that_crashes_raises_an_error_with_the_reason(
    loop: System, tmp_path: Path
) -> None:
    (tmp_path / "crashing.py").write_text(
        "from bench.comparison.time_window import TimeWindow\n"
        "TimeWindow().ready(version='1')\n"
        "raise MemoryError('out of memory')"
    )
    worker = Worker(System("crashing", "a crashing system", "crashing"), [], tmp_path)
    worker.wait_until_ready()
    with pytest.raises(WorkerError, match="out of memory"):
        worker.request(seconds=0.01)
    worker.close()


@pytest.mark.slow
@pytest.mark.long
def test_seqloom_and_the_ceiling_are_measured_on_the_prepared_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    lines = [
        f"{first} {second} {first}" for first in ("ba", "de", "ki") for second in ("lo", "mu", "na")
    ]
    for name in ("train.de", "train.en", "val.de", "val.en"):
        with gzip.open(raw / f"{name}.gz", "wt") as file:
            file.write("".join(f"{line}\n" for line in lines * 3))
    monkeypatch.setattr(prepare, "SUBWORDS", 24)
    monkeypatch.setattr(training, "WARM_UP_SECONDS", 0.0)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    folder = prepare.prepare(str(raw), tmp_path / "work")
    plan = RoundPlan(rounds=1, seconds=0.0)
    results = training.compare(folder / "recurrent.json", [], plan)
    (window,) = results["seqloom"]["rounds"]
    targets = (folder / "train.target.ids").read_text().splitlines()
    tokens = sum(1 + len(line.split()) for line in targets)
    assert 0 < window["target_tokens"] <= tokens
    assert window["target_positions"] >= window["target_tokens"]
    assert results["seqloom"]["about"]["python"] == sys.version.split()[0]
    assert results["ceiling"]["rounds"][0]["flops"] > 0
