"""A model of running text in use: what is counted, what is put out, and what is refused."""

import math
from pathlib import Path

import pytest

from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.corpora import LinesConfig, LongTextConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.decoding import BeamConfig, GreedyConfig, SampleConfig
from seqloom.core.errors import DataError
from seqloom.runs.run import Run, load
from seqloom.training.loop import train
from tiny_runs import journal
from tiny_texts import TEXT, running_recipe


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("speaker")
    train(running_recipe(folder), folder / "run")
    return load(folder / "run")


def figures(run: Run, data: DataConfig | None = None) -> dict[str, float]:
    return {score.key: score.value for score in run.evaluate("test", data=data).scores}


def windows_of(run: Run, **shape: int) -> DataConfig:
    """The run's test text, through other windows."""
    (test,) = run.config.data.test
    return run.config.data.model_copy(update={"test": (test.model_copy(update=shape),)})


def held_out() -> str:
    lines = TEXT.splitlines(keepends=True)
    starts = [len("".join(lines[:place])) for place in range(len(lines))]
    pairs = zip(lines, starts, strict=True)
    return "".join(line for line, start in pairs if start >= 0.9 * len(TEXT))


def test_it_learns(run: Run) -> None:
    first, last = (line for line in journal(run.folder) if line["event"] == "evaluate")
    assert last["loss"] < first["loss"] < math.log(20)


def test_every_token_counts_once_however_windows_are_cut(run: Run) -> None:
    text = held_out()
    for length, context in ((7, 0), (7, 6), (24, 12), (500, 0)):
        report = run.evaluate("test", data=windows_of(run, length=length, context=context))
        scores = {score.key: score for score in report.scores}
        ends = f"{text.count(chr(10))} ends of lines among them, no END; {context} or more tokens"
        counts = {
            "perplexity": f"{len(text)} tokens, {ends}",
            "perplexity-per-word": f"{len(text.split()) + text.count(chr(10))} words",
            "nats-per-token": f"{len(text)} tokens",
            "nats-per-character": f"{len(text)} characters, {ends}",
            "bits-per-character": f"{len(text)} characters, {ends}",
        }
        assert scores.keys() == counts.keys()
        assert all(str(scores[key].signature).startswith(words) for key, words in counts.items())


def test_scores_are_the_models_own_probability_of_the_text(run: Run) -> None:
    """One window holds it all, and nothing is left out or asked to end."""
    text = held_out()
    (forced,) = run.score([""], [text])
    assert len(forced.log_probabilities) == len(text)
    nats = -sum(forced.log_probabilities)
    scores = figures(run, windows_of(run, length=1000, context=0))
    assert scores["nats-per-token"] == pytest.approx(nats / len(text), rel=1e-5)
    assert scores["nats-per-character"] == pytest.approx(nats / len(text), rel=1e-5)
    assert scores["perplexity"] == pytest.approx(math.exp(nats / len(text)), rel=1e-5)
    assert scores["bits-per-character"] == pytest.approx(nats / len(text) / math.log(2), rel=1e-5)
    words = len(text.split()) + text.count("\n")
    assert scores["perplexity-per-word"] == pytest.approx(math.exp(nats / words), rel=1e-5)


def test_the_more_a_token_has_before_it_the_nearer_the_score_is_to_that_of_one_window(
    run: Run,
) -> None:
    def nats(length: int, context: int) -> float:
        return figures(run, windows_of(run, length=length, context=context))["nats-per-token"]

    whole = nats(1000, 0)
    assert abs(nats(60, 50) - whole) < abs(nats(4, 0) - whole)


def test_what_it_says_while_training_is_what_it_scores_later(run: Run) -> None:
    last = [line for line in journal(run.folder) if line["event"] == "evaluate"][-1]
    assert figures(run)["nats-per-token"] == pytest.approx(last["loss"], rel=1e-5)


def test_it_goes_on_up_to_the_limit_or_to_the_end_of_a_line(run: Run) -> None:
    lines = "ann sees it.\nbob"
    long = SampleConfig(max_length=60, seed=4, samples=3)
    for output in run.complete([lines], decoding=long, n_best=3)[0]:
        assert output.text.startswith(lines)
        assert len(output.pieces) == len(output.log_probabilities) == 60
        assert not output.finished
    short = long.model_copy(update={"stop_at_newline": True})
    for output, longer in zip(
        run.complete([lines], decoding=short, n_best=3)[0],
        run.complete([lines], decoding=long, n_best=3)[0],
        strict=True,
    ):
        rest = longer.text.removeprefix(lines)
        assert output.text == lines + rest.partition("\n")[0]
        assert output.finished == ("\n" in rest)
        assert len(output.pieces) == len(output.log_probabilities)
        mean = sum(output.log_probabilities) / len(output.log_probabilities)
        assert output.score == pytest.approx(mean)


