"""The benchmarks of the service and the page compare the present version with another checkout."""

import argparse
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from bench.serving import page, service
from bench.serving.checkout import checkout_folder, in_turn

SERVER = """
import os, sys
def run():
    print(f"open http://127.0.0.1:{os.environ['PYTHONPATH'].count('/')}", file=sys.stderr, flush=True)
    sys.stdin.read()
"""
"""A server whose port is the number of folders in its Python path."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    package = tmp_path / "src" / "seqloom" / "cli"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    (package / "main.py").write_text(SERVER, encoding="utf-8")
    return tmp_path


def test_the_server_has_the_code_of_its_checkout(checkout: Path, tmp_path: Path) -> None:
    with service.running_server(tmp_path / "run", checkout=checkout) as port:
        assert port == str(checkout / "src").count("/")


def test_a_folder_without_seqloom_is_no_checkout(checkout: Path, tmp_path: Path) -> None:
    assert checkout_folder(str(checkout)) == checkout.resolve()
    with pytest.raises(argparse.ArgumentTypeError, match=r"no folder src/seqloom.*git worktree"):
        checkout_folder(str(tmp_path / "src"))


def test_every_server_is_once_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[int] = []

    def translate(port: int, texts: list[str], clients: int, times: list[float]) -> Any:
        order.append(port)
        times += [port / 1000] * len(texts)
        return 100.0 / port, [f"{text} {port == 3}" for text in texts]

    monkeypatch.setattr(service, "measure_throughput", translate)
    ports = {service.MERGED: 1, service.SINGLE: 2, service.BEFORE: 3}
    figures = {name: service.LoadFigures() for name in ports}
    for number, texts in enumerate([["a", "b"], ["c", "d"], ["e", "f"]]):
        service.measure_load(ports, number, texts, 4, figures)
    assert order == [1, 2, 3, 3, 2, 1, 2, 3, 1]
    compared = service.compare_with_before(figures, "b6544ab5")
    assert compared["throughput_ratio_median"] == pytest.approx(3)
    assert compared["p50_ms"] == compared["p95_ms"] == pytest.approx(3)
    assert compared["different_translations"] == 6
    assert in_turn(["now"], 5) == ["now"]
    assert {tuple(in_turn(["a", "b", "c"], number)) for number in range(6)} == {
        *permutations("abc")
    }


def serving_results(**more: Any) -> dict[str, Any]:
    numbers = ("direct_p50_ms", "over_http_p50_ms", "overhead_p50_ms", "times_faster_median")
    return {
        **dict.fromkeys(numbers, 1.0),
        "run": "demo",
        "clients": 32,
        "requests": 60,
        "requests_a_second": {service.MERGED: [110.0, 90.0, 120.0], service.SINGLE: [30.0] * 3},
        "times_faster": [3.0] * 3,
        "merged_p50_ms": 200.0,
        "merged_p95_ms": 250.0,
        "first_answer_seconds": [3.0],
        **more,
    }


def test_the_report_of_the_service_has_both_versions() -> None:
    before = {
        "commit": "b6544ab5",
        "requests_a_second": [100.0, 90.0, 105.0],
        "p50_ms": 100.0,
        "p95_ms": 200.0,
        "throughput_ratio": [1.1, 1.0, 1.14],
        "throughput_ratio_median": 1.1,
        "different_translations": 2,
    }
    report = service.table(serving_results(before=before))
    assert "| commit b6544ab5 | 100.0 | 100 ms | 200 ms | 2.00 |" in report
    assert "| present version | 110.0 | 200 ms | 250 ms | 1.25 |" in report
    assert "| **1.10** | 2.00 | 1.25 |  |" in report
    assert "2 of 60 translations differ" in report
    assert "commit" not in service.table(serving_results())


def page_results(milliseconds: float) -> dict[str, dict[str, float]]:
    return {each.name: page.summarise([milliseconds] * 9) for each in page.MEASURES}


def test_the_report_of_the_page_has_both_versions() -> None:
    results: dict[str, Any] = {
        "now_ms": page_results(150),
        "run": "demo",
        "load_before": 0.1,
    }
    assert "before" not in page.table(results).splitlines()[2]
    before = page_results(1200)
    del before[page.IMPORT_TORCH.name]  # the same for both versions
    text = page.table({**results, "before_ms": before, "before_commit": "b6544ab5"})
    assert "commit b6544ab5" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({row.count("|") for row in rows}) == 1, "all rows have the same number of cells"
    assert "| first contentful paint | 150 ms | 150 ms | 1.2 s | 1.2 s | 0.12 |" in text


def test_p95_is_the_maximum_of_few_values() -> None:
    assert page.summarise([3.0, 1.0, 2.0]) == {"p50": 2, "p95": 3, "count": 3}
    assert page.summarise([float(number) for number in range(1, 41)])["p95"] == 38
