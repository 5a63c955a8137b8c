"""seqloom inspect: where words looked, in a terminal or a file."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from calling import Answer, call
from cli_workshop import trained, workshop_at
from PIL import Image
from rich.cells import cell_len

from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.toml import parse_toml
from seqloom.training.loop import train
from tiny_runs import TRANSFORMER, recipe

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
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of every kind that can be asked, hardly trained: what is shown must be true of any."""
    folder = workshop_at(tmp_path_factory.mktemp("inspect"))
    pairs = "".join(f"ab{one} cd{one}\tcd{one} ab{one}\n" for one in "efghij" for _ in range(9))
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
    train(recipe(*deep, *small), folder / "heads")
    train(recipe("model.decoder.attention.kind=none", *small), folder / "blind")
    return folder


def inspected(folder: Path, *arguments: object, given: bytes = b"") -> list[dict[str, Any]]:
    answer = call("inspect", folder, "--json", *arguments, given=given)
    assert answer.code == 0, answer.err
    return [json.loads(line) for line in answer.out.splitlines()]


def refused(*arguments: object) -> Answer:
    answer = call("inspect", *arguments)
    assert answer.code != 0
    assert answer.out == ""
    return answer


def test_each_word_of_the_output_has_a_row_and_each_of_the_source_a_column(workshop: Path) -> None:
    answer = call("inspect", workshop / "words", "abe cdf", "--plain")
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()
    assert lines[0] == "1  abe cdf"
    assert re.fullmatch(r"   .+ {3}score -\d+\.\d{4}( +\(stopped at the length limit\))?", lines[1])
    assert lines[3].split() == ["abe", "cdf", "</s>"]
    for line in lines[4:-1]:
        row = [0 if one == "." else int(one) for one in line.split()[-3:]]
        assert 97 <= sum(row) <= 103  # percent, each of them rounded


def test_merged_and_unmerged_agree(workshop: Path) -> None:
    """By hand: added up over the pieces that are read, averaged over those that are put out."""
    (words,) = inspected(workshop / "words", "abe cdf abg")
    (pieces,) = inspected(workshop / "words", "abe cdf abg", "--pieces")
    (word,), (piece,) = words["outputs"], pieces["outputs"]
    assert piece["outputs"] == piece["pieces"]
    assert piece["sources"] == piece["source_pieces"]
    assert len(word["sources"]) == 4 < len(piece["sources"])
    of, source_of = piece["word_of"], piece["source_word_of"]
    for number, text in enumerate(word["text"].split()):
        rows = [piece["weights"][t] for t, one in enumerate(of) if one == number]
        assert word["outputs"][number] == text
        row = word["weights"][number]
        for column in range(3):
            mine = [s for s, one in enumerate(source_of) if one == column]
            expected = sum(line[s] for line in rows for s in mine) / len(rows)
            assert row[column] == pytest.approx(expected)
    for line in (*word["weights"], *piece["weights"]):
        assert sum(line) == pytest.approx(1, abs=1e-5)


def test_layers_and_heads_are_chosen_or_averaged(workshop: Path) -> None:
    def shown(*chosen: object) -> list[list[float]]:
        (record,) = inspected(workshop / "heads", "abcd", *chosen)
        weights: list[list[float]] = record["outputs"][0]["weights"]
        return weights

    (record,) = inspected(workshop / "heads", "abcd")
    heads = record["outputs"][0]["heads"]  # layer, head, output, source
    assert len(heads) == len(heads[0]) == 2
    assert shown("--layer", 2, "--head", 1) == heads[1][0]
    layer = [
        [(a + b) / 2 for a, b in zip(*rows, strict=True)] for rows in zip(*heads[0], strict=True)
    ]
    assert shown("--layer", 1) == [pytest.approx(row, abs=1e-6) for row in layer]
    answer = refused(workshop / "heads", "abcd", "--layer", 3)
    assert "there is no layer 3; this model has 2, counted from 1" in answer.err


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
def test_every_search_shows_where_its_outputs_looked(
    workshop: Path, decoding: tuple[str, ...]
) -> None:
    for run in ("heads", "words"):
        (record,) = inspected(workshop / run, "abe cde" if run == "words" else "abcd", *decoding)
        wanted = int(decoding[decoding.index("--n-best") + 1]) if "--n-best" in decoding else 1
        assert 1 <= len(record["outputs"]) <= wanted
        for output in record["outputs"]:
            assert len(output["weights"]) == len(output["outputs"]) > 0
            assert all(sum(row) == pytest.approx(1, abs=1e-5) for row in output["weights"])


