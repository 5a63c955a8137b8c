"""The latency benchmark measures every engine that supports the run, and no other."""

from argparse import Namespace
from pathlib import Path

import pytest

from bench import latency
from seqloom.training.loop import train
from support.tiny_runs import TRANSFORMER, tiny_config

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("sides", "engines"), [((), ["torch"]), (TRANSFORMER, ["torch", "ctranslate2"])]
)
def test_every_engine_that_supports_the_run_is_measured(
    sides: tuple[str, ...],
    engines: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(latency, "ENGINES", ("torch", "ctranslate2"))  # compiling takes a minute
    symbols = tuple(f"data.{split}.symbols=12" for split in ("train", "dev", "test"))
    train(tiny_config(*sides, *symbols, "training.steps=2"), tmp_path / "run")
    (report,) = latency.measure(Namespace(run=tmp_path / "run", sentences=10))
    assert [name.split()[0] for name in report["engines"]] == engines
    for by_search in report["engines"].values():
        assert list(by_search) == list(latency.DECODINGS)
        assert all(0 < times["p50"] <= times["p95"] for times in by_search.values())
    assert ("ctranslate2:" in capsys.readouterr().err) == ("ctranslate2" not in engines)
    table = latency.table(report)
    assert all(f"\n| {name} | " in table for name in report["engines"])
