"""seqloom search, and the library classes behind it, on small runs."""

import json
import math
import re
from pathlib import Path

import pytest

from seqloom.analysis.search_inspection import SearchInspection
from seqloom.config.schema.decoding import BeamConfig, MinimumBayesRiskConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.decoding.trace import Fate, SearchTrace, replay
from seqloom.inference.run import Run, load
from seqloom.text.vocabulary import END
from support.cli_runner import run_cli

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(reverse: Path) -> Run:
    return load(reverse)


def test_steps_and_outputs_are_printed(reverse: Path, run: Run) -> None:
    result = run_cli("search", reverse, "a b c", "--beam", "2")
    assert result.exit_code == 0
    [best] = run.translate(["a b c"], beam=2)
    assert re.search(r"beam.* 2\b", result.stdout)
    assert best.text in result.stdout
    assert "kept" in result.stdout
    assert "not in the top k" in result.stdout
    assert f"{best.score:.3f}" in result.stdout


def test_hidden_candidates_are_counted(reverse: Path) -> None:
    few = run_cli("search", reverse, "a b c", "--beam", "3").stdout
    everything = run_cli("search", reverse, "a b c", "--beam", "3", "--all").stdout
    assert " more not in the top k" in few
    assert " more " not in everything
    assert len(everything.splitlines()) > len(few.splitlines())


