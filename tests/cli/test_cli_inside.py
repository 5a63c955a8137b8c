"""`seqloom explain` and `seqloom gradients` on small runs."""

import json
import math
from pathlib import Path

import pytest
from calling import call

from seqloom.core.errors import ConfigError
from seqloom.inside.explain import explain
from seqloom.inside.explanation import Focus
from seqloom.inside.gradients import profile
from seqloom.runs.run import load
from seqloom.text.vocabulary import END
from seqloom.training.loop import train
from tiny_runs import SPEAKER, recipe

SHORT = ("training.steps=2", "training.evaluate_every=2", "training.checkpoint_every=2")


def run_of(folder: Path, *changes: str) -> Path:
    """A run that has hardly learned anything: what it does can be told all the same."""
    train(recipe(*SHORT, *changes), folder)
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("inside")


@pytest.fixture(scope="module")
def reverse(place: Path) -> Path:
    return run_of(place / "reverse")


@pytest.fixture(scope="module")
def sentences(place: Path) -> Path:
    return run_of(place / "sentences", *SPEAKER)


@pytest.fixture(scope="module")
def bottleneck(place: Path) -> Path:
    return run_of(place / "bottleneck", "model.decoder.attention.kind=none")


def test_a_step_is_told_from_the_token_that_goes_in_to_the_best_tokens(reverse: Path) -> None:
    answer = call("explain", reverse, "abc", "--target", "cba", "--step", 2)
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()
    assert lines[:4] == [
        "step 2 of 4   layer 1, head 1",
        "  read     a  b  c  </s>",
        "  put out  c  [b]  a  </s>",
        "  goes in  c",
    ]
    names = ["embedding", "state", "new state", "query", "keys", "scores", "weights", "values"]
    names += ["context", "features", "logits", "probabilities"]
    told = [line.split("  ")[1] for line in lines if line[:2] == "  " and line[2:3].isalpha()]
    assert [name for name in told if name in names] == names
    assert "e = qᵀ W k" in answer.out
    assert sum(" → " in line for line in lines) == 1  # what was put out is marked


def test_numbers_for_programs_are_all_there(reverse: Path) -> None:
    answer = call("explain", reverse, "abc", "--target", "cba", "--step", 2, "--json")
    record = json.loads(answer.out)
    run = load(reverse)
    expected = run.score(["abc"], ["cba"])[0]
    assert record["answer"]["piece"] == "b"
    assert record["answer"]["probability"] == pytest.approx(
        math.exp(expected.log_probabilities[1]), rel=1e-4
    )
    parts = {part["name"]: part for part in record["parts"]}
    assert expected.attention is not None
    assert parts["weights"]["values"] == pytest.approx(expected.attention[1].tolist(), abs=1e-6)
    assert parts["weights"]["labels"] == ["a", "b", "c", "</s>"]
    assert parts["keys"]["shape"] == [4, 16]
    assert len(parts["keys"]["values"][0]) == 16
    assert len(record["best"]) == 5
    assert record["best"] == sorted(record["best"], key=lambda one: -one["probability"])


def test_full_writes_every_number(reverse: Path) -> None:
    short = call("explain", reverse, "abc").out
    full = call("explain", reverse, "abc", "--full").out
    assert "…" in short
    assert "…" not in full
    features = next(part for part in explain(load(reverse), "abc", 1).parts if part.name == "query")
    for value in features.values.tolist():
        assert f"{value:.3f}" in full


def test_the_lectures_example_needs_no_run() -> None:
    answer = call("explain", "--example")
    words = answer.out.split()
    for number in ("1054", "852", "-396", "23", "46"):
        assert number in words
    assert call("explain", "--example", "runs/x").code == 2
    assert call("explain").code == 2


def test_the_page_shows_what_the_command_prints() -> None:
    page = Path(__file__).parents[2] / "docs" / "inside" / "steps-and-gradients.md"
    blocks = page.read_text(encoding="utf-8").split("```text\n")[1:]
    example = next(block for block in blocks if "1054" in block).partition("```")[0]
    assert example in call("explain", "--example").out


def test_a_language_model_is_explained_from_its_own_beginning(sentences: Path) -> None:
    answer = call("explain", sentences, "abc", "--step", 4, "--set", "decoding.kind=greedy")
    assert answer.code == 0, answer.err
    assert "  read " not in answer.out
    assert "  goes in  c" in answer.out


def test_what_can_never_come_is_no_number_in_json(place: Path) -> None:
    """A decoder of labels gives END a score of -inf where labels are still to come."""
    (place / "labels.tsv").write_text("ab\tv c\nba\tc v\n" * 20, encoding="utf-8")
    corpus = f"{{kind='tsv', path='{place / 'labels.tsv'}'}}"
    labels = run_of(
        place / "labels",
        *("task.kind=labels", "text.target_tokenizer={kind='whitespace'}"),
        *(f"data.{split}={corpus}" for split in ("train", "dev", "test")),
        "model.decoder={kind='labels', reads='positions'}",
    )
    answer = call("explain", labels, "ab", "--step", 2, "--json")
    assert answer.code == 0, answer.err
    parts = {part["name"]: part for part in json.loads(answer.out)["parts"]}
    assert parts["logits"]["values"][END] is None
    assert parts["probabilities"]["values"][END] == 0
    assert call("explain", labels, "ab", "--step", 3).code == 0
    assert "what is read" in call("gradients", labels, "ab", "v c").out


