"""seqloom search, slips and compare, on runs of a few seconds."""

import json
from pathlib import Path

import pytest
from calling import call
from cli_workshop import trained, workshop_at

from seqloom.config.schema.decoding import BeamConfig, MinimumBayesRiskConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.decoding.record import Fate, Record, replay
from seqloom.runs.question import Question
from seqloom.runs.run import Run, load
from seqloom.text.vocabulary import END


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return workshop_at(tmp_path_factory.mktemp("workshop"))


@pytest.fixture(scope="module")
def reverse(workshop: Path) -> Path:
    return trained(workshop, "reverse")


@pytest.fixture(scope="module")
def sentences(workshop: Path) -> Path:
    return trained(workshop, "sentences")


@pytest.fixture(scope="module")
def run(reverse: Path) -> Run:
    return load(reverse)


def test_the_steps_and_the_outputs_are_shown(reverse: Path, run: Run) -> None:
    answer = call("search", reverse, "a b c", "--beam", "2")
    assert answer.code == 0
    [best] = run.translate(["a b c"], beam=2)
    assert "beam of 2" in answer.out
    assert best.text in answer.out
    assert "kept" in answer.out
    assert "outscored" in answer.out
    assert f"{best.score:.3f}" in answer.out


def test_what_is_not_shown_is_counted(reverse: Path) -> None:
    few = call("search", reverse, "a b c", "--beam", "3").out
    everything = call("search", reverse, "a b c", "--beam", "3", "--all").out
    assert " more outscored" in few
    assert " more " not in everything
    assert len(everything.splitlines()) > len(few.splitlines())


def test_a_saved_record_gives_the_n_best_list_again(
    reverse: Path, run: Run, tmp_path: Path
) -> None:
    place = tmp_path / "record.json"
    assert call("search", reverse, "a b c", "--beam", "3", "--out", place).code == 0
    content = json.loads(place.read_text(encoding="utf-8"))
    found = replay(Record.from_json(content["record"]))
    outputs = run.translate_n_best(["a b c"], 3, beam=3)[0]
    assert [one.log_probabilities for one in found] == [
        pytest.approx(one.log_probabilities) for one in outputs
    ]
    assert [one["text"] for one in content["outputs"]] == [one.text for one in outputs]
    decoded = [run.task.target_tokenizer.decode(one.tokens) for one in found]
    assert decoded == [one.text for one in outputs]


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf", "html"])
def test_the_tree_is_drawn(reverse: Path, tmp_path: Path, suffix: str) -> None:
    place = tmp_path / f"tree.{suffix}"
    assert call("search", reverse, "a b c d", "--beam", "3", "--out", place).code == 0
    head = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF", "html": b"<!doctype html>"}
    assert place.read_bytes().startswith(head[suffix])


def test_the_page_needs_nothing_but_itself(run: Run, reverse: Path, tmp_path: Path) -> None:
    place = tmp_path / "tree.html"
    call("search", reverse, "a b </script> 🙂 שלום", "--out", place)
    page = place.read_text(encoding="utf-8")
    assert page.count("</script>") == 2
    assert "🙂 שלום" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "prefers-color-scheme: dark" in page


@pytest.mark.parametrize("kind", ["greedy", "sample", "exhaustive"])
def test_every_search_can_be_watched(reverse: Path, kind: str) -> None:
    settings = [f"decoding.kind={kind}", "decoding.max_length=3"]
    more = [part for each in settings for part in ("--set", each)]
    answer = call("search", reverse, "a b", *more, "--json")
    assert answer.code == 0, answer.err
    record = json.loads(answer.out)["record"]
    assert record["kind"] == kind
    assert replay(Record.from_json(record))


def test_a_language_model_is_watched_as_it_completes(sentences: Path) -> None:
    answer = call("search", sentences, "I see", "--beam", "2", "--json")
    assert answer.code == 0
    content = json.loads(answer.out)
    assert all(one["text"].startswith("I see") for one in content["outputs"])
    first = Record.from_json(content["record"]).steps[0]
    assert [one.fate for one in first if one.fate is not Fate.DROPPED] == [Fate.KEPT]
    assert call("search", sentences, "--beam", "2").code == 0


