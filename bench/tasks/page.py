"""docs/results/tasks.md, from the results."""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.tasks.table import TASKS, Task, label_of

Result = dict[str, Any]

PAGE = """# Every task of the lectures, on real data

Made by `python -m bench.tasks OUT --data FOLDER` and `--write`; one JSON file for each run, with its whole
curve, versions and settings, lies in `{out}/`. Test split. Scores are in the order of the column
`judged by`; a score whose name has "error", "perplexity", "nats" or is a distance is better when lower. Times
are those of training, from raw text to the last step; of runs beside others they are upper bounds.
What is published is seldom measured on the very same split: the last column says whose it is.

| task | recipe | judged by | ours | published | parameters | steps | seed | trained | published by |
|---|---|---|---|---|---|---|---|---|---|
{rows}

## Signatures

{signatures}

Measured with {versions}.
"""


def scores_of(result: Result, task: Task) -> dict[str, float]:
    """Those by which the task is judged, by their keys; scores that a result lacks are left out."""
    found = {
        score["name"].lower().replace(" ", "-"): score["value"]
        for score in result["report"]["scores"]
    }
    return {key: found[key] for key in task.scores if key in found}


def read(out: Path, recipe: str, task: Task) -> list[Result]:
    """The results of all runs of a task; none if one of them is missing."""
    paths = [out / f"{label_of(recipe, run)}.json" for run in task.runs]
    if not all(path.exists() for path in paths):
        return []
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def row(recipe: str, task: Task, results: Sequence[Result]) -> str:
    """One line; of several runs the mean of each score and the sum of the times."""
    each = [scores_of(result, task) for result in results]
    means = {key: statistics.mean(one[key] for one in each) for key in each[0]}
    first = results[0]
    return (
        f"| {task.what} | `{recipe}` | {'; '.join(key.replace('-', ' ') for key in means)} "
        f"| **{'; '.join(shown(value) for value in means.values())}** | {task.published} "
        f"| {first['parameters'] / 1e6:.1f} M | {first['steps']:,} | {first['seed']} "
        f"| {trained(results)} | {task.source} |"
    )


def trained(results: Sequence[Result]) -> str:
    """Where, and how long it took, where that says anything: a shared CPU's seconds do not."""
    machine = results[0]["machine"]
    if not machine.startswith("NVIDIA"):
        return f"on {machine}"
    beside = "≤ " if any(one.get("at_once", 2) > 1 for one in results) else ""
    return f"{beside}{sum(one['seconds'] for one in results):.0f} s, {machine}"


def shown(value: float) -> str:
    """Three figures are enough for a table."""
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def signature_lines(recipe: str, task: Task, result: Result) -> list[str]:
    return [
        f"- `{recipe}` {score['name']}: {score['signature']}"
        for score in result["report"]["scores"]
        if score["signature"] and score["name"].lower().replace(" ", "-") in task.scores
    ]


def page(out: Path) -> str | None:
    """What was measured; a task that was not is left out. None if there is nothing."""
    rows, signatures, versions = [], [], set()
    for recipe, task in TASKS.items():
        results = read(out, recipe, task)
        if not results:
            continue
        rows.append(row(recipe, task, results))
        signatures += signature_lines(recipe, task, results[0])
        versions |= {f"torch {one['torch']} on Python {one['python']}" for one in results}
    if not rows:
        return None
    return PAGE.format(
        out=out.name,
        rows="\n".join(rows),
        signatures="\n".join(signatures) or "None of these scores has more than one way.",
        versions=", ".join(sorted(versions)),
    )
