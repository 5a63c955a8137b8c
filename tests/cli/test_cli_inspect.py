"""seqloom inspect: attention maps in a terminal or a file."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cli_recipes import train_recipe, write_recipes
from PIL import Image
from rich.cells import cell_len

from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.toml import parse_toml
from seqloom.training.loop import train
from support.cli_runner import CliResult, run_cli
from support.tiny_runs import TRANSFORMER, tiny_config

pytestmark = pytest.mark.slow

WORDS = """
[data]
train = { kind = "tsv", path = "pairs.tsv" }
dev = { kind = "tsv", path = "pairs.tsv" }

[text.tokenizer]
kind = "subwords"
size = 20

[model.encoder]
kind = "recurrent"
width = 12

[model.decoder]
kind = "recurrent"
width = 12

[training]
steps = 2
batch_tokens = 256
evaluate_every = 2
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs with words, with several heads, and without attention, trained for two steps."""
    folder = write_recipes(tmp_path_factory.mktemp("inspect"))
    pairs = "".join(
        f"ab{letter} cd{letter}\tcd{letter} ab{letter}\n" for letter in "efghij" for _ in range(9)
    )
    (folder / "pairs.tsv").write_text(pairs, encoding="utf-8")
    small = [
        "training.steps=2",
        "training.evaluate_every=2",
        "decoding.max_length=8",
        "decoding.min_length=4",
    ]
    words = load_recipe(parse_toml(WORDS.encode()), [f"data.folder={folder}", *small]).config
    train(words, folder / "words")
    deep = [change.replace("layers=1", "layers=2") for change in TRANSFORMER]
    train(tiny_config(*deep, *small), folder / "heads")
    train(tiny_config("model.decoder.attention.kind=none", *small), folder / "no-attention")
    return folder


def inspect_json(run: Path, *arguments: object, stdin: bytes = b"") -> list[dict[str, Any]]:
    result = run_cli("inspect", run, "--json", *arguments, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def failed_inspect(*arguments: object) -> CliResult:
    result = run_cli("inspect", *arguments)
    assert result.exit_code != 0
    assert result.stdout == ""
    return result


def test_output_words_are_rows_and_source_words_are_columns(folder: Path) -> None:
    result = run_cli("inspect", folder / "words", "abe cdf")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "1  abe cdf"
    assert re.fullmatch(r"   .+ {3}score -\d+\.\d{4}( +\(reached the length limit\))?", lines[1])
    assert lines[3].split() == ["abe", "cdf", "</s>"]
    for line in lines[4:-1]:
        row = [0 if cell == "." else int(cell) for cell in line.split()[-3:]]
        assert 97 <= sum(row) <= 103  # rounded percentages


def test_words_are_merged_from_tokens(folder: Path) -> None:
    """Weights are added over the tokens of a source word and averaged over those of an output."""
    (words,) = inspect_json(folder / "words", "abe cdf abg")
    (pieces,) = inspect_json(folder / "words", "abe cdf abg", "--pieces")
    (word,), (piece,) = words["outputs"], pieces["outputs"]
    assert piece["outputs"] == piece["pieces"]
    assert piece["sources"] == piece["source_pieces"]
    assert len(word["sources"]) == 4 < len(piece["sources"])
    of, source_of = piece["word_of"], piece["source_word_of"]
    for number, text in enumerate(word["text"].split()):
        rows = [piece["weights"][t] for t, index in enumerate(of) if index == number]
        assert word["outputs"][number] == text
        row = word["weights"][number]
        for column in range(3):
            columns = [s for s, index in enumerate(source_of) if index == column]
            expected = sum(line[s] for line in rows for s in columns) / len(rows)
            assert row[column] == pytest.approx(expected)
    for line in (*word["weights"], *piece["weights"]):
        assert sum(line) == pytest.approx(1, abs=1e-5)


def test_layers_and_heads_are_selected_or_averaged(folder: Path) -> None:
    def selected(*options: object) -> list[list[float]]:
        (record,) = inspect_json(folder / "heads", "abcd", *options)
        weights: list[list[float]] = record["outputs"][0]["weights"]
        return weights

    (record,) = inspect_json(folder / "heads", "abcd")
    heads = record["outputs"][0]["heads"]  # layer, head, output, source
    assert len(heads) == len(heads[0]) == 2
    assert selected("--layer", 2, "--head", 1) == heads[1][0]
    layer = [
        [(a + b) / 2 for a, b in zip(*rows, strict=True)] for rows in zip(*heads[0], strict=True)
    ]
    assert selected("--layer", 1) == [pytest.approx(row, abs=1e-6) for row in layer]
    result = failed_inspect(folder / "heads", "abcd", "--layer", 3)
    assert "no layer 3" in result.stderr


@pytest.mark.parametrize(
    "decoding",
    [
        ("--beam", "4", "--n-best", "3"),
        ("--set", "decoding.kind=sample", "--set", "decoding.samples=2", "--n-best", "2"),
        (
            "--set",
            "decoding.kind=exhaustive",
            "--set",
            "decoding.max_length=2",
            "--set",
            "decoding.min_length=1",
        ),
        ("--set", "decoding.kind=minimum-bayes-risk", "--set", "decoding.samples=4"),
    ],
)
def test_every_search_has_attention_maps(folder: Path, decoding: tuple[str, ...]) -> None:
    for run in ("heads", "words"):
        (record,) = inspect_json(folder / run, "abe cde" if run == "words" else "abcd", *decoding)
        n_best = int(decoding[decoding.index("--n-best") + 1]) if "--n-best" in decoding else 1
        assert 1 <= len(record["outputs"]) <= n_best
        for output in record["outputs"]:
            assert len(output["weights"]) == len(output["outputs"]) > 0
            assert all(sum(row) == pytest.approx(1, abs=1e-5) for row in output["weights"])


def test_texts_come_from_stdin_and_blank_lines_are_kept(folder: Path) -> None:
    records = inspect_json(folder / "words", stdin=b"abe cde\n\nabf cdf\n")
    assert [len(record["outputs"]) for record in records] == [1, 0, 1]
    assert [record["id"] for record in records] == [0, 1, 2]
    result = run_cli("inspect", folder / "words", "", "abe cde")
    assert "1  \n   blank line: no output\n" in result.stdout
    assert "2  abe cde" in result.stdout


def test_ensemble_shows_the_mean_of_its_members(folder: Path) -> None:
    (record,) = inspect_json(folder / "words", "abe cdf", "--with", folder / "words")
    (expected,) = inspect_json(folder / "words", "abe cdf")
    (joint,), (single,) = record["outputs"], expected["outputs"]
    assert joint["weights"] == [pytest.approx(row, abs=1e-5) for row in single["weights"]]


@pytest.mark.parametrize(
    "text", ["abe " * 40, "日本 語 \N{THUMBS UP SIGN} שלום e\u0301", "a\tb\x1b[31m c"]
)
def test_maps_are_not_wider_than_the_terminal(
    folder: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns that do not fit are printed below, and none is lost."""
    monkeypatch.setenv("COLUMNS", "50")
    result = run_cli("inspect", folder / "words", text)
    assert result.exit_code == 0, result.stderr
    drawn = result.stdout.split("\n\n", 1)[1]
    assert all(cell_len(line) <= 50 for line in drawn.splitlines())
    (record,) = inspect_json(folder / "words", text)
    columns = len(record["outputs"][0]["sources"])
    if columns > 20:
        assert str(columns) in drawn.split()


