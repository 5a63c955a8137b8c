"""What it costs that searches can be recorded and attention kept, when neither is asked for.

    python -m bench.inspection --before 99cd80b       docs/results/inspection.md and .json

The sources as they are now and as they were before searches could be looked into (--before: a
commit) decode the same batches with the same weights, in two processes that take turns on one core,
window by window. A ratio of 1 means that nothing is paid for what is not used.
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

from bench.decode_cpu import SMALL, seqloom_decoding
from bench.machine import processor
from bench.rounds import ratios

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results" / "inspection.json"
WORK = [(32, 5), (32, 1), (1, 5), (1, 1)]
"""Sources at once, and the width of the beam."""
NOW, BEFORE = "now", "before"


def work(seconds: float) -> None:
    """One side: a line with the number of a piece of work comes in, its batches a second go out."""
    torch.set_num_threads(1)
    calls: list[Callable[[], Any]] = [seqloom_decoding(SMALL, batch, beam) for batch, beam in WORK]
    for call in calls:
        call()
    print("ready", flush=True)
    for line in sys.stdin:
        call, count, began = calls[int(line)], 0, time.perf_counter()
        while (spent := time.perf_counter() - began) < seconds:
            call()
            count += 1
        print(count / spent, flush=True)


class Side:
    """A process that works with the sources in a folder."""

    def __init__(self, sources: Path, seconds: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.inspection", "--worker", f"--seconds={seconds}"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{sources}:{ROOT}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.hears() == "ready"

    def hears(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def speed(self, number: int) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()
        return float(self.hears())

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def sources_at(commit: str, folder: Path) -> Path:
    """The package as it was."""
    archive = subprocess.run(
        ["git", "archive", commit, "src"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "src"


def measure(before: str, rounds: int, seconds: float) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        places = {NOW: ROOT / "src", BEFORE: sources_at(before, Path(folder))}
        sides = {name: Side(place, seconds) for name, place in places.items()}
        try:
            return [_compare(sides, number, rounds) for number in range(len(WORK))]
        finally:
            for side in sides.values():
                side.close()


def _compare(sides: dict[str, Side], number: int, rounds: int) -> dict[str, Any]:
    """One piece of work; who begins changes from round to round."""
    speeds: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds):
        for name in list(sides)[:: 1 if turn % 2 else -1]:
            speeds[name].append(sides[name].speed(number))
    batch, beam = WORK[number]
    ratio = ratios(speeds[NOW], speeds[BEFORE])
    print(
        f"batch {batch}, beam {beam}: {ratio.median:.3f} times the speed of before "
        f"({ratio.low:.3f} to {ratio.high:.3f})",
        flush=True,
    )
    return {"batch": batch, "beam": beam, "ratio": asdict(ratio)}


def table(found: dict[str, Any]) -> str:
    rows = "\n".join(
        f"| {row['batch']} | {row['beam']} | **{row['ratio']['median']:.3f}** "
        f"| {row['ratio']['low']:.3f} to {row['ratio']['high']:.3f} |"
        for row in found["rows"]
    )
    shape = found["shape"]
    return f"""# Searches that nobody looks into

Written by `python -m bench.inspection --before {found["before"]} --rounds {found["rounds"]} --seconds {found["seconds"]}`:
{found["machine"]}, torch {found["torch"]}, one thread.
A Transformer of {shape["layers"]}+{shape["layers"]} layers of {shape["width"]} decodes {shape["tokens"]} tokens with the sources as they are and with those from
before searches could be recorded, in turns; speed now over speed before, median of {found["rounds"]} rounds.

| batch | beam | ratio | spread |
|---:|---:|---:|---|
{rows}
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.inspection",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--before", metavar="COMMIT", help="before searches could be looked into")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each window")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        work(chosen.seconds)
        return
    if chosen.before is None:
        parser.error("--before COMMIT is needed, for example --before 99cd80b")
    rows = measure(chosen.before, chosen.rounds, chosen.seconds)
    facts = {name: getattr(chosen, name) for name in ("before", "rounds", "seconds")}
    content = {
        **facts,
        "shape": asdict(SMALL),
        "machine": processor(),
        "torch": torch.__version__,
        "rows": rows,
    }
    chosen.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    chosen.out.with_suffix(".md").write_text(table(content), encoding="utf-8")


if __name__ == "__main__":
    main()