def test_it_makes_up_a_text_of_some_length_by_itself(run: Run) -> None:
    ((output,), (other,)) = run.complete(["", "eve"])
    assert len(output.pieces) == 256
    assert len(other.pieces) == 256 + len("eve")
    assert "\n" in output.text


def test_it_never_ends_however_it_is_searched(tmp_path: Path) -> None:
    """END is as probable as any other token to a model that has learned next to nothing."""
    train(running_recipe(tmp_path, "training.steps=1"), tmp_path / "run")
    run = load(tmp_path / "run")
    searches = (
        SampleConfig(max_length=50, seed=2, samples=20, temperature=5.0),
        GreedyConfig(max_length=50),
        BeamConfig(max_length=50, width=3),
    )
    for search in searches:
        wanted = 20 if isinstance(search, SampleConfig) else 1
        (outputs,) = run.complete(["ann"], decoding=search, n_best=wanted)
        assert [len(output.pieces) for output in outputs] == [50] * wanted


def test_the_recipe_says_how_samples_are_drawn(tmp_path: Path) -> None:
    draws = ("decoding.kind=sample", "decoding.top_k=1", "decoding.max_length=30")
    train(running_recipe(tmp_path, "training.steps=5", *draws), tmp_path / "run")
    run = load(tmp_path / "run")
    greedy = GreedyConfig(max_length=30)
    assert run.complete(["ann"])[0][0].text == run.complete(["ann"], decoding=greedy)[0][0].text
    assert len(run.complete([""], n_best=2)[0]) == 2


def test_nothing_has_no_score(run: Run) -> None:
    with pytest.raises(DataError, match="running text has no END; give some text"):
        run.score([""], [""])
    assert len(run.score([""], ["\n"])[0].log_probabilities) == 1


def test_other_text_than_it_was_trained_on_is_refused(run: Run) -> None:
    lines = LinesConfig(path="text")
    data = DataConfig(folder=run.config.data.folder, train=(lines,), test=(lines,))
    with pytest.raises(DataError, match="has learned running text, and these data are sentences"):
        run.evaluate("test", data=data)


def test_sentences_are_counted_with_their_end(tmp_path: Path) -> None:
    sentence = {"kind": "lines", "path": str(tmp_path / "lines")}
    (tmp_path / "lines").write_text("ab c\nabc\n", encoding="utf-8")
    tables = running_recipe(tmp_path, "training.steps=2").model_dump(mode="json", exclude_none=True)
    tables |= {"data": {"train": sentence, "dev": sentence, "test": sentence}}
    train(load_recipe(tables).config, tmp_path / "run")
    run = load(tmp_path / "run")
    signatures = {score.key: score.signature for score in run.evaluate("test").scores}
    assert signatures["perplexity"] == "9 tokens, 2 END among them"
    assert signatures["perplexity-per-word"] == "5 words between spaces, 2 END among them"
    assert str(signatures["bits-per-character"]).startswith("7 characters, 2 END predicted as well")
    running = DataConfig(
        folder=str(tmp_path),
        train=(LongTextConfig(path="text"),),
        test=(LongTextConfig(path="text"),),
    )
    with pytest.raises(DataError, match="has learned sentences, and these data are running text"):
        run.evaluate("test", data=running)


def test_windows_reach_no_further_than_positions(tmp_path: Path) -> None:
    layers = "{kind='transformer', width=8, layers=1, feedforward=8, attention={heads=2}, "
    short = f"model.decoder={layers}positions={{kind='learned', max_length=20}}}}"
    with pytest.raises(DataError, match=r"train: \d+ targets have more than 20.*length = 20"):
        train(running_recipe(tmp_path, short), tmp_path / "run")
    fitting = [f"data.{split}.length=20" for split in ("train", "dev", "test")]
    train(running_recipe(tmp_path, short, "training.steps=2", *fitting), tmp_path / "run")
    run = load(tmp_path / "run")
    assert math.isfinite(figures(run)["perplexity"])
    with pytest.raises(DataError, match=r"windows of 30 tokens are longer.*reach \(20\)"):
        run.evaluate("test", data=windows_of(run, length=30))