def test_text_of_one_word_is_shown_token_by_token_with_a_note(folder: Path) -> None:
    result = run_cli("inspect", folder / "heads", "abcd")
    assert result.stdout.splitlines()[3].split() == ["a", "b", "c", "d", "</s>"]
    assert "note: texts of a single word are shown token by token" in result.stderr


def test_suffix_selects_the_format(folder: Path, tmp_path: Path) -> None:
    texts = ("abe cdf", "", "cde abf")
    for name in ("a.png", "a.svg", "a.html", "a.json"):
        result = run_cli("inspect", folder / "words", *texts, "--out", tmp_path / name)
        assert (result.exit_code, result.stdout) == (0, ""), result.stderr
        assert f"{tmp_path / name}: attention of each word" in result.stderr
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.format == "PNG"
    assert "<svg" in (tmp_path / "a.svg").read_text(encoding="utf-8")
    records = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert records == inspect_json(folder / "words", *texts)
    assert "blank line" in (tmp_path / "a.html").read_text(encoding="utf-8")
    result = failed_inspect(folder / "words", "a", "--out", tmp_path / "a.bmp")
    assert result.exit_code == 2
    assert "Name the file a.png" in result.error


def test_run_without_attention_names_the_setting(folder: Path) -> None:
    result = failed_inspect(folder / "no-attention", "abcd")
    assert "no attention" in result.stderr
    assert "model.decoder.attention.kind = 'attention'" in result.stderr


def test_language_model_is_rejected(folder: Path) -> None:
    result = failed_inspect(train_recipe(folder, "sentences"), "I")
    assert "language model" in result.stderr


def test_unknown_heads_are_rejected(folder: Path) -> None:
    result = failed_inspect(folder / "heads", "abcd", "--head", "best")
    assert "the heads that align best are not known. Find them with `seqloom align" in result.stderr
    for options, message in (
        (["--head", "0"], "--head '0': give a number from 1"),
        (["--head", "x"], "--head 'x': give a number from 1"),
        (["--head", "best", "--layer", "1"], "Remove --layer"),
    ):
        result = failed_inspect(folder / "heads", "abcd", *options)
        assert result.exit_code == 2
        assert message in result.error