def test_blank_lines_stay_and_lines_come_from_stdin(workshop: Path) -> None:
    records = inspected(workshop / "words", given=b"abe cde\n\nabf cdf\n")
    assert [len(record["outputs"]) for record in records] == [1, 0, 1]
    assert [record["id"] for record in records] == [0, 1, 2]
    answer = call("inspect", workshop / "words", "", "abe cde")
    assert "1  \n   a blank line: nothing was read, nothing put out\n" in answer.out
    assert "2  abe cde" in answer.out


def test_an_ensemble_shows_the_mean_of_its_members(workshop: Path) -> None:
    (record,) = inspected(workshop / "words", "abe cdf", "--with", workshop / "words")
    (alone,) = inspected(workshop / "words", "abe cdf")
    (joint,), (single,) = record["outputs"], alone["outputs"]
    assert joint["weights"] == [pytest.approx(row, abs=1e-5) for row in single["weights"]]


@pytest.mark.parametrize(
    "text", ["abe " * 40, "日本 語 \N{THUMBS UP SIGN} שלום e\u0301", "a\tb\x1b[31m c"]
)
def test_no_line_of_a_picture_is_wider_than_the_terminal(
    workshop: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit beside each other comes below each other, every column of it."""
    monkeypatch.setenv("COLUMNS", "50")
    answer = call("inspect", workshop / "words", text)
    assert answer.code == 0, answer.err
    drawn = answer.out.split("\n\n", 1)[1]
    assert all(cell_len(line) <= 50 for line in drawn.splitlines())
    (record,) = inspected(workshop / "words", text)
    columns = len(record["outputs"][0]["sources"])
    if columns > 20:
        assert str(columns) in drawn.split()


def test_a_text_of_one_word_is_shown_by_its_pieces_and_that_is_told(workshop: Path) -> None:
    answer = call("inspect", workshop / "heads", "abcd")
    assert answer.out.splitlines()[3].split() == ["a", "b", "c", "d", "</s>"]
    assert "note: texts of a single word are shown by their pieces" in answer.err


def test_the_suffix_says_what_is_drawn(workshop: Path, tmp_path: Path) -> None:
    texts = ("abe cdf", "", "cde abf")
    for name in ("a.png", "a.svg", "a.html", "a.json"):
        answer = call("inspect", workshop / "words", *texts, "--out", tmp_path / name)
        assert (answer.code, answer.out) == (0, ""), answer.err
        assert f"{tmp_path / name}: where each word looked" in answer.err
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.format == "PNG"
    assert "<svg" in (tmp_path / "a.svg").read_text(encoding="utf-8")
    records = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert records == inspected(workshop / "words", *texts)
    assert "a blank line" in (tmp_path / "a.html").read_text(encoding="utf-8")
    answer = refused(workshop / "words", "a", "--out", tmp_path / "a.bmp")
    assert answer.code == 2
    assert "name it a.png" in answer.err


def test_a_run_that_looks_at_nothing_says_which_switch_would_give_it(workshop: Path) -> None:
    answer = refused(workshop / "blind", "abcd")
    assert "does not look back at what it has read: its decoder has no attention; train with" in (
        answer.err
    )
    assert "model.decoder.attention.kind = 'attention'" in answer.err


def test_a_language_model_has_nothing_to_look_at(workshop: Path) -> None:
    answer = refused(trained(workshop, "sentences"), "I")
    assert "is a language model, which reads no source" in answer.err


def test_heads_that_were_never_found_cannot_be_shown(workshop: Path) -> None:
    answer = refused(workshop / "heads", "abcd", "--head", "best")
    assert "which heads align best is not known yet; find them with `seqloom align" in answer.err
    for wrong, words in (
        (["--head", "0"], "'0' is no head"),
        (["--head", "x"], "'x' is no head"),
        (["--head", "best", "--layer", "1"], "leave out --layer"),
    ):
        answer = refused(workshop / "heads", "abcd", *wrong)
        assert answer.code == 2
        assert words in answer.err
