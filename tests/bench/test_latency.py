"""How long one sentence takes: every engine that can answer is in the table, and no other."""

from pathlib import Path

import pytest

from bench import latency
from seqloom.training.loop import train
from tiny_runs import TRANSFORMER, tiny_config


@pytest.mark.parametrize(
    ("sides", "engines"), [((), ["torch"]), (TRANSFORMER, ["torch", "ctranslate2"])]
)
def test_a_run_is_asked_by_every_engine_that_can_answer(
    sides: tuple[str, ...],
    engines: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(latency, "KINDS", ("torch", "ctranslate2"))  # to compile takes a minute
    letters = tuple(f"data.{split}.symbols=12" for split in ("train", "dev", "test"))
    train(tiny_config(*sides, *letters, "training.steps=2"), tmp_path / "run")
    report = latency.measure(tmp_path / "run", 10)
    assert [name.split()[0] for name in report["engines"]] == engines
    for by_search in report["engines"].values():
        assert list(by_search) == list(latency.DECODINGS)
        assert all(0 < one["p50"] <= one["p95"] for one in by_search.values())
    assert ("cannot answer this" in capsys.readouterr().err) == ("ctranslate2" not in engines)
    table = latency.table(report)
    assert all(f"\n| {name} | " in table for name in report["engines"])
