"""What `make campaign` found about the service, as a page: python tools/campaign.py

Reads docs/results/campaign/*.json, which the tests of reliability write.
"""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "docs" / "results"
HEAD = """# The service under load, attack and at its end

Written by `make campaign` (`tools/campaign.py`), a row for each test of reliability that measures the service. Server
and clients share the machine, so times say less than statuses and counts.

| test | what was done and seen |
|---|---|
"""
NAMES = {
    "steady": "steady load at 70 % of the measured peak, 16 clients",
    "overload": "many more connections than there is room for",
    "slow-idle": "connections that say nothing",
    "slow-request-line": "connections that stop in the request line",
    "slow-header": "connections that stop in a header",
    "slow-body": "connections that stop in the body",
    "disconnects": "clients that leave while they are worked for",
    "sigterm": "SIGTERM under load",
    "image-bombs": "images of 100 megapixels",
    "routes": "requests made from the schema, allowed and forbidden",
}


def cell(found: dict[str, Any]) -> str:
    facts = []
    for name, value in found.items():
        if isinstance(value, dict):
            value = ", ".join(f"{count:,} × {status}" for status, count in value.items())
        facts.append(
            f"{name.replace('_', ' ')} {value:,}"
            if isinstance(value, int | float)
            else f"{name}: {value}"
        )
    return "; ".join(facts)


def main() -> None:
    rows = []
    for name, told in NAMES.items():
        path = RESULTS / "campaign" / f"{name}.json"
        if path.exists():
            rows.append(f"| {told} | {cell(json.loads(path.read_text(encoding='utf-8')))} |\n")
    (RESULTS / "campaign.md").write_text(HEAD + "".join(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
