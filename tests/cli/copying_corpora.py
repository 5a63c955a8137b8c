"""Made-up examples in the file formats of the datasets that the copying recipes use."""

import csv
import gzip
import io
import json
import random
from collections.abc import Callable
from pathlib import Path

SYLLABLES = ("ba", "do", "fi", "ku", "le", "mo", "na", "ri", "so", "tu")


def make_word(draw: random.Random) -> str:
    """A word that rarely occurs twice, so that the model has to copy it."""
    return "".join(draw.choices(SYLLABLES, k=3))


def write_gzip(path: Path, text: str) -> None:
    path.write_bytes(gzip.compress(text.encode("utf-8")))


def write_lines(path: Path, texts: list[str]) -> None:
    write_gzip(path, "".join(f"{text}\n" for text in texts))


def django(folder: Path, draw: random.Random) -> None:
    words = [(make_word(draw), make_word(draw)) for _ in range(320)]
    write_lines(
        folder / "all.anno.gz",
        [f"  call {first} with argument {second}." for first, second in words],
    )
    write_lines(folder / "all.code.gz", [f"    {first} (  {second} )" for first, second in words])


def nl2bash(folder: Path, draw: random.Random) -> None:
    for split, count in (("train", 300), ("dev", 20), ("test", 20)):
        words = [make_word(draw) for _ in range(count)]
        pairs = [f"Find files called {word}\tfind . -name '{word}*'" for word in words]
        write_lines(folder / f"{split}.tsv.gz", pairs)


def conala(folder: Path, draw: random.Random) -> None:
    for split, count in (("train", 300), ("test", 20)):
        records = []
        for number in range(count):
            word = make_word(draw)
            intent = f"sort list `{word}`"
            rewritten = None if number % 5 == 0 else f"{intent} in reverse"
            record = {"intent": intent, "rewritten_intent": rewritten, "snippet": f"{word}.sort()"}
            records.append(json.dumps(record))
        write_lines(folder / f"conala-{split}.jsonl.gz", records)


def e2e(folder: Path, draw: random.Random) -> None:
    for split, count in (("trainset", 150), ("devset", 10), ("testset_w_refs", 10)):
        rows = [("mr", "ref")]
        for _ in range(count):
            place, near = make_word(draw), make_word(draw)
            facts = f"name[{place}], near[{near}]"
            rows += [
                (facts, f"{place} is near {near}."),
                (facts, f"Near {near}, there is {place}."),
            ]
        text = io.StringIO()
        csv.writer(text).writerows(rows)
        write_gzip(folder / f"{split}.csv.gz", text.getvalue())


def asset(folder: Path, draw: random.Random) -> None:
    for split, count in (("valid", 200), ("test", 10)):
        rows = []
        for _ in range(count):
            who = make_word(draw)
            simple = [f"{who} went home {adverb}." for adverb in SYLLABLES]
            rows.append("\t".join([f"Subsequently {who} returned to the house.", *simple]))
        write_lines(folder / f"asset.{split}.tsv.gz", rows)


def scitldr(folder: Path, draw: random.Random) -> None:
    for split, count in (("train", 150), ("dev", 10), ("test", 10)):
        records = []
        for _ in range(count):
            what = make_word(draw)
            source = [
                f"We introduce {what}.",
                f"In experiments {what} is better than {make_word(draw)}.",
            ]
            record = {"source": source, "target": [f"{what} is better.", f"We show {what}."]}
            records.append(json.dumps(record))
        write_lines(folder / f"{split}.jsonl.gz", records)


CORPORA: dict[str, Callable[[Path, random.Random], None]] = {
    "django-code": django,
    "nl2bash": nl2bash,
    "conala": conala,
    "e2e": e2e,
    "asset-simplify": asset,
    "scitldr": scitldr,
}
