"""Generates docs/results/pronunciation.md from the results."""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.pronunciation.languages import LANGUAGES
from bench.pronunciation.measure import ALL

PAGE = Path(__file__).parents[2] / "docs" / "results" / "pronunciation.md"
Result = dict[str, Any]
Column = dict[str, list[dict[str, float]]]
"""The scores of each language, one dict per seed."""
WORDS, PHONES = "word-error-rate", "phoneme-error-rate"
SINGLE, JOINT = "one model per language", "one model for all"

TEXT = """# Pronunciation in fifteen languages

SIGMORPHON 2020, task 1: 3,600 training words and 450 test words per language. Word error rate / phoneme error rate of
the test words in percent, beam 5; lower is better. Written by
`python -m bench.pronunciation OUT --sigmorphon FOLDER` and `--write`; there is one JSON file per run in `{out}/`.
Figures are means over the seeds ({seeds}); an ensemble combines the models of all seeds.

| language | {heads} |
|---|{rules}|
{rows}

Published means of the 15 languages (Gorman et al. 2020): pair n-grams about 22.0; LSTM 16.84 / 3.99; Transformer
17.51 / 4.30; the best submission, an ensemble with additional self-generated data, 13.81 / 2.76.

{facts}
"""


def read_results(out: Path) -> list[Result]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(out.glob("*.json"))]


def build_columns(results: Sequence[Result]) -> dict[str, Column]:
    """The scores by kind of model, then by language."""
    names = {
        (False, False): SINGLE,
        (False, True): "their ensembles",
        (True, False): JOINT,
        (True, True): "its ensemble",
    }
    columns: dict[str, Column] = {name: {} for name in names.values()}
    for result in results:
        column = columns[names[result["language"] == ALL, result["seed"] is None]]
        for language, scores in result["scores"].items():
            column.setdefault(language, []).append(scores)
    return {name: column for name, column in columns.items() if column}


def mean_score(scores: Sequence[dict[str, float]], key: str) -> float:
    return statistics.mean(seed_scores[key] for seed_scores in scores)


def format_cell(column: Column, language: str) -> str:
    scores = column.get(language)
    return f"{mean_score(scores, WORDS):.1f} / {mean_score(scores, PHONES):.1f}" if scores else "–"


def format_average(column: Column) -> str:
    """The mean over all languages, or how many are measured if some are missing."""
    if set(column) != set(LANGUAGES):
        return f"– ({len(column)} of {len(LANGUAGES)})"
    return " / ".join(
        f"**{statistics.mean(mean_score(scores, key) for scores in column.values()):.2f}**"
        for key in (WORDS, PHONES)
    )


def format_facts(results: Sequence[Result]) -> str:
    """Size, training time and machine of each kind of model."""
    lines = []
    for name, is_joint in ((SINGLE, False), (JOINT, True)):
        runs = [
            result
            for result in results
            if (result["language"] == ALL) == is_joint and result["seed"]
        ]
        if runs:
            first = runs[0]
            seconds = statistics.mean(run["seconds"] for run in runs)
            sizes = [run["parameters"] / 1e6 for run in runs]
            lines.append(
                f"- {name}: {min(sizes):.1f} to {max(sizes):.1f} M parameters, {first['steps']:,} "
                f"steps, at most {seconds:.0f} s (runs share one {first['machine']}), torch "
                f"{first['torch']}, seqloom {first['seqloom']}"
            )
    return "\n".join(lines)


def page(out: Path) -> str | None:
    """The page as Markdown. None if there are no results."""
    results = read_results(out)
    if not results:
        return None
    columns = build_columns(results)
    rows = [
        f"| {name} | {' | '.join(format_cell(column, language) for column in columns.values())} |"
        for language, name in LANGUAGES.items()
    ]
    rows.append(f"| mean | {' | '.join(format_average(column) for column in columns.values())} |")
    seeds = sorted({result["seed"] for result in results if result["seed"] is not None})
    return TEXT.format(
        out=out.name,
        seeds=", ".join(map(str, seeds)),
        heads=" | ".join(columns),
        rules="|".join("---" for _ in columns),
        rows="\n".join(rows),
        facts=format_facts(results),
    )
