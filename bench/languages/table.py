"""docs/results/languages.md, from the results."""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.languages.experiments import (
    CENTRED,
    DIRECT,
    EXPERIMENTS,
    SMALL,
    THROUGH,
    ZERO_SHOT,
)
from bench.tricks.table import spread

PAGE = Path(__file__).parents[2] / "docs" / "results" / "languages.md"
HEAD = """# Many languages in one model

Made by `python -m bench.languages OUT --multi30k FOLDER` and `--write`: one JSON file for each model lies in
`languages/`. Multi30k, raw text, test_2016_flickr, beam 5. BLEU: {signature}; means over the seeds, ± their
standard deviation, in brackets the share of outputs in the language that was asked for. Trained on {machine},
seqloom {seqloom}, torch {torch}; models shared the machine, so their seconds are upper bounds.
"""
ZERO = """
## A pair that was never trained on

In the training data German is never translated into French: either all other directions are there, or German
and French meet English alone.

| | {pairs} |
|---|{rules}|
{rows}
"""
FEW = f"""
## Does en–fr data help en–de when en–de is small?

The first {SMALL:,} sentences of en–de, alone or with all 29,000 of other pairs.

| trained on | en→de | parameters | seconds | seeds |
|---|---|---|---|---|
{{rows}}
"""
SHARING = """
## What sharing costs the pairs that were trained on

| trained on | {pairs} | parameters | seconds | seeds |
|---|{rules}|---|---|---|
{rows}
"""
Result = dict[str, Any]

ZERO_SHOT_MODELS = ("all-pairs", "one-held-out", "centred", "centred-gap", "centred-target-tag")


def cell(results: Sequence[Result], pair: str, way: str = DIRECT) -> str:
    """Mean and deviation of BLEU; how many outputs are in the right language, if not all are."""
    found = [one["pairs"][pair][way] for one in results if way in one["pairs"].get(pair, {})]
    if not found:
        return "–"
    right = statistics.mean(one["in_language"] for one in found)
    return f"{spread([one['bleu'] for one in found])} ({right:.0f} %)"


def facts(results: Sequence[Result]) -> str:
    seconds = statistics.mean(one["seconds"] for one in results)
    return f"{results[0]['parameters'] / 1e6:.1f} M | {seconds:.0f} | {len(results)}"


def zero_shot_rows(known: dict[str, list[Result]]) -> list[str]:
    """Every way to get from German to French and back."""
    rows = [
        f"| one pair alone: de→fr, fr→de | {cell(known['de-fr'], 'de-fr')} "
        f"| {cell(known['fr-de'], 'fr-de')} |"
    ]
    for name in ZERO_SHOT_MODELS:
        words = next(one.words for one in EXPERIMENTS if one.name == name)
        for way in (DIRECT, THROUGH):
            cells = [cell(known[name], pair, way) for pair in ZERO_SHOT]
            if set(cells) != {"–"}:
                rows.append(f"| {words}; {way} | {' | '.join(cells)} |")
    return rows


def rows_of(
    known: dict[str, list[Result]], names: Sequence[str], pairs: Sequence[str]
) -> list[str]:
    words = {one.name: one.words for one in EXPERIMENTS}
    return [
        f"| {words[name]} | {' | '.join(cell(known[name], pair) for pair in pairs)} "
        f"| {facts(known[name])} |"
        for name in names
        if known[name]
    ]


def page(results: Sequence[Result]) -> str:
    known = {
        one.name: [result for result in results if result["experiment"] == one.name]
        for one in EXPERIMENTS
    }
    some = next(iter(results[0]["pairs"].values()))[DIRECT]
    listed = {key: ", ".join(sorted({one[key] for one in results})) for key in ("machine", "seqloom", "torch")}  # fmt: skip
    few = [one.name for one in EXPERIMENTS if one.few] + ["en-de"]
    sharing = [*ZERO_SHOT_MODELS, "en-de"]
    return (
        HEAD.format(signature=some["signature"], **listed)
        + ZERO.format(
            pairs=" | ".join(ZERO_SHOT), rules="---|---", rows="\n".join(zero_shot_rows(known))
        )
        + FEW.format(rows="\n".join(rows_of(known, few, ["en-de"])))
        + SHARING.format(
            pairs=" | ".join(CENTRED),
            rules="|".join("---" for _ in CENTRED),
            rows="\n".join(rows_of(known, sharing, CENTRED)),
        )
    )


def write(out: Path) -> None:
    results = [json.loads(path.read_text()) for path in sorted(out.glob("*.json"))]
    if not results:
        raise SystemExit(f"{out}: there are no results yet")
    PAGE.write_text(page(results), encoding="utf-8")
    print(f"{len(results)} results; {PAGE} written")
