"""docs/results/pronunciation.md, from the results."""

import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.pronunciation.languages import LANGUAGES
from bench.pronunciation.measure import ALL

PAGE = Path(__file__).parents[2] / "docs" / "results" / "pronunciation.md"
Result = dict[str, Any]
WORDS, PHONES = "word-error-rate", "phoneme-error-rate"

TEXT = """# Pronunciation in fifteen languages

SIGMORPHON 2020, task 1: 3,600 words to learn from in each language, 450 to be tested on. Word error rate /
phoneme error rate of the test words in percent, beam 5; lower is better. Made by
`python -m bench.pronunciation OUT --sigmorphon FOLDER` and `--write`; one JSON file for each run lies in
`{out}/`. Of several seeds ({seeds}) figures are means; an ensemble is all of them asked together.

| language | {heads} |
|---|{rules}|
{rows}

Published means of the 15 languages (Gorman et al. 2020): pair n-grams about 22.0; LSTM 16.84 / 3.99; Transformer
17.51 / 4.30; the best of the task, an ensemble with more data made up by itself, 13.81 / 2.76.

{facts}
"""


def read(out: Path) -> list[Result]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(out.glob("*.json"))]


def columns(results: Iterable[Result]) -> dict[str, dict[str, list[dict[str, float]]]]:
    """What was measured, by kind of model, then by language: the scores of every seed."""
    names = {
        (False, False): "a model each",
        (False, True): "ensembles of these",
        (True, False): "one model for all",
        (True, True): "ensemble of these",
    }
    found: dict[str, dict[str, list[dict[str, float]]]] = {name: {} for name in names.values()}
    for result in results:
        column = found[names[result["language"] == ALL, result["seed"] is None]]
        for language, scores in result["scores"].items():
            column.setdefault(language, []).append(scores)
    return {name: column for name, column in found.items() if column}


def mean(several: list[dict[str, float]], key: str) -> float:
    return statistics.mean(one[key] for one in several)


def cell(column: dict[str, list[dict[str, float]]], language: str) -> str:
    several = column.get(language)
    return f"{mean(several, WORDS):.1f} / {mean(several, PHONES):.1f}" if several else "–"


def average(column: dict[str, list[dict[str, float]]]) -> str:
    """Of all languages, each counting the same; nothing while one is missing."""
    if set(column) != set(LANGUAGES):
        return f"– ({len(column)} of {len(LANGUAGES)})"
    return " / ".join(
        f"**{statistics.mean(mean(one, key) for one in column.values()):.2f}**"
        for key in (WORDS, PHONES)
    )


def facts(results: Iterable[Result]) -> str:
    """Size, time and machine of each kind of model."""
    lines = []
    for name, wanted in (("a model each", False), ("one model for all", True)):
        own = [one for one in results if (one["language"] == ALL) == wanted and one["seed"]]
        if own:
            first = own[0]
            seconds = statistics.mean(one["seconds"] for one in own)
            sizes = [one["parameters"] / 1e6 for one in own]
            lines.append(
                f"- {name}: {min(sizes):.1f} to {max(sizes):.1f} M parameters, {first['steps']:,} "
                f"steps, at most {seconds:.0f} s (runs share one {first['machine']}), torch "
                f"{first['torch']}, seqloom {first['seqloom']}"
            )
    return "\n".join(lines)


def page(out: Path) -> str | None:
    """None if there is nothing to write about."""
    results = read(out)
    if not results:
        return None
    shown = columns(results)
    rows = [
        f"| {name} | {' | '.join(cell(column, language) for column in shown.values())} |"
        for language, name in LANGUAGES.items()
    ]
    rows.append(f"| mean | {' | '.join(average(column) for column in shown.values())} |")
    seeds = sorted({one["seed"] for one in results if one["seed"] is not None})
    return TEXT.format(
        out=out.name,
        seeds=", ".join(map(str, seeds)),
        heads=" | ".join(shown),
        rules="|".join("---" for _ in shown),
        rows="\n".join(rows),
        facts=facts(results),
    )