def test_an_ensemble_is_watched_like_one_run(reverse: Path) -> None:
    alone = json.loads(call("search", reverse, "a b", "--beam", "2", "--json").out)
    joined = call("search", reverse, "a b", "--beam", "2", "--json", "--with", reverse)
    assert joined.code == 0
    assert json.loads(joined.out)["outputs"][0]["text"] == alone["outputs"][0]["text"]


def test_a_tree_too_large_to_be_written_down_is_refused(reverse: Path) -> None:
    answer = call("search", reverse, "a b", "--set", "decoding.kind=exhaustive")
    assert answer.code == 78
    assert "more than max_sequences = 20,000; lower max_length" in answer.err


def test_what_if_changes_one_step_and_decodes_on(run: Run) -> None:
    question = Question.of(run, "a b c", BeamConfig(width=2))
    original = question.search(1)
    pieces = original.outputs[0].pieces
    other = next(piece for piece in ("a", "b", "c", "d") if piece != pieces[1])
    change = question.instead(2, other)
    assert change.original.pieces == pieces
    assert change.changed.pieces[:2] == (pieces[0], other)
    likely = [each.log_probability for each in change.alternatives]
    assert likely == sorted(likely, reverse=True)
    assert pieces[1] in [each.piece for each in change.alternatives]


def test_what_is_chosen_anyway_changes_nothing(run: Run) -> None:
    """To force what greedy search would say is to let it say it."""
    question = Question.of(run, "a b c", BeamConfig(width=1))
    pieces = question.search(1).outputs[0].pieces
    for step, piece in enumerate(pieces, start=1):
        change = question.instead(step, piece)
        assert change.changed.text == change.original.text
        assert change.changed.log_probabilities == pytest.approx(change.original.log_probabilities)


def test_the_alternatives_of_all_steps_hold_what_was_said(run: Run) -> None:
    question = Question.of(run, "a b c", BeamConfig(width=1))
    [best] = replay(question.search(1).record)
    steps = question.alternatives(best.tokens, count=99)
    said = [*best.tokens, END]
    for token, own, choices in zip(said, best.log_probabilities, steps, strict=True):
        known = {each.token: each.log_probability for each in choices}
        assert known[token] == pytest.approx(own, abs=1e-5)
        assert sum(2.718281828**value for value in known.values()) == pytest.approx(1, abs=1e-4)


def test_an_output_can_be_ended_early(reverse: Path, run: Run) -> None:
    change = Question.of(run, "a b c", BeamConfig(width=2)).instead(2, "</s>")
    assert change.changed.finished
    assert len(change.changed.pieces) == 2
    answer = call("search", reverse, "a b c", "--beam", "2", "--instead", "2=</s>")
    assert answer.code == 0
    assert "what if" in answer.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["a b", "--instead", "99=a"], 65, "steps, so there is no step 99; give one from 1 to"),
        (["a b", "--instead", "1=日本"], 65, "'日本': the run does not know this token"),
        (["a b", "--instead", "word"], 2, "give a step and a token, as 3=word"),
        (["  "], 65, "the text is blank; give a sentence"),
        (["a b", "--out", "tree.txt"], 78, "pictures are png, svg, pdf"),
        (["a b", "--n-best", "3", "--beam", "2"], 78, "3 outputs a text need a beam of 3"),
        (["a b", "--to", "fr"], 78, "translates in one way only"),
    ],
)
def test_what_cannot_be_searched_is_told(
    reverse: Path, arguments: list[str], code: int, words: str
) -> None:
    answer = call("search", reverse, *arguments)
    assert answer.code == code
    assert words in " ".join(answer.err.split()).replace("│ ", "")


def test_the_closest_tokens_are_named(sentences: Path) -> None:
    question = Question.of(load(sentences), "", BeamConfig(width=2))
    assert len(question.tokens_of("see")) == 3
    with pytest.raises(DataError, match=r"'see1': the run does not know this token; closest to it"):
        question.tokens_of("see1")


def test_minimum_bayes_risk_has_no_steps(run: Run) -> None:
    with pytest.raises(ConfigError, match=r"compares whole texts and has no steps to show"):
        Question.of(run, "a b", MinimumBayesRiskConfig())


def test_a_record_that_is_none_is_refused() -> None:
    with pytest.raises(DataError, match="this is no record of a search"):
        Record.from_json({"steps": [[{"token": 3}]]})
