"""Generates docs/results/alignment.md from the results."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "results" / "alignment.md"
HEAD = """# Word alignment by attention

Written by `python -m bench.alignment OUT --data FOLDER --jobs 4` and `--write`; the JSON files are in `alignment/`. Trained on
Tatoeba, Multi30k and 20,000 pairs of Europarl, German–English, lower-cased and tokenised like the gold set. Each model is
trained in both directions, all four runs at the same time on {machine} (seqloom {seqloom}, torch {torch}). The models are not
trained on alignments: given both sentences, the attention weights of the decoder link the words. Gold: 100 human-aligned
Europarl pairs with sure links only (Bicici 2011); these sentences were not added to the training data. The even pairs select
the heads and the step of each run; the odd pairs are the test set. The alignment error rate is 0 at best and 1 at worst.

Published for these 100 pairs: 0.26–0.27 for the attention of a translation model trained on alignments, 0.48 for fast_align
trained on little text and 0.34 on much text (Zouhar and Pylypenko 2021).
"""
ROW = "| {name} | {precision:.2f} | {recall:.2f} | **{test:.3f}** | {all:.3f} |"


def format_row(name: str, scores: dict[str, Any]) -> str:
    """Precision and recall are those of the test pairs."""
    test = scores["test"]
    return ROW.format(
        name=name,
        precision=test["precision"],
        recall=test["recall"],
        test=test["error_rate"],
        all=scores["all"]["error_rate"],
    )


def section(result: dict[str, Any]) -> list[str]:
    """The lines of one model family: each direction, then the combinations of both."""
    directions = result["directions"]
    title: str = result["family"].capitalize()
    summary = [
        f"{direction}: {facts['parameters'] / 1e6:.1f} M parameters, {facts['seconds']:.0f} s; "
        f"best on the even pairs: {facts['heads']} ({facts['dev']['error_rate']:.3f})."
        for direction, facts in directions.items()
    ]
    rows = []
    for direction, facts in directions.items():
        rows.append(format_row(f"{direction}, mean of all heads", facts["all heads"]))
        rows.append(format_row(f"{direction}, best heads", result["scores"][direction]))
    rows += [
        format_row(f"both, {name}", scores)
        for name, scores in result["scores"].items()
        if name not in directions
    ]
    head = ["| | precision | recall | error rate, test | all 100 |", "|---|---|---|---|---|"]
    return [f"\n## {title}\n", *summary, "", *head, *rows]


def page(results: Sequence[dict[str, Any]]) -> str:
    versions = {
        key: ", ".join(sorted({result[key] for result in results}))
        for key in ("machine", "seqloom", "torch")
    }
    lines = [HEAD.format(**versions), *(line for result in results for line in section(result))]
    return "\n".join(lines) + "\n"