def test_without_attention_all_that_is_known_of_the_source_is_shown(bottleneck: Path) -> None:
    answer = call("explain", bottleneck, "abc", "--target", "cba", "--step", 2)
    assert "handed over  c = the encoder's last state" in answer.out
    assert "where it looks" not in answer.out


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["abc", "--target", "cb", "--step", "9"], 65, "there is no step 9; the output has 3"),
        (["abc", "--step", "0"], 65, "there is no step 0"),
        (["abc", "--step", "-1"], 65, "there is no step -1"),
        (["  "], 65, "the text is blank"),
        ([], 65, "the text is blank"),
        (["abc", "--layer", "2"], 78, "there is no layer 2 that looks; this decoder has 1"),
        (["abc", "--head", "3"], 78, "there is no head 3 that looks; this decoder has 1"),
        (["abc", "--head", "0"], 78, "choose --head 1"),
        (["abc", "--set", "model.tie=all"], 78, "only settings of decoding"),
    ],
)
def test_what_cannot_be_explained_is_said(
    reverse: Path, options: list[str], code: int, words: str
) -> None:
    answer = call("explain", reverse, *options)
    assert (answer.code, answer.out) == (code, "")
    assert words in answer.err


def test_a_head_of_a_run_without_attention_names_the_switch(bottleneck: Path) -> None:
    answer = call("explain", bottleneck, "abc", "--head", "1")
    assert answer.code == 78
    assert "model.decoder.attention.kind=attention" in answer.err


def test_an_ensemble_is_explained_member_by_member(reverse: Path) -> None:
    run = load([reverse, reverse])
    with pytest.raises(ConfigError, match="explain each by itself"):
        explain(run, "abc", 1, target="cba", focus=Focus())


def test_gradients_of_a_sentence_name_its_words(reverse: Path, tmp_path: Path) -> None:
    answer = call("gradients", reverse, "abc", "cba", "--step", 2, "--out", tmp_path / "g.svg")
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()
    assert lines[0].startswith("gradients of answer 2 (b), loss ")
    assert [line.split()[0] for line in lines if line.startswith("  ")] == [
        *("chain", "a", "b", "c", "</s>"),
        *("own", "<s>", "c", "b", "a"),
    ]
    assert (tmp_path / "g.svg").read_bytes().startswith(b"<?xml")
    numbers = call("gradients", reverse, "abc", "cba", "--step", 2, "--json")
    record = json.loads(numbers.out)
    assert record["target"]["whole"][2:] == [0.0, 0.0]  # neither had a part in the second answer
    assert record["loss"] == pytest.approx(
        -load(reverse).score(["abc"], ["cba"])[0].log_probabilities[1], rel=1e-4
    )


def test_means_over_files_are_aligned_at_their_end(reverse: Path, tmp_path: Path) -> None:
    pairs = [("abc", "cba"), ("ab", "ba"), ("", ""), ("dcba", "abcd")]
    for name, side in (("source", 0), ("target", 1)):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = (tmp_path / "source", tmp_path / "target")
    answer = call("gradients", reverse, *files, "--lines", "--out", tmp_path / "g.json")
    assert answer.code == 0, answer.err
    assert "1 of 4 lines are blank and were left out" in answer.err
    record = json.loads((tmp_path / "g.json").read_bytes())
    assert record["counts"]["source"] == [3, 3, 3, 2, 1]
    run = load(reverse)
    alone = [profile(run, [source], [target]) for source, target in pairs if source]
    for distance, count in enumerate(record["counts"]["source"]):
        some = [one.source.whole[distance] for one in alone if len(one.source.whole) > distance]
        assert len(some) == count
        mean = sum(some) / count
        assert record["source"]["whole"][distance] == pytest.approx(mean, rel=1e-4)
    short = call("gradients", reverse, *files, "--lines", "--step", 4)
    assert "1 of 3 sentences have fewer than 4 steps and were left out" in short.err


def test_a_language_model_has_a_target_side_alone(sentences: Path) -> None:
    answer = call("gradients", sentences, "I see it.")
    assert answer.code == 0, answer.err
    assert "what is read" not in answer.out
    assert "what goes into the decoder" in answer.out


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["abc", "cba", "--step", "5"], 65, "there is no step 5; the output has 4"),
        ([" "], 65, "the text is blank"),
        (["abc", "--out", "x.gif"], 78, "x.gif: pictures are png, svg, pdf"),
        (["abc", "--lines"], 78, "give two files"),
        (["abc", "cba", "--lines"], 66, "abc: there is no such file"),
        (["one", "two", "--lines"], 65, "have 1 and 2 lines"),
        (["blank", "blank", "--lines"], 65, "has no line that is not blank"),
        (["one", "one", "--lines", "--step", "9"], 65, "there is no step 9; the longest output"),
        (["one", "one", "--lines", "--step", "0"], 65, "there is no step 0; the first is 1"),
    ],
)
def test_what_has_no_gradient_is_said(
    reverse: Path,
    options: list[str],
    code: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("one", "ab\n"), ("two", "ab\nba\n"), ("blank", "\n")):
        Path(name).write_text(text, encoding="utf-8")
    answer = call("gradients", reverse, *options)
    assert (answer.code, answer.out) == (code, "")
    assert words in answer.err


def test_a_language_model_takes_one_text(sentences: Path) -> None:
    answer = call("gradients", sentences, "I see", "it.")
    assert answer.code == 78
    assert "give one text" in answer.err
