"""seqloom slips and seqloom compare, on runs of a few seconds."""

import json
from pathlib import Path

import pytest
from calling import call
from cli_workshop import trained, workshop_at

from seqloom.data.splits import read_split
from seqloom.runs.run import Run, load
from seqloom.runs.slips import Slips, find_slips


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return workshop_at(tmp_path_factory.mktemp("workshop"))


@pytest.fixture(scope="module")
def reverse(workshop: Path) -> Path:
    return trained(workshop, "reverse")


@pytest.fixture(scope="module")
def worse(workshop: Path) -> Path:
    folder = workshop / "runs" / "worse"
    settings = ("--set", "training.steps=5", "--set", "model.decoder.attention.kind=none")
    assert call("train", workshop / "reverse.toml", "--run", folder, *settings).code == 0
    return folder


@pytest.fixture(scope="module")
def run(worse: Path) -> Run:
    return load(worse)


@pytest.fixture(scope="module")
def slips(run: Run) -> Slips:
    return find_slips(run, list(read_split(run.config.data, "test")))


def test_up_to_the_slip_nothing_differs(slips: Slips) -> None:
    """Behind the same tokens every token has the same probability, the slip's own included."""
    assert slips.slipped
    for one in slips.sentences:
        same = len(one.truth) if one.at is None else one.at + 1
        assert one.truth[:same] == pytest.approx(one.slip[:same], abs=1e-5)
        assert one.truth[:same] == pytest.approx(one.own[:same], abs=1e-5)
        if one.at is not None:
            assert one.said != one.pieces[one.at]


def test_one_token_after_the_slip_one_wrong_token_is_all_of_its_own_words(slips: Slips) -> None:
    for one in slips.slipped:
        assert one.at is not None
        after = one.at + 1
        if after < min(len(one.slip), len(one.own)):
            assert one.slip[after] == pytest.approx(one.own[after], abs=1e-5)


def test_behind_the_truth_a_reference_is_as_probable_as_its_score(run: Run, slips: Slips) -> None:
    sources = [one.source for one in slips.sentences]
    scored = run.score(sources, [one.reference for one in slips.sentences])
    for one, known in zip(slips.sentences, scored, strict=True):
        assert one.truth == pytest.approx(known.log_probabilities, abs=1e-4)
        assert one.pieces == known.pieces


def test_a_model_that_is_asked_for_its_own_outputs_never_slips(
    run: Run, worse: Path, tmp_path: Path
) -> None:
    sources = [one.source for one in read_split(run.config.data, "test")]
    outputs = run.translate(sources, beam=1)
    kept = [(one, each.text) for one, each in zip(sources, outputs, strict=True) if each.finished]
    pairs = tmp_path / "own.tsv"
    pairs.write_text("".join(f"{one}\t{text}\n" for one, text in kept), encoding="utf-8")
    answer = call("slips", worse, pairs)
    assert answer.code == 0
    assert f"{len(kept)} outputs are the reference, 0 leave it" in answer.out


def test_slips_are_told_written_and_drawn(worse: Path, tmp_path: Path) -> None:
    picture = tmp_path / "slips.svg"
    answer = call("slips", worse, "--out", picture)
    assert answer.code == 0
    assert "first slip: at token" in answer.out
    assert "own words" in answer.out
    assert picture.read_bytes().startswith(b"<?xml")
    numbers = tmp_path / "slips.json"
    assert call("slips", worse, "--out", numbers, "--first", "7").code == 0
    content = json.loads(numbers.read_text(encoding="utf-8"))
    assert len(content["sentences"]) == 7
    assert {point["distance"] for point in content["curve"]} >= {0}


