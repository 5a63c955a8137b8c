"""Measure how memory and time scale with the size of the input.

    python -m bench.scaling                     up to 10^5 pairs, three minutes
    python -m bench.scaling --full              up to 10^7 pairs: 4 GB of disk, half an hour or more
    python -m bench.scaling --only startup      one part; keeps the earlier results of the others

Writes docs/results/benchmarks/growth.json and docs/pictures/growth.png, and prints the tables.
"""

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.scaling import corpora, decoding, startup
from bench.scaling.table import save_figure, table

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results" / "benchmarks" / "growth.json"
PARTS = ("corpora", "decoding", "startup")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.scaling",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--full", action="store_true", help="up to 10^7 pairs")
    parser.add_argument(
        "--only", nargs="*", choices=PARTS, default=PARTS, help="parts to measure (default: all)"
    )
    parser.add_argument("--pairs", nargs="*", type=int, help="only these corpus sizes")
    parser.add_argument(
        "--work", type=Path, help="folder for corpora and runs (default: a temporary folder)"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = arguments.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        results = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
        sizes = arguments.pairs or [10**power for power in range(3, 8 if arguments.full else 6)]
        _measure(arguments.only, sizes, work, results, arguments.out)
    print(table(results))
    if results.get("corpora"):
        save_figure(results, ROOT / "docs" / "pictures" / "growth.png")


def _measure(
    parts: Sequence[str], sizes: Sequence[int], work: Path, results: dict[str, Any], out: Path
) -> None:
    """Add the measurements to the results, and save them after each one."""

    machine = {
        "processors": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
    }

    def save() -> None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(results, indent=1) + "\n")

    if "startup" in parts:
        # Start-up is often measured alone, on another machine than the other parts.
        results |= {"startup": startup.measure(work), "startup_machine": machine}
        save()
    if set(parts) - {"startup"}:
        results["machine"] = machine
    if "decoding" in parts:
        results["decoding"] = decoding.measure()
        save()
    for pairs in sizes if "corpora" in parts else ():
        others = [corpus for corpus in results.get("corpora", []) if corpus["pairs"] != pairs]
        measured = [*others, corpora.measure(pairs, work)]
        results["corpora"] = sorted(measured, key=lambda corpus: int(corpus["pairs"]))
        save()


if __name__ == "__main__":
    main()
