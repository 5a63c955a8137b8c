"""Write docs/results/campaign.md: results of the reliability tests of the server.

    python tools/campaign.py

Reads docs/results/campaign/*.json, which the reliability tests write during `make campaign`.
"""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "docs" / "results"
HEAD = """# Reliability of the server

Written by `make campaign` (`tools/campaign.py`), one row per reliability test that measures the server. Server and clients
share the machine, so times are less informative than statuses and counts.

| test | results |
|---|---|
"""
TESTS = {
    "steady": "steady load at 70 % of the measured peak, 16 clients",
    "overload": "many more connections than the server admits",
    "slow-idle": "connections that send nothing",
    "slow-request-line": "connections that stop in the request line",
    "slow-header": "connections that stop in a header",
    "slow-body": "connections that stop in the body",
    "disconnects": "clients that disconnect during their request",
    "sigterm": "SIGTERM under load",
    "image-bombs": "images of 100 megapixels",
    "routes": "valid and invalid requests generated from the schema",
}
LABELS = {
    "a_second": "requests per second",
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
}
"""Descriptions of the keys in the JSON files. Other keys are shown as they are."""


def format_results(results: dict[str, Any]) -> str:
    facts = []
    for key, value in results.items():
        label = LABELS.get(key, key.replace("_", " "))
        if isinstance(value, dict):
            counts = ", ".join(f"{count:,} × {status}" for status, count in value.items())
            facts.append(f"{label}: {counts}")
        else:
            facts.append(f"{label} {value:,}")
    return "; ".join(facts)


def main() -> None:
    rows = []
    for name, description in TESTS.items():
        path = RESULTS / "campaign" / f"{name}.json"
        if path.exists():
            results = json.loads(path.read_text(encoding="utf-8"))
            rows.append(f"| {description} | {format_results(results)} |\n")
    (RESULTS / "campaign.md").write_text(HEAD + "".join(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
