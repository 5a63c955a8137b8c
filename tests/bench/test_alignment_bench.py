"""What bench/alignment would train and score can be trained and scored, and becomes a page."""

import argparse
import gzip
import json
from pathlib import Path

import pytest

from bench.alignment import (
    DIRECTIONS,
    FAMILIES,
    config_of,
    prepare,
    score,
    tokenised,
    train,
    turned,
)
from bench.alignment_page import page
from seqloom.metrics.alignment_error import parse_gold

WORDS = ["haus", "hund", "kind", "ball"]
TINY = [
    "data.dev={kind='hold-out', fraction=0.3}",
    "training.steps=2",
    "training.evaluate_every=2",
    "training.compile=false",
    "training.schedule={kind='constant'}",
    "text.tokenizer.size=40",
    "decoding.max_length=5",
]


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Every corpus, in a language whose English is German written backwards."""
    german = [f"{one} {other} {third}." for one in WORDS for other in WORDS for third in WORDS]
    english = [line[-2::-1] + "." for line in german]
    folder = tmp_path / "data"
    write(folder / "tatoeba/eng-deu.train.tsv.gz", [f"{b}\t{a}" for a, b in zip(german, english, strict=True)])  # fmt: skip
    for name in ("multi30k", "europarl20k-de-en"):
        write(folder / name / "train.de.gz", german)
        write(folder / name / "train.en.gz", english)
    gold = folder / "word-alignment"
    write(gold / "de-en.europarl100.de.gz", ["haus hund .", "kind ball ."] * 3)
    write(gold / "de-en.europarl100.en.gz", ["dnuh suah .", "llab dnik ."] * 3)
    write(gold / "de-en.europarl100.align.gz", ["0-1 1-0 2-2"] * 6)
    return folder


def test_from_texts_to_a_page(data: Path, tmp_path: Path) -> None:
    work = tmp_path / "runs"
    prepare(data, work / "text")
    assert (work / "text" / "tatoeba.de").read_text().startswith("haus haus haus .\n")
    assert (work / "text" / "tatoeba.en").read_text().startswith("suah suah suah .\n")
    small = [*TINY, "model.decoder.width=8", "model.encoder.width=8"]
    chosen = argparse.Namespace(out=tmp_path, work=work, data=data, settings=small)
    records = []
    for family in FAMILIES:
        for direction in DIRECTIONS:
            train(family, direction, chosen)
        records.append(json.loads(json.dumps(score(family, chosen))))
        assert (work / f"{family}.de-en" / "alignment" / "heads.json").is_file()
    written = page(records)
    assert written.count("\n| de-en, best heads | ") == 2
    assert written.count("\n| both, grow-diag, weights multiplied | ") == 2
    assert "## Transformer" in written


def test_both_directions_are_scored_by_the_same_links() -> None:
    gold = parse_gold("0-1 2p3")
    assert turned(turned(gold)) == gold
    assert turned(gold).possible == {(1, 0), (3, 2)}


def test_text_is_cut_as_the_gold_sentences_are() -> None:
    text = "Mr Barnier's EU-Haushalt: 1,5 % (daß)!"
    assert tokenised(text) == "mr barnier 's eu-haushalt : 1,5 % ( dass ) !"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_two_directions_differ_in_nothing_else(family: str, tmp_path: Path) -> None:
    one, other = (config_of(family, direction, tmp_path, []) for direction in DIRECTIONS)
    assert one.model == other.model
    assert one.training == other.training
    assert one.data != other.data
