"""Write docs/results/campaign.md: results of the reliability tests.

    python -m tools.campaign

Adds the files of bench/results/campaign, which the reliability tests write during `make campaign`, to the
stored results (bench/store/campaign.json).
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import store

MEASURED = store.RESULTS / "campaign"
PAGE = store.ROOT / "docs" / "results" / "campaign.md"
HEAD = """# Reliability

Written by `make campaign` (`tools/campaign.py`; stored results: [campaign.json](../../bench/store/campaign.json)), one row per kind of reliability test. A test fails if seqloom loses data,
accepts damaged data or ends with an unexpected error, so every number of lost, undetected or failed cases in this table is 0. Server
and clients share the machine, so times of the server are less informative than statuses and counts.

"""
TESTS = {
    "kills": "training, fine-tuning, preparation, translation, packing and unpacking, killed with "
    "SIGKILL at a random moment, then resumed or repeated; results bit-identical",
    "killed-export": "export, killed with SIGKILL at a random moment, then repeated; files identical",
    "faults": "process ends, EIO or ENOSPC at every disk operation of five kinds of writing; the "
    "earlier files stay intact",
    "full-disk": "training on a disk that becomes full, then resumed; results bit-identical",
    "damage": "changed bits, truncated, overwritten, missing and swapped files in a run folder",
    "non-finite": "infinite and NaN values in loss, gradient, weight and data",
    "ranks": "training on one and two processes, interrupted and resumed on one or two; equal to an "
    "uninterrupted training",
    "training-signals": "SIGTERM and SIGINT during training, then resumed; results bit-identical",
    "hostile-corpora": "hostile and damaged data files",
    "properties": "generated cases of property tests",
    "routes": "valid and invalid requests generated from the schema of the HTTP API",
    "steady": "steady load at 70 % of the measured peak, 16 clients; the peak is measured again every 30 seconds",
    "overload": "many more connections than the server admits",
    "slow-idle": "connections that send nothing",
    "slow-request-line": "connections that stop in the request line",
    "slow-header": "connections that stop in a header",
    "slow-body": "connections that stop in the body",
    "disconnects": "clients that disconnect during their request",
    "sigterm": "SIGTERM under load",
    "hostile-models": "hostile and damaged run folders",
    "image-bombs": "small files of images with a hundred megapixels or more",
    "payloads": "scripts in text fields, links and responses of the web page",
}
"""Rows of the table. The results of a row have the name NAME, or one name per part: NAME.PART."""
LABELS = {
    "a_second": "requests per second",
    "p99_by_p50": "p99 / p50, median of periods of 30 seconds",
    "answered_a_second": "successful requests per second",
    "answered_a_second_before": "before the overload",
    "answered_a_second_after": "after the overload",
    "refusal_p50_ms": "rejection p50 ms",
    "refusal_p99_ms": "rejection p99 ms",
    "grown_mib": "memory growth MiB",
    "healthy_ms": "response to another client ms",
    "seen_to_be_gone": "detected disconnections",
    "free_again_p50_ms": "server idle after p50 ms",
    "free_again_worst_ms": "worst ms",
    "ends": "shutdowns",
    "answers": "responses",
    "slowest_cpu_seconds": "slowest CPU seconds",
}
"""Descriptions of the keys of the results. Other keys are shown as they are."""
MAXIMA = ("seconds", "ms", "mib")
"""Endings of the keys whose largest value over all parts counts. Other values are added."""
SHARED = ("version", "machine", "torch")
"""What is written above the table, because it is usually the same for all rows."""


def collect(folder: Path) -> dict[str, dict[str, Any]]:
    """The stored results, with those of a folder instead of earlier ones."""
    measured = {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")
    }
    return dict(sorted({**(store.read("campaign") or {}), **measured}.items()))


def parts_of(name: str, results: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The results of all parts of a row."""
    return [part for key, part in results.items() if key.partition(".")[0] == name]


def join_results(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Add the counts of the parts of a row."""
    joined: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if key not in joined:
                joined[key] = value
            elif isinstance(value, dict):
                joined[key] = dict(Counter(joined[key]) + Counter(value))
            elif key.endswith(MAXIMA):
                joined[key] = max(joined[key], value)
            else:
                joined[key] += value
    return joined


def format_results(results: dict[str, Any]) -> str:
    facts = []
    for key, value in results.items():
        label = LABELS.get(key, key.replace("_", " "))
        if isinstance(value, dict):
            counts = ", ".join(f"{count:,} × {kind}" for kind, count in value.items())
            facts.append(f"{label}: {counts}")
        else:
            facts.append(f"{label} {value:,}")
    return "; ".join(facts)


def list_values(parts: Sequence[dict[str, Any]], key: str, separator: str = ", ") -> str:
    """The distinct values of a fact about the measurements."""
    return separator.join(sorted({part["measured_with"][key] for part in parts}))


def format_page(rows: dict[str, list[dict[str, Any]]]) -> str:
    """The page with one line per row.

    rows: results of the parts of each row, by the name of the row
    """
    everything = [part for parts in rows.values() for part in parts]
    facts = "; ".join(f"{key} {list_values(everything, key, ' or ')}" for key in SHARED)
    table = [
        f"| {TESTS[name]} | {format_results(join_results([part['results'] for part in parts]))} "
        f"| {list_values(parts, 'commit')} | {list_values(parts, 'date')} |"
        for name, parts in rows.items()
    ]
    columns = ["| test | results | commit | date |", "|---|---|---|---|"]
    return HEAD + f"Measured with {facts}.\n\n" + "\n".join([*columns, *table]) + "\n"


def main() -> None:
    results = collect(MEASURED)
    store.write("campaign", results)
    rows = {name: parts for name in TESTS if (parts := parts_of(name, results))}
    PAGE.write_text(format_page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
