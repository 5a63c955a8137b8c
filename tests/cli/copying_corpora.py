"""A few hundred made-up examples of each data set, in its own files."""

import csv
import gzip
import io
import json
import random
from collections.abc import Callable
from pathlib import Path

SYLLABLES = ("ba", "do", "fi", "ku", "le", "mo", "na", "ri", "so", "tu")


def name(draw: random.Random) -> str:
    """A word that is rarely seen twice: something to be copied."""
    return "".join(draw.choices(SYLLABLES, k=3))


def zipped(path: Path, text: str) -> None:
    path.write_bytes(gzip.compress(text.encode("utf-8")))


def lines(path: Path, texts: list[str]) -> None:
    zipped(path, "".join(f"{text}\n" for text in texts))


def django(folder: Path, draw: random.Random) -> None:
    names = [(name(draw), name(draw)) for _ in range(320)]
    lines(folder / "all.anno.gz", [f"  call {one} with argument {two}." for one, two in names])
    lines(folder / "all.code.gz", [f"    {one} (  {two} )" for one, two in names])


def nl2bash(folder: Path, draw: random.Random) -> None:
    for split, count in (("train", 300), ("dev", 20), ("test", 20)):
        names = [name(draw) for _ in range(count)]
        pairs = [f"Find files called {one}\tfind . -name '{one}*'" for one in names]
        lines(folder / f"{split}.tsv.gz", pairs)


def conala(folder: Path, draw: random.Random) -> None:
    for split, count in (("train", 300), ("test", 20)):
        records = []
        for number in range(count):
            word = name(draw)
            intent = f"sort list `{word}`"
            rewritten = None if number % 5 == 0 else f"{intent} in reverse"
            record = {"intent": intent, "rewritten_intent": rewritten, "snippet": f"{word}.sort()"}
            records.append(json.dumps(record))
        lines(folder / f"conala-{split}.jsonl.gz", records)


def e2e(folder: Path, draw: random.Random) -> None:
    for split, count in (("trainset", 150), ("devset", 10), ("testset_w_refs", 10)):
        rows = [("mr", "ref")]
        for _ in range(count):
            place, near = name(draw), name(draw)
            facts = f"name[{place}], near[{near}]"
            rows += [
                (facts, f"{place} is near {near}."),
                (facts, f"Near {near}, there is {place}."),
            ]
        text = io.StringIO()
        csv.writer(text).writerows(rows)
        zipped(folder / f"{split}.csv.gz", text.getvalue())


def asset(folder: Path, draw: random.Random) -> None:
    for split, count in (("valid", 200), ("test", 10)):
        rows = []
        for _ in range(count):
            who = name(draw)
            simple = [f"{who} went home {manner}." for manner in SYLLABLES]
            rows.append("\t".join([f"Subsequently {who} returned to the house.", *simple]))
        lines(folder / f"asset.{split}.tsv.gz", rows)


def scitldr(folder: Path, draw: random.Random) -> None:
    for split, count in (("train", 150), ("dev", 10), ("test", 10)):
        records = []
        for _ in range(count):
            what = name(draw)
            source = [
                f"We introduce {what}.",
                f"In experiments {what} is better than {name(draw)}.",
            ]
            record = {"source": source, "target": [f"{what} is better.", f"We show {what}."]}
            records.append(json.dumps(record))
        lines(folder / f"{split}.jsonl.gz", records)


CORPORA: dict[str, Callable[[Path, random.Random], None]] = {
    "django-code": django,
    "nl2bash": nl2bash,
    "conala": conala,
    "e2e": e2e,
    "asset-simplify": asset,
    "scitldr": scitldr,
}