def test_saved_trace_reproduces_the_n_best_list(reverse: Path, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    assert run_cli("search", reverse, "a b c", "--beam", "3", "--out", path).exit_code == 0
    content = json.loads(path.read_text(encoding="utf-8"))
    hypotheses = replay(SearchTrace.from_json(content["record"]))
    outputs = run.translate_n_best(["a b c"], 3, beam=3)[0]
    assert [each.log_probabilities for each in hypotheses] == [
        pytest.approx(each.log_probabilities, abs=1e-5) for each in outputs
    ]
    assert [output["text"] for output in content["outputs"]] == [output.text for output in outputs]
    decoded = [run.task.target_tokenizer.decode(each.tokens) for each in hypotheses]
    assert decoded == [output.text for output in outputs]


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf", "html"])
def test_tree_is_drawn_in_every_format(reverse: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"tree.{suffix}"
    assert run_cli("search", reverse, "a b c d", "--beam", "3", "--out", path).exit_code == 0
    head = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF", "html": b"<!doctype html>"}
    assert path.read_bytes().startswith(head[suffix])


def test_page_holds_any_text(reverse: Path, tmp_path: Path) -> None:
    path = tmp_path / "tree.html"
    run_cli("search", reverse, "a b </script> 🙂 שלום", "--out", path)
    page = path.read_text(encoding="utf-8")
    assert page.count("</script>") == 2
    assert "🙂 שלום" in page


@pytest.mark.parametrize("kind", ["greedy", "sample", "exhaustive"])
def test_every_search_can_be_traced(reverse: Path, kind: str) -> None:
    settings = [f"decoding.kind={kind}", "decoding.max_length=3"]
    more = [part for each in settings for part in ("--set", each)]
    result = run_cli("search", reverse, "a b", *more, "--json")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)["record"]
    assert record["kind"] == kind
    assert replay(SearchTrace.from_json(record))


def test_completion_of_a_language_model_is_traced(sentences: Path) -> None:
    result = run_cli("search", sentences, "I see", "--beam", "2", "--json")
    assert result.exit_code == 0
    content = json.loads(result.stdout)
    assert all(output["text"].startswith("I see") for output in content["outputs"])
    first = SearchTrace.from_json(content["record"]).steps[0]
    assert [each.fate for each in first if each.fate is not Fate.DROPPED] == [Fate.KEPT]
    assert run_cli("search", sentences, "--beam", "2").exit_code == 0


def test_ensemble_is_traced_like_one_run(reverse: Path) -> None:
    alone = json.loads(run_cli("search", reverse, "a b", "--beam", "2", "--json").stdout)
    joined = run_cli("search", reverse, "a b", "--beam", "2", "--json", "--with", reverse)
    assert joined.exit_code == 0
    assert json.loads(joined.stdout)["outputs"][0]["text"] == alone["outputs"][0]["text"]


def test_exhaustive_search_over_the_limit_is_rejected(reverse: Path) -> None:
    result = run_cli("search", reverse, "a b", "--set", "decoding.kind=exhaustive")
    assert result.exit_code == 78
    assert "20,000" in result.stderr


def test_replaced_token_changes_the_rest_of_the_output(run: Run) -> None:
    inspection = SearchInspection.of(run, "a b c", BeamConfig(width=2))
    original = inspection.search(1)
    pieces = original.outputs[0].pieces
    other = next(piece for piece in ("a", "b", "c", "d") if piece != pieces[1])
    change = inspection.replace_token(2, other)
    assert change.original.pieces == pieces
    assert change.changed.pieces[:2] == (pieces[0], other)
    likely = [each.log_probability for each in change.alternatives]
    assert likely == sorted(likely, reverse=True)
    assert pieces[1] in [each.piece for each in change.alternatives]


def test_replacing_a_token_by_itself_changes_nothing(run: Run) -> None:
    """Forcing the tokens of a greedy search gives its output."""
    inspection = SearchInspection.of(run, "a b c", BeamConfig(width=1))
    pieces = inspection.search(1).outputs[0].pieces
    for step, piece in enumerate(pieces, start=1):
        change = inspection.replace_token(step, piece)
        assert change.changed.text == change.original.text
        assert change.changed.log_probabilities == pytest.approx(
            change.original.log_probabilities, abs=1e-5
        )


def test_alternatives_of_every_step_contain_the_chosen_token(run: Run) -> None:
    inspection = SearchInspection.of(run, "a b c", BeamConfig(width=1))
    [best] = replay(inspection.search(1).record)
    steps = inspection.alternatives(best.tokens, count=99)
    tokens = [*best.tokens, END]
    for token, log_probability, choices in zip(tokens, best.log_probabilities, steps, strict=True):
        log_probabilities = {each.token: each.log_probability for each in choices}
        assert log_probabilities[token] == pytest.approx(log_probability, abs=1e-5)
        assert sum(map(math.exp, log_probabilities.values())) == pytest.approx(1, abs=1e-4)


def test_replacement_can_end_the_output(reverse: Path, run: Run) -> None:
    change = SearchInspection.of(run, "a b c", BeamConfig(width=2)).replace_token(2, "</s>")
    assert change.changed.finished
    assert len(change.changed.pieces) == 2
    result = run_cli("search", reverse, "a b c", "--beam", "2", "--instead", "2=</s>")
    assert result.exit_code == 0
    assert "what if" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["a b", "--instead", "99=a"], 65, "--instead 99=a: "),
        (["a b", "--instead", "1=日本"], 65, "'日本': "),
        (
            ["a b", "--instead", "word"],
            2,
            "give a step, counted from 1, and a token, for example 3=word",
        ),
        (["  "], 65, "the text is blank"),
        (["a b", "--out", "tree.txt"], 78, "png, svg, pdf"),
        (["a b", "--n-best", "3", "--beam", "2"], 78, "--beam 3"),
        (["a b", "--to", "fr"], 78, "reverse: this run has a single target language"),
    ],
)
def test_invalid_input_is_rejected(
    reverse: Path, arguments: list[str], exit_code: int, message: str
) -> None:
    result = run_cli("search", reverse, *arguments)
    assert result.exit_code == exit_code
    assert message in result.error


def test_unknown_token_lists_the_closest_tokens(sentences: Path) -> None:
    inspection = SearchInspection.of(load(sentences), "", BeamConfig(width=2))
    assert len(inspection.parse_token("see")) == 3
    with pytest.raises(DataError, match="'see1': "):
        inspection.parse_token("see1")


def test_minimum_bayes_risk_decoding_cannot_be_traced(run: Run) -> None:
    with pytest.raises(ConfigError, match="no steps"):
        SearchInspection.of(run, "a b", MinimumBayesRiskConfig())


def test_invalid_trace_is_rejected() -> None:
    with pytest.raises(DataError, match="seqloom search --out"):
        SearchTrace.from_json({"steps": [[{"token": 3}]]})
