"""Generates docs/results/tasks.md from the results."""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.tasks.registry import TASKS, MeasuredTask, result_name

Result = dict[str, Any]

TEMPLATE = """# Results on the tasks of the lectures

Written by `python -m bench.tasks OUT --data FOLDER` and `--write`; there is one JSON file per run in `{out}/`, with the
training curve, versions and settings. Results are for the test split, in the order of the column `scores`. Error rates,
perplexity, nats, MSE, MAE and the distances ADE and FDE are better when lower. Times are training times from raw text to the
last step; they are upper bounds (≤) if other runs shared the machine. Most published results were measured on another split;
the last column names their source. Scores with ± are means and standard deviations over several seeds, from [seeds.md](seeds.md).
Parameters, steps and times are those of the first seed; `e2e` stops early.

| task | recipe | scores | ours | published | parameters | steps | seed | trained | published by |
|---|---|---|---|---|---|---|---|---|---|
{rows}

## Signatures

{signatures}

Measured with {versions}.
"""


def scores_of(result: Result, task: MeasuredTask) -> dict[str, float]:
    """The scores of the task that the result contains, by their keys."""
    scores = {
        score["name"].lower().replace(" ", "-"): score["value"]
        for score in result["report"]["scores"]
    }
    return {key: scores[key] for key in task.scores if key in scores}


def read_results(out: Path, recipe: str, task: MeasuredTask) -> list[Result]:
    """The results of all runs of a task. Empty if one of them is missing."""
    paths = [out / f"{result_name(recipe, run)}.json" for run in task.runs]
    if not all(path.exists() for path in paths):
        return []
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def read_seeds(folder: Path, recipe: str) -> list[Result]:
    """The results of `bench.seeds` for an unchanged recipe, one per seed."""
    results = [
        json.loads(path.read_text()) for path in folder.glob(f"{recipe}.unchanged.seed*.json")
    ]
    return sorted(results, key=lambda result: result["seed"])


def format_row(recipe: str, task: MeasuredTask, results: Sequence[Result], out: Path) -> str:
    """The row of a task: the mean of each score and the sum of the times over the runs.

    If the recipe was trained with several seeds, the scores are means and standard deviations over
    the seeds.
    """
    scores = [scores_of(result, task) for result in results]
    means = {key: statistics.mean(run[key] for run in scores) for key in scores[0]}
    ours = {key: format_score(value) for key, value in means.items()}
    seeds = str(results[0]["seed"])
    repeated = read_seeds(out.parent / "seeds", recipe)
    if len(repeated) > 1:
        by_seed = [scores_of(result, task) for result in repeated]
        ours = {key: format_mean([run[key] for run in by_seed]) for key in means}
        seeds = f"{repeated[0]['seed']} to {repeated[-1]['seed']}"
    first = results[0]
    return (
        f"| {task.description} | `{recipe}` | {'; '.join(key.replace('-', ' ') for key in means)} "
        f"| **{'; '.join(ours.values())}** | {task.published} "
        f"| {first['parameters'] / 1e6:.1f} M | {first['steps']:,} | {seeds} "
        f"| {format_training(results)} | {task.source} |"
    )


def format_training(results: Sequence[Result]) -> str:
    """The machine, and the training time on a GPU. Times on shared CPUs are not comparable."""
    machine = results[0]["machine"]
    if not machine.startswith("NVIDIA"):
        return f"on {machine}"
    bound = "≤ " if any(result.get("at_once", 2) > 1 for result in results) else ""
    return f"{bound}{sum(result['seconds'] for result in results):.0f} s, {machine}"


def format_score(value: float) -> str:
    """Format a score with one decimal, or three significant digits below 10."""
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def format_mean(values: Sequence[float]) -> str:
    """The mean ± the standard deviation."""
    return f"{format_score(statistics.mean(values))} ± {statistics.stdev(values):.1g}"


def signature_lines(recipe: str, task: MeasuredTask, result: Result) -> list[str]:
    return [
        f"- `{recipe}` {score['name']}: {score['signature']}"
        for score in result["report"]["scores"]
        if score["signature"] and score["name"].lower().replace(" ", "-") in task.scores
    ]


def page(out: Path) -> str | None:
    """The page with all tasks that have results. None if there are no results."""
    rows, signatures, versions = [], [], set()
    for recipe, task in TASKS.items():
        results = read_results(out, recipe, task)
        if not results:
            continue
        rows.append(format_row(recipe, task, results, out))
        signatures += signature_lines(recipe, task, results[0])
        versions |= {f"torch {result['torch']} on Python {result['python']}" for result in results}
    if not rows:
        return None
    return TEMPLATE.format(
        out=out.name,
        rows="\n".join(rows),
        signatures="\n".join(signatures) or "These scores have no signature.",
        versions=", ".join(sorted(versions)),
    )
