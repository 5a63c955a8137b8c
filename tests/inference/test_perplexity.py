"""Perplexity and related scores: which tokens they count, and that each counts once."""

import math
from pathlib import Path

import pytest

from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.corpora import LinesConfig, LongTextConfig
from seqloom.config.schema.data import DataConfig
from seqloom.core.errors import DataError
from seqloom.inference.run import Run, load
from seqloom.training.loop import train
from support.tiny_runs import read_events
from support.tiny_texts import TEXT, long_text_config

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A long-text language model."""
    folder = tmp_path_factory.mktemp("perplexity")
    train(long_text_config(folder), folder / "run")
    return load(folder / "run")


def score_values(run: Run, data: DataConfig | None = None) -> dict[str, float]:
    return {score.key: score.value for score in run.evaluate("test", data=data).scores}


def data_with_windows(run: Run, **shape: int) -> DataConfig:
    """The run's data with other windows over the test text."""
    (test,) = run.config.data.test
    return run.config.data.model_copy(update={"test": (test.model_copy(update=shape),)})


def held_out_text() -> str:
    """The last tenth of TEXT, in whole lines."""
    lines = TEXT.splitlines(keepends=True)
    starts = [len("".join(lines[:index])) for index in range(len(lines))]
    pairs = zip(lines, starts, strict=True)
    return "".join(line for line, start in pairs if start >= 0.9 * len(TEXT))


def test_training_reduces_the_dev_loss(run: Run) -> None:
    first, last = (event for event in read_events(run.folder) if event["event"] == "evaluate")
    assert last["loss"] < first["loss"] < math.log(20)


def test_every_token_counts_once_for_all_window_shapes(run: Run) -> None:
    text = held_out_text()
    for length, context in ((7, 0), (7, 6), (24, 12), (500, 0)):
        report = run.evaluate("test", data=data_with_windows(run, length=length, context=context))
        scores = {score.key: score for score in report.scores}
        newlines = text.count("\n")
        note = f"including {newlines} newlines, without END; at least {context} tokens"
        signatures = {
            "perplexity": f"{len(text)} tokens, {note}",
            "perplexity-per-word": f"{len(text.split()) + newlines} words",
            "nats-per-token": f"{len(text)} tokens",
            "nats-per-character": f"{len(text)} characters, {note}",
            "bits-per-character": f"{len(text)} characters, {note}",
        }
        assert scores.keys() == signatures.keys()
        for key, signature in signatures.items():
            assert str(scores[key].signature).startswith(signature)


def test_scores_equal_the_log_probability_of_the_text(run: Run) -> None:
    """One window contains the whole text, without END."""
    text = held_out_text()
    (forced,) = run.score([""], [text])
    assert len(forced.log_probabilities) == len(text)
    nats = -sum(forced.log_probabilities)
    scores = score_values(run, data_with_windows(run, length=1000, context=0))
    assert scores["nats-per-token"] == pytest.approx(nats / len(text), rel=1e-5)
    assert scores["nats-per-character"] == pytest.approx(nats / len(text), rel=1e-5)
    assert scores["perplexity"] == pytest.approx(math.exp(nats / len(text)), rel=1e-5)
    assert scores["bits-per-character"] == pytest.approx(nats / len(text) / math.log(2), rel=1e-5)
    words = len(text.split()) + text.count("\n")
    assert scores["perplexity-per-word"] == pytest.approx(math.exp(nats / words), rel=1e-5)


def test_more_context_approaches_the_score_of_a_single_window(run: Run) -> None:
    def nats(length: int, context: int) -> float:
        data = data_with_windows(run, length=length, context=context)
        return score_values(run, data)["nats-per-token"]

    single_window = nats(1000, 0)
    assert abs(nats(60, 50) - single_window) < abs(nats(4, 0) - single_window)


def test_dev_loss_during_training_equals_the_later_score(run: Run) -> None:
    last = [event for event in read_events(run.folder) if event["event"] == "evaluate"][-1]
    assert score_values(run)["nats-per-token"] == pytest.approx(last["loss"], rel=1e-5)


def test_empty_text_cannot_be_scored(run: Run) -> None:
    with pytest.raises(DataError, match="a long-text model has no END token"):
        run.score([""], [""])
    assert len(run.score([""], ["\n"])[0].log_probabilities) == 1


def test_long_text_model_rejects_sentences(run: Run) -> None:
    lines = LinesConfig(path="text")
    data = DataConfig(folder=run.config.data.folder, train=(lines,), test=(lines,))
    with pytest.raises(
        DataError, match="was trained on a long text, and this data consists of sentences"
    ):
        run.evaluate("test", data=data)


def test_sentence_scores_count_end(tmp_path: Path) -> None:
    sentences = {"kind": "lines", "path": str(tmp_path / "lines")}
    (tmp_path / "lines").write_text("ab c\nabc\n", encoding="utf-8")
    config = long_text_config(tmp_path, "training.steps=2")
    tables = config.model_dump(mode="json", exclude_none=True)
    tables |= {"data": {"train": sentences, "dev": sentences, "test": sentences}}
    train(load_recipe(tables).config, tmp_path / "run")
    run = load(tmp_path / "run")
    signatures = {score.key: score.signature for score in run.evaluate("test").scores}
    assert signatures["perplexity"] == "9 tokens, including 2 END"
    assert signatures["perplexity-per-word"] == "5 words between spaces, including 2 END"
    assert (
        signatures["bits-per-character"]
        == "7 characters, and 2 END, which are not counted as characters"
    )
    long_text = LongTextConfig(path="text")
    data = DataConfig(folder=str(tmp_path), train=(long_text,), test=(long_text,))
    with pytest.raises(
        DataError, match="was trained on sentences, and this data consists of a long text"
    ):
        run.evaluate("test", data=data)


def test_windows_longer_than_the_maximum_length_are_an_error(tmp_path: Path) -> None:
    layers = "{kind='transformer', width=8, layers=1, feedforward=8, attention={heads=2}, "
    short = f"model.decoder={layers}positions={{kind='learned', max_length=20}}}}"
    with pytest.raises(DataError, match=r"train: \d+ targets have more than 20.*length = 20"):
        train(long_text_config(tmp_path, short), tmp_path / "run")
    lengths = [f"data.{split}.length=20" for split in ("train", "dev", "test")]
    train(long_text_config(tmp_path, short, "training.steps=2", *lengths), tmp_path / "run")
    run = load(tmp_path / "run")
    assert math.isfinite(score_values(run)["perplexity"])
    with pytest.raises(DataError, match=r"windows of 30 tokens exceed the model's .* of 20"):
        run.evaluate("test", data=data_with_windows(run, length=30))
