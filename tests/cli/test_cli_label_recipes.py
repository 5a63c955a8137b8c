"""seqloom label, with the bundled label recipes on small data."""

import json
import shutil
from pathlib import Path

import pytest

from seqloom.data.readers.bundled import without_capitals
from seqloom.inference.run import load
from support.cli_runner import run_cli, set_options

pytestmark = pytest.mark.slow

SENTENCES = {
    "de": ["Das ist ein {}.", "Ich sehe {} nicht."],
    "en": ["This is a {}.", "I do not see {}."],
    "fr": ["Voici un {}.", "Je ne vois pas {}."],
}
THINGS = ["Tom", "Haus", "cat", "chien", "Baum", "tree", "Hut", "hat"]


def make_pairs(name: str) -> list[tuple[str, str]]:
    filled = [
        (form.format(thing), language)
        for thing in THINGS
        for language, forms in SENTENCES.items()
        for form in forms
    ]
    if name == "language-id":
        return filled * 3
    return [without_capitals(sentence) for sentence, _ in filled]


def write_data(name: str, folder: Path) -> list[str]:
    """Write the data and return the options that use it and make the model small."""
    path = folder / f"{name}.tsv"
    lines = "".join(f"{source}\t{target}\n" for source, target in make_pairs(name))
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
    return set_options(*settings)


def train_and_move(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a recipe and move the run folder."""
    folder = tmp_path_factory.mktemp("labels")
    result = run_cli("train", name, "--run", folder / "run", *write_data(name, folder))
    assert result.exit_code == 0, result.stderr
    assert f"seqloom label {folder / 'run'}" in result.stderr
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "run"
    shutil.move(folder / "run", elsewhere)
    return elsewhere


@pytest.fixture(scope="module")
def languages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_and_move("language-id", tmp_path_factory)


@pytest.fixture(scope="module")
def capitals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_and_move("capitals", tmp_path_factory)


def test_text_label_is_printed_with_its_probability(languages: Path) -> None:
    result = run_cli("label", languages, "Das ist ein Tom.", "", "I do not see Tom.")
    assert (result.exit_code, result.stderr) == (0, "")
    first, blank, second, end = result.stdout.split("\n")
    assert (blank, end) == ("", "")
    for line in (first, second):
        label, probability = line.split("\t")
        assert label in SENTENCES
        assert 0 < float(probability) <= 1
    stdin = b"Das ist ein Tom.\n\nI do not see Tom.\n"
    assert run_cli("label", languages, stdin=stdin).stdout == result.stdout


def test_all_lists_every_label_most_likely_first(languages: Path) -> None:
    fields = run_cli("label", languages, "Voici un chien.", "--all").stdout.split()
    labels, probabilities = fields[::2], [float(field) for field in fields[1::2]]
    assert sorted(labels) == sorted(SENTENCES)
    assert probabilities == sorted(probabilities, reverse=True)
    assert 0.95 < sum(probabilities) < 1.001  # the rest belongs to the unknown label
    record = json.loads(run_cli("label", languages, "Voici un chien.", "--all", "--json").stdout)
    assert [each["label"] for each in record["labels"]] == labels
    assert record["source"] == "Voici un chien."


def test_token_labels_are_printed_below_the_tokens(capitals: Path) -> None:
    result = run_cli("label", capitals, "das ist ein haus.", "ich")
    assert (result.exit_code, result.stderr) == (0, "")
    text, labels, short, few, end = result.stdout.split("\n")
    assert (text, short, end) == ("das ist ein haus.", "ich", "")
    assert (len(labels), len(few)) == (len(text), len(short))
    assert set(labels + few) <= {"U", "l"}
    record = json.loads(run_cli("label", capitals, "ich", "--json").stdout)
    assert "".join(each["label"] for each in record["labels"]) == few
    assert [each["token"] for each in record["labels"]] == ["i", "c", "h"]
    assert all(0 < each["probability"] <= 1 for each in record["labels"])


def test_long_text_is_labelled_completely(capitals: Path) -> None:
    """Labels have no length limit."""
    [[prediction]] = load(capitals).label(["das ist ein haus. " * 30])
    assert prediction.finished
    assert len(prediction.text.split()) == 30 * 18 - 1  # without the space at the end


def test_all_is_rejected_for_token_labels(capitals: Path) -> None:
    result = run_cli("label", capitals, "ich", "--all")
    assert result.exit_code == 78
    assert "labels each token" in result.stderr


def test_evaluation_scores_labels_like_the_python_api(languages: Path, capitals: Path) -> None:
    expected = {
        languages: ["accuracy", "macro F1"],
        capitals: ["macro F1", "accuracy", "exact match"],
    }
    for folder, names in expected.items():
        report = json.loads(run_cli("evaluate", folder, "--json").stdout)
        python = load(folder).evaluate("test")
        assert [score["name"] for score in report["scores"]][: len(names)] == names
        assert [score.value for score in python.scores] == pytest.approx(
            [score["value"] for score in report["scores"]]
        )
        assert report["cut_off"] == 0


def test_translate_prints_labels(capitals: Path) -> None:
    result = run_cli("translate", capitals, stdin=b"das haus\n")
    assert result.exit_code == 0, result.stderr
    assert len(result.stdout.split()) == len("das haus")


def test_text_that_is_not_utf8_is_rejected(languages: Path) -> None:
    result = run_cli("label", languages, "bad \udcff")
    assert result.exit_code == 65
    assert "not valid UTF-8" in result.stderr


@pytest.mark.parametrize("command", ["train", "doctor"])
def test_wrong_number_of_token_labels_is_rejected(
    command: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    options = write_data("capitals", tmp_path)
    path = tmp_path / "capitals.tsv"
    path.write_text("das haus\tU l l l U l l l\nich\tU l\nja\tU l l l\n", encoding="utf-8")
    run_option = ["--run", tmp_path / "run"] if command == "train" else []
    result = run_cli(command, "capitals", *run_option, *options)
    assert result.exit_code == 65
    messages = result.stdout + result.stderr
    assert f"{path}:2: 2 labels" in messages
    assert f"{path}:3: 4 labels" in messages
    assert not (tmp_path / "run").exists()


def test_text_with_two_labels_is_rejected(tmp_path: Path) -> None:
    options = write_data("language-id", tmp_path)
    path = tmp_path / "language-id.tsv"
    path.write_text("das haus\tde\nthe house\ten GB\n", encoding="utf-8")
    result = run_cli("train", "language-id", "--run", tmp_path / "run", *options)
    assert result.exit_code == 65
    assert f"{path}:2: 2 labels" in result.stderr
