"""Length limits: which inputs are rejected, and where outputs end."""

from pathlib import Path

import pytest

from seqloom.config.schema.decoding import BeamConfig, GreedyConfig, SampleConfig
from seqloom.core.errors import DataError
from seqloom.inference.run import Run, load
from seqloom.training.loop import train
from support.tiny_runs import LANGUAGE_MODEL, TRANSFORMER, tiny_config
from support.tiny_texts import long_text_config

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A Transformer with 24 positions."""
    folder = tmp_path_factory.mktemp("limits") / "run"
    train(tiny_config(*TRANSFORMER, "training.steps=4"), folder)
    return load(folder)


@pytest.fixture(scope="module")
def long_text_model(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("long-text")
    train(long_text_config(folder), folder / "run")
    return load(folder / "run")


def test_too_long_lines_are_an_error_that_lists_them(transformer: Run) -> None:
    texts = ["a" * 23, "a" * 24, "b", "c" * 99]
    with pytest.raises(DataError) as caught:
        transformer.translate(texts)
    assert "reads at most 24 tokens" in str(caught.value)
    assert str(caught.value).splitlines()[1:] == ["  line 2: 25 tokens", "  line 4: 100 tokens"]
    assert len(transformer.translate(texts[:1])) == 1
    with pytest.raises(DataError, match=r"generates at most 24 tokens[\s\S]*line 2: 31 tokens"):
        transformer.score(["a", "a"], ["a", "b" * 30])


def test_too_long_prefixes_are_an_error_that_lists_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tiny_config(*LANGUAGE_MODEL, "training.steps=4"), tmp_path / "run")
    run = load(tmp_path / "run")
    monkeypatch.setattr(run.model.decoder, "target_limits", {"positions.max_length": 4})
    with pytest.raises(DataError, match=r"Shorten these prefixes[\s\S]*line 2: 5 tokens"):
        run.complete(["abc", "abcd"])
    assert run.complete(["abc"])[0][0].text.startswith("abc")


def test_long_text_ends_at_max_length_or_with_one_line_at_a_newline(long_text_model: Run) -> None:
    prompt = "ann sees it.\nbob"
    unlimited = SampleConfig(max_length=60, seed=4, samples=3)
    for output in long_text_model.complete([prompt], decoding=unlimited, n_best=3)[0]:
        assert output.text.startswith(prompt)
        assert len(output.pieces) == len(output.log_probabilities) == 60
        assert not output.finished
    one_line = unlimited.model_copy(update={"stop_at_newline": True})
    for output, longer in zip(
        long_text_model.complete([prompt], decoding=one_line, n_best=3)[0],
        long_text_model.complete([prompt], decoding=unlimited, n_best=3)[0],
        strict=True,
    ):
        rest = longer.text.removeprefix(prompt)
        assert output.text == prompt + rest.partition("\n")[0]
        assert output.finished == ("\n" in rest)
        assert len(output.pieces) == len(output.log_probabilities)
        length = len(output.log_probabilities) - output.finished  # the newline does not count
        mean = sum(output.log_probabilities) / max(1, length)
        assert output.score == pytest.approx(mean)


def test_long_text_has_256_new_tokens_by_default(long_text_model: Run) -> None:
    ((without_prompt,), (with_prompt,)) = long_text_model.complete(["", "eve"])
    assert len(without_prompt.pieces) == 256
    assert len(with_prompt.pieces) == 256 + len("eve")
    assert "\n" in without_prompt.text


def test_no_search_generates_end_for_long_text(tmp_path: Path) -> None:
    """In an untrained model END is as probable as any other token."""
    train(long_text_config(tmp_path, "training.steps=1"), tmp_path / "run")
    run = load(tmp_path / "run")
    searches = (
        SampleConfig(max_length=50, seed=2, samples=20, temperature=5.0),
        GreedyConfig(max_length=50),
        BeamConfig(max_length=50, width=3),
    )
    for search in searches:
        n_best = 20 if isinstance(search, SampleConfig) else 1
        (outputs,) = run.complete(["ann"], decoding=search, n_best=n_best)
        assert [len(output.pieces) for output in outputs] == [50] * n_best
