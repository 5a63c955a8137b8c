"""The recipes for labels, in miniature: trained, scored and asked, from a folder that moved."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from calling import call

from seqloom.data.bundled_labels import without_capitals
from seqloom.runs.run import load

SENTENCES = {
    "de": ["Das ist ein {}.", "Ich sehe {} nicht."],
    "en": ["This is a {}.", "I do not see {}."],
    "fr": ["Voici un {}.", "Je ne vois pas {}."],
}
THINGS = ["Tom", "Haus", "cat", "chien", "Baum", "tree", "Hut", "hat"]


def pairs(name: str) -> list[tuple[str, str]]:
    filled = [
        (form.format(thing), language)
        for thing in THINGS
        for language, forms in SENTENCES.items()
        for form in forms
    ]
    if name == "language-id":
        return filled * 3
    return [without_capitals(sentence) for sentence, _ in filled]


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def settings_of(name: str, folder: Path) -> list[str]:
    path = folder / f"{name}.tsv"
    lines = "".join(f"{source}\t{target}\n" for source, target in pairs(name))
    path.write_text(lines, encoding="utf-8")
    corpora = [f"data.{split}={{kind='tsv', path='{path}'}}" for split in ("train", "dev", "test")]
    settings = [
        *corpora,
        *("training.steps=25", "training.evaluate_every=25", "training.schedule.warmup=2"),
        *(
            "training.batch_tokens=512",
            "model.encoder.width=16",
            "training.optimizer.learning_rate=0.02",
        ),
    ]
    return [part for one in settings for part in ("--set", one)]


def trained(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is no longer where it was trained."""
    folder = tmp_path_factory.mktemp("labels")
    answer = call("train", name, "--run", folder / "run", *settings_of(name, folder))
    assert answer.code == 0, answer.err
    assert f"seqloom label {folder / 'run'}" in answer.err
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "run"
    shutil.move(folder / "run", elsewhere)
    return elsewhere


@pytest.fixture(scope="module")
def languages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained("language-id", tmp_path_factory)


@pytest.fixture(scope="module")
def capitals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained("capitals", tmp_path_factory)


def test_a_sentence_is_answered_by_its_label_and_how_sure_the_model_is(languages: Path) -> None:
    answer = call("label", languages, "Das ist ein Tom.", "", "I do not see Tom.")
    assert (answer.code, answer.err) == (0, "")
    first, blank, second, end = answer.out.split("\n")
    assert (blank, end) == ("", "")
    for line in (first, second):
        label, probability = line.split("\t")
        assert label in SENTENCES
        assert 0 < float(probability) <= 1
    given = b"Das ist ein Tom.\n\nI do not see Tom.\n"
    assert call("label", languages, given=given).out == answer.out


def test_all_labels_are_listed_the_likeliest_first(languages: Path) -> None:
    fields = call("label", languages, "Voici un chien.", "--all").out.split()
    labels, shares = fields[::2], [float(one) for one in fields[1::2]]
    assert sorted(labels) == sorted(SENTENCES)
    assert shares == sorted(shares, reverse=True)
    assert 0.95 < sum(shares) < 1.001  # the rest is the probability of a label never seen
    record = json.loads(call("label", languages, "Voici un chien.", "--all", "--json").out)
    assert [one["label"] for one in record["labels"]] == labels
    assert record["source"] == "Voici un chien."


def test_every_character_has_its_label_below_it(capitals: Path) -> None:
    answer = call("label", capitals, "das ist ein haus.", "ich")
    assert (answer.code, answer.err) == (0, "")
    text, labels, short, few, end = answer.out.split("\n")
    assert (text, short, end) == ("das ist ein haus.", "ich", "")
    assert (len(labels), len(few)) == (len(text), len(short))
    assert set(labels + few) <= {"U", "l"}
    record = json.loads(call("label", capitals, "ich", "--json").out)
    assert "".join(one["label"] for one in record["labels"]) == few
    assert [one["token"] for one in record["labels"]] == ["i", "c", "h"]
    assert all(0 < one["probability"] <= 1 for one in record["labels"])


def test_a_text_of_any_length_is_labelled_to_its_end(capitals: Path) -> None:
    """Longer than other outputs may get."""
    [[found]] = load(capitals).label(["das ist ein haus. " * 30])
    assert found.finished
    assert len(found.text.split()) == 30 * 18 - 1  # white space around a text means nothing


def test_all_the_ways_to_label_tokens_are_not_listed(capitals: Path) -> None:
    answer = call("label", capitals, "ich", "--all")
    assert answer.code == 78
    assert "gives a label to each token" in answer.err


def test_labels_are_scored_as_such_and_by_python_as_by_the_command(
    languages: Path, capitals: Path
) -> None:
    expected = {
        languages: ["accuracy", "macro F1"],
        capitals: ["macro F1", "accuracy", "exact match"],
    }
    for folder, names in expected.items():
        report = json.loads(call("evaluate", folder, "--json").out)
        python = load(folder).evaluate("test")
        assert [score["name"] for score in report["scores"]][: len(names)] == names
        assert [score.value for score in python.scores] == pytest.approx(
            [score["value"] for score in report["scores"]]
        )
        assert report["cut_off"] == 0


def test_labels_come_out_of_translate_line_by_line_too(capitals: Path) -> None:
    answer = call("translate", capitals, given=b"das haus\n")
    assert answer.code == 0, answer.err
    assert len(answer.out.split()) == len("das haus")


def test_what_is_no_text_is_refused(languages: Path) -> None:
    answer = call("label", languages, "bad \udcff")
    assert answer.code == 65
    assert "is not valid UTF-8" in answer.err


@pytest.mark.parametrize("command", ["train", "doctor"])
def test_labels_that_do_not_fit_are_named(
    command: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    flags = settings_of("capitals", tmp_path)
    path = tmp_path / "capitals.tsv"
    path.write_text("das haus\tU l l l U l l l\nich\tU l\nja\tU l l l\n", encoding="utf-8")
    where = ["--run", tmp_path / "run"] if command == "train" else []
    answer = call(command, "capitals", *where, *flags)
    assert answer.code == 65
    said = answer.out + answer.err
    assert f"{path}:2: 2 labels for 3 tokens" in said
    assert f"{path}:3: 4 labels for 2 tokens" in said
    assert not (tmp_path / "run").exists()


def test_a_sequence_with_two_labels_is_named(tmp_path: Path) -> None:
    flags = settings_of("language-id", tmp_path)
    path = tmp_path / "language-id.tsv"
    path.write_text("das haus\tde\nthe house\ten GB\n", encoding="utf-8")
    answer = call("train", "language-id", "--run", tmp_path / "run", *flags)
    assert answer.code == 65
    assert f"{path}:2: 2 labels" in answer.err
    assert "a source has one label" in answer.err
