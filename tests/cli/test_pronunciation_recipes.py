"""The recipes for pronunciation, in miniature: trained, scored and asked, from a folder that moved."""

import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from calling import call

from seqloom.core.errors import ConfigError
from seqloom.runs.run import load

PHONES = {"a": "AH", "b": "B", "k": "K", "o": "OW", "t": "T", "e": "˧˥"}
SMALL = {
    "cmudict-g2p": ["width=16", "layers=1", "feedforward=16", "dropout=0.0"],
    "sigmorphon-g2p": ["width=16", "dropout=0.0"],
}
FILES = {"cmudict-g2p": "g2p.{}.tsv.gz", "sigmorphon-g2p": "fre_{}.tsv.gz"}
every_recipe = pytest.mark.parametrize("name", SMALL)


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def lines(split: str) -> list[str]:
    """Words of three letters; one that begins with o can be said in two ways."""
    letters = sorted(PHONES)
    words = [f"{x}{y}{z}" for x in letters for y in letters for z in letters]
    place = {"train": (0, 1), "dev": (2,), "test": (3,)}[split]
    found = []
    for number, word in enumerate(words):
        if number % 4 in place:
            found.append(f"{word}\t{' '.join(PHONES[letter] for letter in word)}")
            if word.startswith("o"):
                found.append(f"{word}\tAA {' '.join(PHONES[letter] for letter in word[1:])}")
    return found


def trained(name: str, folder: Path) -> Path:
    for split in ("train", "dev", "test"):
        with gzip.open(folder / FILES[name].format(split), "wt", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines(split)))
    settings = [
        *(f"model.{side}.{one}" for side in ("encoder", "decoder") for one in SMALL[name]),
        *("training.steps=12", "training.evaluate_every=6", "training.schedule.warmup=2"),
        *("training.batch_tokens=256", "training.compile=false", f"data.folder={folder}"),
        *(["model.encoder.attention.heads=2"] if name == "cmudict-g2p" else []),
    ]
    flags = [part for one in settings for part in ("--set", one)]
    answer = call("train", name, "--run", folder / "run", *flags)
    assert answer.code == 0, answer.err
    assert "word error rate" in answer.err
    return folder / "run"


@pytest.fixture(scope="module", params=SMALL)
def moved(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """A run that is no longer where it was trained."""
    folder = trained(request.param, tmp_path_factory.mktemp("pronunciation"))
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "run"
    shutil.move(folder, elsewhere)
    return request.param, elsewhere


def test_it_is_scored_by_words_and_phones_with_several_pronunciations(
    moved: tuple[str, Path],
) -> None:
    _, folder = moved
    answer = call("evaluate", folder, "--json")
    assert answer.code == 0, answer.err
    report = json.loads(answer.out)
    words = {line.split("\t")[0] for line in lines("test")}
    assert report["sentences"] == len(words) < len(lines("test"))
    names = [score["name"] for score in report["scores"]]
    assert names[:2] == ["word error rate", "phoneme error rate"]
    python = {score.name: score.value for score in load(folder).evaluate("test").scores}
    for score in report["scores"][:2]:
        assert 0 <= score["value"] == pytest.approx(python[score["name"]])


def test_a_word_is_answered_by_phones(moved: tuple[str, Path]) -> None:
    _, folder = moved
    answer = call("translate", folder, given=b"kat\n\nbob\n")
    assert answer.code == 0, answer.err
    first, blank, second, _ = answer.out.split("\n")
    assert blank == ""
    assert [one.text for one in load(folder).translate(["kat", "bob"])] == [first, second]
    assert {*first.split(), *second.split()} <= {"AA", *PHONES.values()}


def test_the_best_weights_are_those_with_the_fewest_errors(moved: tuple[str, Path]) -> None:
    _, folder = moved
    journal = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    looks: list[dict[str, Any]] = [line for line in journal if line["event"] == "evaluate"]
    best = [look["word-error-rate"] for look in looks if look["best"]]
    assert best == sorted(best, reverse=True)
    assert min(look["word-error-rate"] for look in looks) == best[-1]


@every_recipe
def test_a_missing_data_set_is_said_clearly(name: str, tmp_path: Path) -> None:
    answer = call("doctor", name, "--set", f"data.folder={tmp_path}")
    assert answer.code == 66
    assert FILES[name].format("train") in answer.out + answer.err


def test_a_run_for_pronunciation_gives_no_labels(moved: tuple[str, Path]) -> None:
    _, folder = moved
    with pytest.raises(ConfigError, match=r"is for translation and gives no labels"):
        load(folder).label(["kat"])