def test_two_runs_are_compared_sentence_by_sentence(reverse: Path, worse: Path) -> None:
    answer = call("compare", worse, reverse, "--json")
    assert answer.code == 0
    content = json.loads(answer.out)
    assert content["sentences"] == len(content["pairs"]) == 20
    gains = [abs(pair["chrf"][1] - pair["chrf"][0]) for pair in content["pairs"]]
    assert gains == sorted(gains, reverse=True)
    assert sorted(pair["number"] for pair in content["pairs"]) == list(range(1, 21))
    texts = [[one["text"] for one in pair["outputs"]] for pair in content["pairs"]]
    assert content["differing"] == sum(ours != theirs for ours, theirs in texts)
    sources = [pair["source"] for pair in content["pairs"]]
    alone = [each.text for each in load(reverse).translate(sources)]
    assert [theirs for _, theirs in texts] == alone


def test_a_run_differs_from_itself_in_nothing(reverse: Path) -> None:
    answer = call("compare", reverse, reverse, "--text", "a b", "--text", "c d a")
    assert answer.code == 0
    assert "0 of 2 outputs differ" in answer.out


def test_the_page_shows_both_and_says_who_does_not_look(
    reverse: Path, worse: Path, tmp_path: Path
) -> None:
    page = tmp_path / "both.html"
    answer = call("compare", reverse, worse, "--out", page, "--shown", "3")
    assert answer.code == 0
    text = page.read_text(encoding="utf-8")
    assert text.count("<section>") == 3
    assert "Here are the 3 that differ most" in text
    assert text.count("<svg") == text.count("it has no attention") == 3
    assert "http" not in text


def test_strange_text_is_compared_like_any_other(reverse: Path, tmp_path: Path) -> None:
    lines = tmp_path / "strange.txt"
    lines.write_text("a <b> & 🙂\n\nשלום a b\n", encoding="utf-8")
    page = tmp_path / "both.html"
    answer = call("compare", reverse, reverse, lines, "--out", page)
    assert answer.code == 0
    assert "a &lt;b&gt; &amp; 🙂" in page.read_text(encoding="utf-8")
    assert "0 of 3 outputs differ" in answer.out


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("compare reverse sentences", "so what they say cannot be compared; give two runs of one"),
        ("compare sentences sentences", "is a language model, which answers nothing"),
        ("slips sentences", "whose outputs have no references to leave"),
        ("slips reverse alone.txt", "has no reference; give two files"),
        ("slips reverse alone.txt short.txt", "short.txt: ends after line 1, but the other"),
        ("slips reverse column.tsv", "column.tsv:1: there is one column only"),
        ("slips reverse blank.tsv", "there are no sentences in which anything could slip"),
        ("compare reverse reverse a b c", "there is no such file"),
        ("compare reverse reverse alone.txt alone.txt alone.txt", "3 files; give one, or two"),
        ("compare reverse reverse empty.txt", "no sentences to compare the runs on"),
        ("compare reverse reverse alone.txt --text a", "give files, or sentences by --text"),
        ("compare reverse reverse --out a.png", "is a page (.html) or all numbers (.json)"),
        ("compare reverse reverse --split moon", "'moon' is no split"),
        ("slips reverse --split moon", "'moon' is no split"),
        ("slips reverse --out a.txt", "pictures are png, svg, pdf"),
        ("compare reverse nowhere", "there is no such run folder"),
    ],
)
def test_what_cannot_be_compared_is_told(
    workshop: Path, reverse: Path, command: str, words: str, tmp_path: Path
) -> None:
    if "sentences" in command.split() and not (workshop / "runs" / "sentences").exists():
        trained(workshop, "sentences")
    for name, text in {
        "alone.txt": "a b\nc d\n",
        "short.txt": "b a\n",
        "column.tsv": "a b\n",
        "blank.tsv": " \t \n",
        "empty.txt": "",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    runs = {"reverse", "sentences"}
    arguments = [
        workshop / "runs" / part
        if part in runs
        else tmp_path / part
        if part.endswith((".txt", ".tsv")) and part != "a.txt"
        else part
        for part in command.split()
    ]
    answer = call(*arguments)
    assert answer.code != 0
    assert words in " ".join(answer.err.replace("│", " ").split())
