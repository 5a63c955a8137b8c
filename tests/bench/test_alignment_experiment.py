"""The alignment benchmark: data preparation, training, scores and the page."""

import gzip
import json
from pathlib import Path

import pytest

from bench.alignment.experiment import (
    DIRECTIONS,
    FAMILIES,
    config_of,
    prepare,
    reverse_links,
    score,
    tokenise,
    train,
)
from bench.alignment.page import page
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


def write_gzip(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """All corpora. The English sentences are the German ones written backwards."""
    german = [f"{a} {b} {c}." for a in WORDS for b in WORDS for c in WORDS]
    english = [line[-2::-1] + "." for line in german]
    folder = tmp_path / "data"
    pairs = zip(german, english, strict=True)
    write_gzip(
        folder / "tatoeba/eng-deu.train.tsv.gz", [f"{target}\t{source}" for source, target in pairs]
    )
    for name in ("multi30k", "europarl20k-de-en"):
        write_gzip(folder / name / "train.de.gz", german)
        write_gzip(folder / name / "train.en.gz", english)
    gold = folder / "word-alignment"
    write_gzip(gold / "de-en.europarl100.de.gz", ["haus hund .", "kind ball ."] * 3)
    write_gzip(gold / "de-en.europarl100.en.gz", ["dnuh suah .", "llab dnik ."] * 3)
    write_gzip(gold / "de-en.europarl100.align.gz", ["0-1 1-0 2-2"] * 6)
    return folder


@pytest.mark.slow
@pytest.mark.long
def test_runs_are_trained_scored_and_written_to_the_page(data: Path, tmp_path: Path) -> None:
    work = tmp_path / "runs"
    prepare(data, work / "text")
    assert (work / "text" / "tatoeba.de").read_text().startswith("haus haus haus .\n")
    assert (work / "text" / "tatoeba.en").read_text().startswith("suah suah suah .\n")
    settings = [*TINY, "model.decoder.width=8", "model.encoder.width=8"]
    results = []
    for family in FAMILIES:
        for direction in DIRECTIONS:
            train(family, direction, work, settings)
        results.append(json.loads(json.dumps(score(family, data, work))))
        assert (work / f"{family}.de-en" / "alignment" / "heads.json").is_file()
    text = page(results)
    assert text.count("\n| de-en, best heads | ") == 2
    assert text.count("\n| both, grow-diag, weights multiplied | ") == 2
    assert "## Transformer" in text


def test_reversing_links_twice_restores_them() -> None:
    gold = parse_gold("0-1 2p3")
    assert reverse_links(reverse_links(gold)) == gold
    assert reverse_links(gold).possible == {(1, 0), (3, 2)}


def test_text_is_tokenised_like_the_gold_sentences() -> None:
    text = "Mr Barnier's EU-Haushalt: 1,5 % (daß)!"
    assert tokenise(text) == "mr barnier 's eu-haushalt : 1,5 % ( dass ) !"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_two_directions_differ_only_in_the_data(family: str, tmp_path: Path) -> None:
    forward, backward = (config_of(family, direction, tmp_path, []) for direction in DIRECTIONS)
    assert forward.model == backward.model
    assert forward.training == backward.training
    assert forward.data != backward.data
