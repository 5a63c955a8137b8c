"""Number of trials of the reliability tests, and files for their results."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import torch

import seqloom
from bench.machine import describe_processor

ROOT = Path(__file__).parents[1]
IS_CAMPAIGN = "SEQLOOM_CAMPAIGN" in os.environ
"""True during `make campaign`, which runs the reliability tests with more trials than `make test`."""


def count_trials(usual: int, campaign: int) -> int:
    """The number of trials of a test.

    usual:    number in `make test`
    campaign: number in `make campaign`
    """
    return campaign if IS_CAMPAIGN else usual


def save_results(name: str, **results: Any) -> None:
    """Write results to the folder in SEQLOOM_FIGURES, if it is set, for `tools/campaign.py`.

    name: a row of the table of `tools/campaign.py`. If several tests belong to a row, a dot and the name
          of a part follow: "kills.training".
    """
    if folder := os.environ.get("SEQLOOM_FIGURES"):
        path = Path(folder) / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"results": results, "measured_with": describe_measurement()}
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def describe_measurement() -> dict[str, str]:
    """Version, commit, machine and date that results belong to."""
    return {
        "version": seqloom.__version__,
        "commit": describe_commit(),
        "machine": describe_processor(),
        "torch": torch.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }


def describe_commit() -> str:
    """The commit of the source, with a plus sign if files of src or tests differ from it."""
    commit = _git("rev-parse", "--short=8", "HEAD")
    return commit + ("+" if _git("status", "--porcelain", "--", "src", "tests") else "")


def _git(*arguments: str) -> str:
    result = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return result.stdout.strip()
