"""Multilingual runs: training, translation with --to and --through, evaluation."""

import json
import re
import shutil
from pathlib import Path

import pytest

import seqloom
from seqloom.inference.options import PredictionOptions
from support.cli_runner import run_cli
from support.toy_languages import WORDS, write_languages

pytestmark = pytest.mark.slow

RECIPE = """
[data]
folder = "FOLDER"
train = { kind = "languages", path = "train.{language}.gz", pairs = ["en-de", "de-en", "en-fr", "fr-en"] }
dev = { kind = "languages", path = "val.{language}.gz", pairs = ["en-de", "de-en", "en-fr", "fr-en"] }
test = { kind = "languages", path = "test.{language}.gz", pairs = ["en-de", "fr-en", "de-fr"] }
temperature = 5.0

[text]
tokenizer = { kind = "words" }
shared = true

[model.encoder]
kind = "recurrent"
width = 24

[model.decoder]
kind = "recurrent"
width = 48

[training]
steps = 160
batch_tokens = 512
evaluate_every = 80
evaluate_examples = 10
checkpoint_every = 160
optimizer.learning_rate = 0.01
schedule = { kind = "constant" }
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_languages(tmp_path_factory.mktemp("data"), ["train"], lines=200)
    return write_languages(folder, ["val", "test"], lines=30)


@pytest.fixture(scope="module", params=["source", "target"])
def side(request: pytest.FixtureRequest) -> str:
    """The side that has the language tags. Every test holds for both."""
    return str(request.param)


@pytest.fixture(scope="module")
def trained(data: Path, side: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run folder that was moved after training, and the messages of the training."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "multilingual.toml").write_text(RECIPE.replace("FOLDER", str(data)), encoding="utf-8")
    settings = ("--set", f"task.tag_side={side}")
    result = run_cli("train", folder / "multilingual.toml", "--run", folder / "made", *settings)
    assert result.exit_code == 0, result.stderr
    return Path(shutil.move(folder / "made", folder / "moved")), result.stderr


@pytest.fixture(scope="module")
def run(trained: tuple[Path, str]) -> Path:
    return trained[0]


def test_training_prints_data_groups_and_their_scores(trained: tuple[Path, str]) -> None:
    _, messages = trained
    assert "  en-de: 200 examples, 200 per epoch (25.0%)\n" in messages
    shown = [line for line in messages.splitlines() if line.startswith("  BLEU: en-de ")]
    assert len(shown) == 2
    assert all(pair in shown[0] for pair in ("de-en", "en-fr", "fr-en"))
    assert re.search(r"translate \S+ --to de\n", messages)  # next command


@pytest.mark.parametrize("language", ["de", "fr"])
def test_target_language_determines_the_output(run: Path, language: str) -> None:
    result = run_cli("translate", run, "--to", language, stdin=b"dog\n\nbig cat runs\n")
    assert result.exit_code == 0, result.stderr
    first, blank, second = result.stdout.splitlines()
    assert not blank
    assert {*first.split(), *second.split()} <= {*WORDS[language]}
    tagged = run_cli(
        "translate", run, stdin=f"<2{language}> dog\n\n<2{language}> big cat runs\n".encode()
    )
    assert tagged.stdout == result.stdout


def test_pivot_translation_equals_two_translations(run: Path) -> None:
    pivoted = run_cli("translate", run, "--to", "fr", "--through", "en", stdin=b"hund\nkatze\n")
    assert pivoted.exit_code == 0, pivoted.stderr
    english = run_cli("translate", run, "--to", "en", stdin=b"hund\nkatze\n").stdout
    assert run_cli("translate", run, "--to", "fr", stdin=english.encode()).stdout == pivoted.stdout
    outputs = seqloom.load(run).translate(["hund", "katze"], to=["en", "fr"])
    assert [output.text for output in outputs] == pivoted.stdout.splitlines()


def test_python_api_gives_the_output_of_the_command(run: Path) -> None:
    loaded = seqloom.load(run)
    expected = run_cli("translate", run, "--to", "de", "--alignments", stdin=b"big dog\n").stdout
    (output,) = loaded.translate(["big dog"], to="de")
    pairs = " ".join(f"{source}-{target}" for source, target in output.alignment)
    assert expected == f"{output.text} ||| {pairs}\n"
    # Alignments count the words of the user: "big" is word 0, without the tag.
    assert {source for source, _ in output.alignment} <= {0, 1}
    words = range(len(output.text.split()))
    assert {target for _, target in output.alignment} <= {*words}
    several = loaded.predict(["big dog"], PredictionOptions(n_best=3, to="de"))
    assert several[0][0].text == output.text


def test_unknown_or_missing_language_is_rejected_with_a_list(
    run: Path,
) -> None:
    unknown = run_cli("translate", run, "--to", "it", stdin=b"dog\n")
    assert unknown.exit_code == 78
    assert "'it'" in unknown.stderr
    missing = run_cli("translate", run, stdin=b"<2de> dog\ncat\n")
    assert missing.exit_code == 65
    assert "line 2" in missing.stderr
    for result in (unknown, missing):
        assert "de, en, fr" in result.stderr
    both = run_cli("translate", run, "--through", "en", stdin=b"dog\n")
    assert both.exit_code == 2
    assert "--through requires --to" in both.stderr


def test_every_language_pair_is_scored_separately(run: Path) -> None:
    result = run_cli("evaluate", run, "--json")
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert [(group["part"], group["sentences"]) for group in report["parts"]] == [
        *(("en-de", 30), ("fr-en", 30), ("de-fr", 30))
    ]
    values = [group["scores"][0]["value"] for group in report["parts"]]
    mean = report["mean_of_parts"][0]
    assert mean["name"] == "BLEU"
    assert mean["value"] == pytest.approx(sum(values) / 3)
    shown = run_cli("evaluate", run).stdout
    rows = [line.split()[0] for line in shown.splitlines() if line.strip()]
    assert [row for row in rows if row in ("en-de", "fr-en", "de-fr", "mean")] == [
        *("en-de", "fr-en", "de-fr", "mean")
    ]


def test_score_uses_the_language_tag(run: Path) -> None:
    loaded = seqloom.load(run)
    (output,) = loaded.translate(["big dog"], to="de")
    (scored,) = loaded.score(["<2de> big dog"], [output.text])
    assert scored.text == output.text
    assert scored.score == pytest.approx(output.score, abs=1e-4)


def test_new_test_set_needs_a_tag(run: Path, tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("dog\thund\n", encoding="utf-8")
    table = f'kind="tsv", path="{tmp_path}/x.tsv"'
    untagged = run_cli("evaluate", run, "--set", f"data.test={{{table}}}")
    assert untagged.exit_code == 78
    assert "data.test: " in untagged.stderr
    tagged = run_cli("evaluate", run, "--set", f'data.test={{{table}, tag="<2de>"}}', "--json")
    assert tagged.exit_code == 0, tagged.stderr
    assert json.loads(tagged.stdout)["parts"] == []
