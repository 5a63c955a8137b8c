"""Measure the cost of support for search traces and attention when a search uses neither.

    python -m bench.inspection --before 99cd80b       docs/results/inspection.md and .json

The current sources and the sources of an earlier commit without search traces (--before) decode the
same batches with the same weights. Two processes alternate on one core, window by window. A ratio
of 1 means that unused traces cost nothing.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from bench.comparison.rounds import ratio_spread
from bench.decode_cpu import SMALL, make_seqloom_decode
from bench.machine import describe_processor

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results" / "inspection.json"
BATCHES = [(32, 5), (32, 1), (1, 5), (1, 1)]
"""(batch size, beam width)"""
NOW, BEFORE = "now", "before"


def serve(seconds: float) -> None:
    """Read the index of a setting from stdin, and write its speed in batches per second."""
    torch.set_num_threads(1)
    calls: list[Callable[[], Any]] = [
        make_seqloom_decode(SMALL, batch, beam) for batch, beam in BATCHES
    ]
    for call in calls:
        call()
    print("ready", flush=True)
    for line in sys.stdin:
        call, count, start = calls[int(line)], 0, time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds:
            call()
            count += 1
        print(count / elapsed, flush=True)


class VersionProcess:
    """A process that decodes with the sources of one version."""

    def __init__(self, sources: Path, seconds: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.inspection", "--worker", f"--seconds={seconds}"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{sources}:{ROOT}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._read_line() == "ready"

    def _read_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def measure_speed(self, index: int) -> float:
        """Batches per second of the setting with this index."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{index}\n")
        self.process.stdin.flush()
        return float(self._read_line())

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def extract_sources(commit: str, folder: Path) -> Path:
    """Write the sources of a commit into the folder and return the path of the package."""
    archive = subprocess.run(
        ["git", "archive", commit, "src"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "src"


def measure(before: str, rounds: int, seconds: float) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        sources = {NOW: ROOT / "src", BEFORE: extract_sources(before, Path(folder))}
        processes = {name: VersionProcess(path, seconds) for name, path in sources.items()}
        try:
            return [_compare(processes, index, rounds) for index in range(len(BATCHES))]
        finally:
            for process in processes.values():
                process.close()


def _compare(processes: dict[str, VersionProcess], index: int, rounds: int) -> dict[str, Any]:
    """Measure one setting. The order of the processes alternates from round to round."""
    speeds: dict[str, list[float]] = {name: [] for name in processes}
    for number in range(rounds):
        for name in list(processes)[:: 1 if number % 2 else -1]:
            speeds[name].append(processes[name].measure_speed(index))
    batch, beam = BATCHES[index]
    ratio = ratio_spread(speeds[NOW], speeds[BEFORE])
    print(
        f"batch {batch}, beam {beam}: {ratio.median:.3f} times the earlier speed "
        f"({ratio.low:.3f} to {ratio.high:.3f})",
        flush=True,
    )
    return {"batch": batch, "beam": beam, "ratio": asdict(ratio)}


def page(results: dict[str, Any]) -> str:
    rows = "\n".join(
        f"| {row['batch']} | {row['beam']} | **{row['ratio']['median']:.3f}** "
        f"| {row['ratio']['low']:.3f} to {row['ratio']['high']:.3f} |"
        for row in results["rows"]
    )
    shape = results["shape"]
    return f"""# Cost of search traces when they are off

Written by `python -m bench.inspection --before {results["before"]} --rounds {results["rounds"]}`:
{results["machine"]}, torch {results["torch"]}, one thread.
A Transformer of {shape["layers"]}+{shape["layers"]} layers of width {shape["width"]} decodes {shape["tokens"]} tokens, alternately with the current sources
and with those of the last commit without search traces. The ratio is the current speed divided by the earlier speed, median of
{results["rounds"]} rounds.

| batch | beam | ratio | range |
|---:|---:|---:|---|
{rows}
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.inspection",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--before", metavar="COMMIT", help="a commit without search traces")
    parser.add_argument("--rounds", type=int, default=20, help="number of rounds (default: 20)")
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="length of a time window (default: 1)"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        serve(arguments.seconds)
        return
    if arguments.before is None:
        parser.error("--before COMMIT is required, for example --before 99cd80b")
    rows = measure(arguments.before, arguments.rounds, arguments.seconds)
    results = {
        "before": arguments.before,
        "rounds": arguments.rounds,
        "seconds": arguments.seconds,
        "shape": asdict(SMALL),
        "machine": describe_processor(),
        "torch": torch.__version__,
        "rows": rows,
    }
    arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    arguments.out.with_suffix(".md").write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
