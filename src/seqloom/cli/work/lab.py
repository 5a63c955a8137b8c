"""Which claims there are, and how they stand."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.padding import Padding
from rich.text import Text

from seqloom.cli.output import put, tell
from seqloom.cli.work.tables import stdout_console
from seqloom.lab.names import claim_names
from seqloom.lab.registry import find_claim
from seqloom.lab.writing import read_report

COLOURS = {"confirmed": "bold blue", "refuted": "bold yellow", "undecided": "bold"}


def lab(out: Path, as_json: bool) -> int:
    """Each claim with its sentence and the verdicts of its last reports."""
    rows = []
    for name in claim_names():
        claim = find_claim(name)
        found = {
            size: content
            for size in ("small", "full")
            if (content := read_report(out / size / name / "report.json")) is not None
        }
        rows.append((claim, found))
    if as_json:
        listed = [
            {
                "claim": claim.name,
                "sentence": claim.sentence,
                "source": claim.source,
                "reports": {
                    size: {"verdict": one["verdict"], "seeds": one["seeds"]}
                    for size, one in found.items()
                },
            }
            for claim, found in rows
        ]
        put(json.dumps(listed, indent=2, ensure_ascii=False))
        return 0
    console = stdout_console()
    for claim, found in rows:
        console.print(Text.assemble((claim.name, "bold"), "  ", *_states(found)))
        console.print(Padding(Text(claim.sentence), (0, 0, 0, 2)))
    tell("put one to the test with: seqloom lab NAME, or every one with: seqloom lab all")
    return 0


def _states(found: Mapping[str, Mapping[str, Any]]) -> list[Text]:
    if not found:
        return [Text("not yet run", "dim")]
    parts = []
    for size, content in found.items():
        state, seeds = content["verdict"]["state"], len(content["seeds"])
        parts.append(Text(state, COLOURS.get(state, "bold")))
        parts.append(Text(f" ({size}, {seeds} seed{'' if seeds == 1 else 's'})  ", "dim"))
    return parts
