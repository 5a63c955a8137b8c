"""Training loops take turns, and only windows of one round are compared."""

import gzip
import sys
from pathlib import Path

import pytest

from bench import prepare, training
from bench.contenders import Contender
from bench.rounds import Plan, Spread, open_all, ratios, take_turns
from bench.workers import Broken, Worker

LOOP = """
from bench.window import Counts, Window
print("a peer that talks to stdout before")
window = Window()
print("and after")
window.ready(version="1")
while True:
    window.step()
    window.batch(Counts(3, 4, 5, 8))
"""


@pytest.fixture
def loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Contender:
    """A training loop that does nothing, very fast."""
    (tmp_path / "a_loop.py").write_text(LOOP.replace("print", "len"))
    (tmp_path / "a_talker.py").write_text(LOOP.replace('print("a peer', 'len("a peer'))
    monkeypatch.setattr("bench.workers.ROOT", tmp_path)
    root = Path(__file__).parents[2]
    (tmp_path / "bench").symlink_to(root / "bench")
    return Contender("loop", "a loop", "a_loop")


def test_a_ratio_is_one_of_windows_that_lay_side_by_side() -> None:
    """A machine that becomes three times as slow for a round changes nothing."""
    assert ratios([30.0, 10.0, 30.0], [15.0, 5.0, 15.0]) == Spread(2.0, 2.0, 2.0)


def test_a_loop_runs_for_as_long_as_it_is_asked_and_counts_what_it_did(
    loop: Contender, tmp_path: Path
) -> None:
    worker = Worker(loop, [], tmp_path)
    worker.wait_until_ready()
    assert worker.about["version"] == "1"
    first, second = worker.ask(seconds=0.05), worker.ask(seconds=0.2)
    worker.close()
    assert 0.05 <= first["seconds"] < 0.2 <= second["seconds"]
    for window in (first, second):
        assert window["target_tokens"] == 5 * window["steps"] > 0
        assert window["source_positions"] == 4 * window["steps"]


def test_what_a_peer_prints_is_no_answer(loop: Contender, tmp_path: Path) -> None:
    worker = Worker(Contender("talker", "one that talks", "a_talker"), [], tmp_path)
    worker.wait_until_ready()
    assert worker.ask(seconds=0.0)["steps"] == 1
    worker.close()
    assert "and after" in (tmp_path / "talker.log").read_text()


def test_who_does_not_start_is_told_of_with_the_reason(loop: Contender, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise RuntimeError('needs another torch')")
    broken = Contender("broken", "a broken one", "broken")
    missing = Contender("missing", "one that is not there", "a_loop", environment="missing")
    makers = [(lambda one=one: Worker(one, [], tmp_path)) for one in (loop, broken, missing)]
    workers = open_all(makers, ["loop", "broken", "missing"])
    answers = take_turns(workers, [{"seconds": 0.01}], Plan(rounds=2))
    assert len(answers["loop"]) == 2
    assert answers["broken"] == "RuntimeError: needs another torch"
    assert "not installed" in answers["missing"]
    worker = workers["loop"]
    assert isinstance(worker, Worker)
    worker.close()


def test_who_dies_on_the_way_is_told_of_too(loop: Contender, tmp_path: Path) -> None:
    (tmp_path / "mortal.py").write_text(
        "from bench.window import Window\nWindow().ready(version='1')\nraise MemoryError('no room')"
    )
    worker = Worker(Contender("mortal", "a mortal one", "mortal"), [], tmp_path)
    worker.wait_until_ready()
    with pytest.raises(Broken, match="no room"):
        worker.ask(seconds=0.01)
    worker.close()


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_seqloom_and_the_ceiling_are_measured_on_prepared_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    lines = [f"{one} {other} {one}" for one in ("ba", "de", "ki") for other in ("lo", "mu", "na")]
    for name in ("train.de", "train.en", "val.de", "val.en"):
        with gzip.open(raw / f"{name}.gz", "wt") as file:
            file.write("".join(f"{line}\n" for line in lines * 3))
    monkeypatch.setattr(prepare, "SUBWORDS", 24)
    monkeypatch.setattr(training, "WARM_UP_SECONDS", 0.0)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    folder = prepare.prepare(str(raw), tmp_path / "work")
    found = training.compare(folder / "recurrent.json", [], Plan(rounds=1, seconds=0.0))
    (window,) = found["seqloom"]["rounds"]
    tokens = sum(1 + len(line.split()) for line in lines_of(folder / "train.target.ids"))
    assert 0 < window["target_tokens"] <= tokens
    assert window["target_positions"] >= window["target_tokens"]
    assert found["seqloom"]["about"]["python"] == sys.version.split()[0]
    assert found["ceiling"]["rounds"][0]["flops"] > 0
