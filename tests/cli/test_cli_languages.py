"""Several languages in one run: trained, asked for, scored, moved."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from calling import call

import seqloom
from seqloom.runs.options import PredictionOptions
from toy_languages import WORDS, write_languages

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


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_languages(tmp_path_factory.mktemp("data"), ["train"], lines=200)
    return write_languages(folder, ["val", "test"], lines=30)


@pytest.fixture(scope="module", params=["source", "target"])
def side(request: pytest.FixtureRequest) -> str:
    """Where tags go: all that is said here holds for both."""
    return str(request.param)


@pytest.fixture(scope="module")
def trained(data: Path, side: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run folder that was moved, and what training said."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "many.toml").write_text(RECIPE.replace("FOLDER", str(data)), encoding="utf-8")
    settings = ("--set", f"task.tag_side={side}")
    answer = call("train", folder / "many.toml", "--run", folder / "made", *settings)
    assert answer.code == 0, answer.err
    return Path(shutil.move(folder / "made", folder / "moved")), answer.err


@pytest.fixture(scope="module")
def run(trained: tuple[Path, str]) -> Path:
    return trained[0]


def test_training_says_what_it_is_made_of_and_how_each_pair_does(trained: tuple[Path, str]) -> None:
    _, said = trained
    assert "  en-de: 200 examples, 200 an epoch (25.0%)\n" in said
    shown = [line for line in said.splitlines() if line.startswith("  BLEU: en-de ")]
    assert len(shown) == 2
    assert all(pair in shown[0] for pair in ("de-en", "en-fr", "fr-en"))
    assert re.search(r"translate \S+ --to de\n", said)  # what to type next


@pytest.mark.parametrize("language", ["de", "fr"])
def test_the_tag_decides_what_comes_out(run: Path, language: str) -> None:
    answer = call("translate", run, "--to", language, given=b"dog\n\nbig cat runs\n")
    assert answer.code == 0, answer.err
    first, blank, second = answer.out.splitlines()
    assert not blank
    assert {*first.split(), *second.split()} <= {*WORDS[language]}
    typed = call(
        "translate", run, given=f"<2{language}> dog\n\n<2{language}> big cat runs\n".encode()
    )
    assert typed.out == answer.out


def test_one_language_may_be_reached_through_another(run: Path) -> None:
    pivoted = call("translate", run, "--to", "fr", "--through", "en", given=b"hund\nkatze\n")
    assert pivoted.code == 0, pivoted.err
    english = call("translate", run, "--to", "en", given=b"hund\nkatze\n").out
    assert call("translate", run, "--to", "fr", given=english.encode()).out == pivoted.out
    outputs = seqloom.load(run).translate(["hund", "katze"], to=["en", "fr"])
    assert [one.text for one in outputs] == pivoted.out.splitlines()


def test_python_asks_as_the_command_line_does(run: Path) -> None:
    loaded = seqloom.load(run)
    expected = call("translate", run, "--to", "de", "--alignments", given=b"big dog\n").out
    (output,) = loaded.translate(["big dog"], to="de")
    pairs = " ".join(f"{source}-{target}" for source, target in output.alignment)
    assert expected == f"{output.text} ||| {pairs}\n"
    # Words are counted as the user wrote them: "big" is 0, whatever stands before it.
    assert {source for source, _ in output.alignment} <= {0, 1}
    words = range(len(output.text.split()))
    assert {target for _, target in output.alignment} <= {*words}
    several = loaded.predict(["big dog"], PredictionOptions(n_best=3, to="de"))
    assert several[0][0].text == output.text


def test_a_language_that_is_unknown_or_not_given_is_an_error_that_lists_the_known(
    run: Path,
) -> None:
    unknown = call("translate", run, "--to", "it", given=b"dog\n")
    assert unknown.code == 78
    assert "cannot translate to 'it'" in unknown.err
    missing = call("translate", run, given=b"<2de> dog\ncat\n")
    assert missing.code == 65
    assert "nothing says which is wanted in line 2;" in missing.err
    for answer in (unknown, missing):
        assert "de, en, fr" in answer.err
    both = call("translate", run, "--through", "en", given=b"dog\n")
    assert both.code == 2
    assert "--through needs --to" in both.err


def test_every_pair_is_scored_by_itself(run: Path) -> None:
    answer = call("evaluate", run, "--json")
    assert answer.code == 0, answer.err
    report = json.loads(answer.out)
    assert [(one["part"], one["sentences"]) for one in report["parts"]] == [
        *(("en-de", 30), ("fr-en", 30), ("de-fr", 30))
    ]
    values = [one["scores"][0]["value"] for one in report["parts"]]
    mean = report["mean_of_parts"][0]
    assert mean["name"] == "BLEU"
    assert mean["value"] == pytest.approx(sum(values) / 3)
    shown = call("evaluate", run).out
    rows = [line.split()[0] for line in shown.splitlines() if line.strip()]
    assert [row for row in rows if row in ("en-de", "fr-en", "de-fr", "mean")] == [
        *("en-de", "fr-en", "de-fr", "mean")
    ]


def test_a_target_is_scored_as_an_answer_to_its_tag(run: Path) -> None:
    loaded = seqloom.load(run)
    (output,) = loaded.translate(["big dog"], to="de")
    (scored,) = loaded.score(["<2de> big dog"], [output.text])
    assert scored.text == output.text
    assert scored.score == pytest.approx(output.score, abs=1e-4)


def test_a_test_set_given_later_says_what_is_wanted_of_it(run: Path, tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("dog\thund\n", encoding="utf-8")
    table = f'kind="tsv", path="{tmp_path}/x.tsv"'
    bare = call("evaluate", run, "--set", f"data.test={{{table}}}")
    assert bare.code == 78
    assert "data.test: corpus 0 (counted from 0) has no tag" in bare.err
    tagged = call("evaluate", run, "--set", f'data.test={{{table}, tag="<2de>"}}', "--json")
    assert tagged.code == 0, tagged.err
    assert json.loads(tagged.out)["parts"] == []
