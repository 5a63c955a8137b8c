"""Number of trials of the reliability tests, and files for their results."""

import json
import os
from pathlib import Path
from typing import Any

from bench.machine import describe_measurement

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
