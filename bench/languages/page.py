"""Generates docs/results/languages.md from the results."""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.languages.experiments import (
    CENTRED,
    DIRECT,
    EXPERIMENTS,
    PIVOT,
    SMALL_CORPUS,
    ZERO_SHOT,
)
from bench.tricks.page import format_spread

PAGE = Path(__file__).parents[2] / "docs" / "results" / "languages.md"
HEAD = """# Many languages in one model

Written by `python -m bench.languages OUT --multi30k FOLDER` and `--write`; there is one JSON file per model in
`languages/`. Multi30k, raw text, test_2016_flickr, beam 5. BLEU: {signature}; mean ± standard
deviation over the seeds, and in brackets the share of outputs in the requested language. Trained on {machine},
seqloom {seqloom}, torch {torch}. Several models shared the machine, so training times are upper bounds.
"""
ZERO_SHOT_SECTION = """
## Zero-shot translation

The training data contains no German→French pairs. Either all other directions are present, or German and French
are only paired with English.

| | {pairs} |
|---|{rules}|
{rows}
"""
TRANSFER_SECTION = f"""
## Does en–fr data help en–de when en–de is small?

The first {SMALL_CORPUS:,} sentences of en–de, alone or with all 29,000 sentences of other pairs.

| trained on | en→de | parameters | seconds | seeds |
|---|---|---|---|---|
{{rows}}
"""
SHARING_SECTION = """
## Cost of sharing for the training pairs

| trained on | {pairs} | parameters | seconds | seeds |
|---|{rules}|---|---|---|
{rows}
"""
Result = dict[str, Any]
Results = dict[str, list[Result]]
"""The results of each experiment, one per seed."""

ZERO_SHOT_MODELS = ("all-pairs", "one-held-out", "centred", "centred-gap", "centred-target-tag")
DESCRIPTIONS = {experiment.name: experiment.description for experiment in EXPERIMENTS}


def format_cell(results: Sequence[Result], pair: str, route: str = DIRECT) -> str:
    """BLEU over the seeds, and the percentage of outputs in the target language."""
    scores = [
        result["pairs"][pair][route] for result in results if route in result["pairs"].get(pair, {})
    ]
    if not scores:
        return "–"
    in_language = statistics.mean(score["in_language"] for score in scores)
    return f"{format_spread([score['bleu'] for score in scores])} ({in_language:.0f} %)"


def format_facts(results: Sequence[Result]) -> str:
    """Parameters, training time and number of seeds."""
    seconds = statistics.mean(result["seconds"] for result in results)
    return f"{results[0]['parameters'] / 1e6:.1f} M | {seconds:.0f} | {len(results)}"


def zero_shot_rows(results: Results) -> list[str]:
    """German to French and back: bilingual models, then each multilingual model and route."""
    rows = [
        f"| bilingual models: de→fr, fr→de | {format_cell(results['de-fr'], 'de-fr')} "
        f"| {format_cell(results['fr-de'], 'fr-de')} |"
    ]
    for name in ZERO_SHOT_MODELS:
        for route in (DIRECT, PIVOT):
            cells = [format_cell(results[name], pair, route) for pair in ZERO_SHOT]
            if set(cells) != {"–"}:
                rows.append(f"| {DESCRIPTIONS[name]}; {route} | {' | '.join(cells)} |")
    return rows


def experiment_rows(results: Results, names: Sequence[str], pairs: Sequence[str]) -> list[str]:
    """A row per experiment with results."""
    rows = []
    for name in names:
        if results[name]:
            cells = " | ".join(format_cell(results[name], pair) for pair in pairs)
            rows.append(f"| {DESCRIPTIONS[name]} | {cells} | {format_facts(results[name])} |")
    return rows


def page(results: Sequence[Result]) -> str:
    by_experiment = {
        name: [result for result in results if result["experiment"] == name]
        for name in DESCRIPTIONS
    }
    first_scores = next(iter(results[0]["pairs"].values()))[DIRECT]
    versions = {
        key: ", ".join(sorted({result[key] for result in results}))
        for key in ("machine", "seqloom", "torch")
    }
    transfer = [each.name for each in EXPERIMENTS if each.small_pairs] + ["en-de"]
    sharing = [*ZERO_SHOT_MODELS, "en-de"]
    return (
        HEAD.format(signature=first_scores["signature"], **versions)
        + ZERO_SHOT_SECTION.format(
            pairs=" | ".join(ZERO_SHOT),
            rules="---|---",
            rows="\n".join(zero_shot_rows(by_experiment)),
        )
        + TRANSFER_SECTION.format(
            rows="\n".join(experiment_rows(by_experiment, transfer, ["en-de"]))
        )
        + SHARING_SECTION.format(
            pairs=" | ".join(CENTRED),
            rules="|".join("---" for _ in CENTRED),
            rows="\n".join(experiment_rows(by_experiment, sharing, CENTRED)),
        )
    )


def write_page(out: Path) -> None:
    results = [json.loads(path.read_text()) for path in sorted(out.glob("*.json"))]
    if not results:
        raise SystemExit(f"There are no results in {out}.")
    PAGE.write_text(page(results), encoding="utf-8")
    print(f"Wrote {PAGE} from {len(results)} results")
