"""docs/results/alignment.md, from the results."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "results" / "alignment.md"
HEAD = """# How well attention aligns words

Made by `python -m bench.alignment OUT --data FOLDER --jobs 4` and `--write`; the JSON files lie in `alignment/`. Trained on
Tatoeba, Multi30k and 20,000 pairs of Europarl, German–English, lower-cased and tokenised like the gold set, each model in both
directions, all four at the same time on {machine} (seqloom {seqloom}, torch {torch}). Nothing is taught about alignments:
given both sentences, words are linked by where the decoder looked. Gold: 100 Europarl pairs aligned by people, all
links sure (Bicici 2011), none of the sentences added to the training text. Its even pairs choose the heads and the step of each run;
the odd ones are the test. Alignment error rate: 0 is perfect, 1 the worst.

Published for these 100 pairs: 0.26–0.27 from the attention of a translation model that was taught alignments, 0.48 from fast_align
trained on little text, 0.34 on much (Zouhar and Pylypenko 2021).
"""
ROW = "| {name} | {precision:.2f} | {recall:.2f} | **{test:.3f}** | {all:.3f} |"


def row(name: str, scores: dict[str, Any]) -> str:
    """Precision and recall are those of the test."""
    test = scores["test"]
    return ROW.format(
        name=name,
        precision=test["precision"],
        recall=test["recall"],
        test=test["error_rate"],
        all=scores["all"]["error_rate"],
    )


def section(record: dict[str, Any]) -> list[str]:
    """One family: each direction, and both together."""
    facts = record["directions"]
    title: str = record["family"].capitalize()
    said = [
        f"{direction}: {own['parameters'] / 1e6:.1f} M parameters, {own['seconds']:.0f} s; "
        f"best on the even pairs: {own['heads']} ({own['dev']['error_rate']:.3f})."
        for direction, own in facts.items()
    ]
    rows = []
    for direction, own in facts.items():
        rows.append(row(f"{direction}, mean of all heads", own["all heads"]))
        rows.append(row(f"{direction}, best heads", record["scores"][direction]))
    rows += [
        row(f"both, {name}", scores)
        for name, scores in record["scores"].items()
        if name not in facts
    ]
    head = ["| | precision | recall | error rate, test | all 100 |", "|---|---|---|---|---|"]
    return [f"\n## {title}\n", *said, "", *head, *rows]


def page(records: Sequence[dict[str, Any]]) -> str:
    listed = {
        key: ", ".join(sorted({one[key] for one in records}))
        for key in ("machine", "seqloom", "torch")
    }
    return "\n".join([HEAD.format(**listed), *(line for one in records for line in section(one))]) + "\n"  # fmt: skip
