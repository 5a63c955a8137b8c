"""The study of word alignment: data preparation, training, scores and the table."""

import gzip
import json
from pathlib import Path

import pytest

from bench.measure import Context, config_of
from bench.studies.alignment import (
    DIRECTIONS,
    FAMILIES,
    measure,
    prepare,
    reverse_links,
    table,
    tokenise,
)
from bench.study import Job, list_jobs, load_study
from seqloom.metrics.alignment_error import parse_gold

STUDY = load_study("alignment")
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
def test_both_directions_are_trained_scored_and_in_the_table(data: Path, tmp_path: Path) -> None:
    settings = (*TINY, "model.decoder.width=8", "model.encoder.width=8")
    context = Context(data, tmp_path / "runs", settings)
    prepare(context)
    texts = context.work / "text"
    assert (texts / "tatoeba.de").read_text().startswith("haus haus haus .\n")
    assert (texts / "tatoeba.en").read_text().startswith("suah suah suah .\n")
    jobs = sorted(list_jobs(STUDY, [1]), key=lambda job: job.stage)
    records = [json.loads(json.dumps(measure(job, context))) for job in jobs]
    for family in FAMILIES:
        assert (context.work / f"{family}.de-en.seed1" / "alignment" / "heads.json").is_file()
        text = table(STUDY, records, family)
        assert text.count("\n| de-en, best heads | ") == 1
        assert text.count("\n| both, grow-diag, weights multiplied | ") == 1


def test_reversing_links_twice_restores_them() -> None:
    gold = parse_gold("0-1 2p3")
    assert reverse_links(reverse_links(gold)) == gold
    assert reverse_links(gold).possible == {(1, 0), (3, 2)}


def test_text_is_tokenised_like_the_gold_sentences() -> None:
    text = "Mr Barnier's EU-Haushalt: 1,5 % (daß)!"
    assert tokenise(text) == "mr barnier 's eu-haushalt : 1,5 % ( dass ) !"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_two_directions_differ_only_in_the_data(family: str, tmp_path: Path) -> None:
    context = Context(tmp_path, tmp_path)
    forward, backward = (
        config_of(Job(STUDY, STUDY.recipes[family], STUDY.changes[direction], 1), context)
        for direction in DIRECTIONS
    )
    assert forward.model == backward.model
    assert forward.training == backward.training
    assert forward.data != backward.data
