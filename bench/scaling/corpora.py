"""Training as a function of corpus size: memory, tokenising time, time to the first step."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.scaling.synthetic_pairs import write_pairs

STEPS = 200


def measure(pairs: int, work: Path) -> dict[str, Any]:
    """Train once with an empty cache (cold) and once with a full cache (warm)."""
    data = work / f"{pairs}.tsv"
    if not data.exists():
        unfinished = data.with_suffix(".part")
        write_pairs(unfinished, pairs)
        write_pairs(data.with_suffix(".dev"), 200, seed=9)
        unfinished.rename(data)
    cache = work / f"cache-{pairs}"
    shutil.rmtree(cache, ignore_errors=True)
    cold, warm = (_train(data, work / "run", cache) for _ in range(2))
    stored = sum(file.stat().st_size for file in (cache / "seqloom" / "prepared").rglob("*"))
    return {
        "pairs": pairs,
        "bytes": data.stat().st_size,
        "stored": stored,
        "cold": cold,
        "warm": warm,
    }


def _train(data: Path, folder: Path, cache: Path) -> dict[str, Any]:
    shutil.rmtree(folder, ignore_errors=True)
    completed = subprocess.run(
        [sys.executable, "-m", "bench.scaling.worker", str(data), str(folder), str(STEPS)],
        env=os.environ | {"XDG_CACHE_HOME": str(cache), "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    result: dict[str, Any] = json.loads(completed.stdout.splitlines()[-1])
    return result
