"""seqloom example search: the beam search of the lecture, which needs no run."""

import json
from pathlib import Path

import pytest

from seqloom.analysis.search_example import NEXT_WORDS, next_log_probabilities, search_example
from seqloom.config.schema.decoding import BeamConfig, GreedyConfig, MinimumBayesRiskConfig
from seqloom.core.errors import ConfigError
from seqloom.decoding.trace import Fate, SearchTrace, replay
from support.cli_runner import run_cli

SIX_WORDS, FOUR_WORDS = "he hit me with a pie", "he threw a pie"
NINE_WORDS = "I was hit with a pie that he threw"
LOG_PROBABILITIES = {SIX_WORDS: -4.5, FOUR_WORDS: -3.2, NINE_WORDS: -7.2}


@pytest.mark.parametrize(
    ("settings", "best", "score"),
    [
        ((), SIX_WORDS, "-0.750"),
        (("--set", "decoding.length_penalty=0"), FOUR_WORDS, "-3.200"),
        (("--set", "decoding.length_counts_end=true"), FOUR_WORDS, "-0.640"),
        (("--beam", "3"), SIX_WORDS, "-0.750"),
        (("--set", "decoding.kind=greedy"), SIX_WORDS, "-0.750"),
    ],
)
def test_best_output_depends_on_what_counts_as_length(
    settings: tuple[str, ...], best: str, score: str
) -> None:
    result = run_cli("example", "search", *settings)
    assert result.exit_code == 0, result.stderr
    [line] = [line for line in result.stdout.splitlines() if line.startswith("1  -")]
    assert line.split(maxsplit=3)[1] == score
    assert line.rstrip().endswith(best)


def test_a_beam_of_three_finds_the_three_outputs_of_the_lecture() -> None:
    outputs = search_example(BeamConfig(width=3)).outputs
    totals = {output.text: sum(output.log_probabilities) for output in outputs}
    assert totals == pytest.approx(LOG_PROBABILITIES)
    assert all(output.finished for output in outputs)


def test_each_step_after_the_first_compares_four_candidates_and_keeps_two() -> None:
    trace = search_example().record
    assert trace.width == 2
    for step in trace.steps[1:]:
        assert len(step) == 4
    for step in trace.steps[:-1]:
        assert sum(one.fate is Fate.KEPT for one in step) == 2


def test_probabilities_of_the_next_word_sum_to_one() -> None:
    for words in (*NEXT_WORDS, "tart tart"):
        assert float(next_log_probabilities(words).exp().sum()) == pytest.approx(1)


def test_n_best_and_search_can_be_chosen_in_python() -> None:
    [best] = search_example(BeamConfig(width=3), n_best=1).outputs
    assert best.text == SIX_WORDS
    [greedy] = search_example(GreedyConfig(min_length=9)).outputs
    assert len(greedy.pieces) > 9
    with pytest.raises(ConfigError, match="minimum Bayes risk"):
        search_example(MinimumBayesRiskConfig())


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf", "html", "json"])
def test_the_tree_is_written_in_every_format(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"tree.{suffix}"
    result = run_cli("example", "search", "--out", path)
    assert result.exit_code == 0, result.stderr
    if suffix == "json":
        content = json.loads(path.read_text(encoding="utf-8"))
        hypotheses = replay(SearchTrace.from_json(content["record"]))
        assert [one.score for one in hypotheses] == pytest.approx([-0.75, -0.8])
        assert content == json.loads(run_cli("example", "search", "--json").stdout)
    elif suffix in ("svg", "html"):
        assert "tart" in path.read_text(encoding="utf-8")
    else:
        assert path.stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "training.steps=3"), "Only settings of decoding can be changed"),
        (("--set", "decoding.length_counts_end=1"), "must be true or false, not 1"),
        (("--set", "decoding.kind=exhaustive"), "lower max_length"),
        (("--set", "decoding.kind=minimum-bayes-risk"), "has no steps to show"),
        (("--n-best", "3"), "3 outputs per text need a beam width of 3 or more, not 2"),
        (("--out", "tree.bmp"), "unsupported image format"),
    ],
)
def test_invalid_settings_are_errors(arguments: tuple[str, ...], message: str) -> None:
    result = run_cli("example", "search", *arguments)
    assert result.exit_code == 78
    assert message in result.stderr
    assert not Path("tree.bmp").exists()


def test_documentation_shows_the_output_of_the_example() -> None:
    page = Path(__file__).parents[2] / "docs" / "analysis" / "search.md"
    blocks = page.read_text(encoding="utf-8").split("```text\n")[1:]
    example = next(block for block in blocks if "-0.750" in block).partition("```")[0]
    printed = [line.rstrip() for line in run_cli("example", "search").stdout.splitlines()]
    assert example.splitlines() == printed[-3:]
