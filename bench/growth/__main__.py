"""What work costs as it grows.

    python -m bench.growth                     up to 10^5 pairs, three minutes
    python -m bench.growth --full              up to 10^7 pairs: 4 GB of disk, half an hour or more
    python -m bench.growth --only startup      one part, the rest as it was measured before

Writes docs/results/benchmarks/growth.json and docs/pictures/growth.png, and prints the tables.
"""

import argparse
import json
import os
import platform
import tempfile
from pathlib import Path
from typing import Any

from bench.growth import corpora, decoding, startup
from bench.growth.table import picture, table

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results" / "benchmarks" / "growth.json"
PARTS = ("corpora", "decoding", "startup")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.growth",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--full", action="store_true", help="up to 10^7 pairs")
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--pairs", nargs="*", type=int, help="these sizes alone")
    parser.add_argument("--work", type=Path, help="a folder for what is made on the way")
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = chosen.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        results = json.loads(chosen.out.read_text()) if chosen.out.exists() else {}
        sizes = chosen.pairs or [10**power for power in range(3, 8 if chosen.full else 6)]
        _measure(chosen.only, sizes, work, results, chosen.out)
    print(table(results))
    if results.get("corpora"):
        picture(results, ROOT / "docs" / "pictures" / "growth.png")


def _measure(
    parts: tuple[str, ...], sizes: list[int], work: Path, results: dict[str, Any], out: Path
) -> None:
    """What is measured is kept at once, beside what was measured before."""

    def keep() -> None:
        machine = {"processors": os.cpu_count(), "machine": platform.machine()}
        results["machine"] = machine | {"python": platform.python_version()}
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(results, indent=1) + "\n")

    if "startup" in parts:
        results["startup"] = startup.measure(work)
        keep()
    if "decoding" in parts:
        results["decoding"] = decoding.measure()
        keep()
    for pairs in sizes if "corpora" in parts else ():
        others = [one for one in results.get("corpora", []) if one["pairs"] != pairs]
        found = [*others, corpora.measure(pairs, work)]
        results["corpora"] = sorted(found, key=lambda one: int(one["pairs"]))
        keep()


if __name__ == "__main__":
    main()
