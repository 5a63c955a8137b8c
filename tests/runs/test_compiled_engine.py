"""--engine compiled: half a minute once, then the same outputs in half the time."""

from pathlib import Path

import pytest
import torch

from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig, SampleConfig
from seqloom.core.errors import ConfigError
from seqloom.runs.engine import select as choose
from seqloom.runs.engine.compiled import unsupported_by_compiled
from seqloom.runs.options import TEXT_ONLY, PredictionOptions
from seqloom.runs.run import load
from seqloom.training.loop import train
from tiny_runs import recipe

LETTERS = tuple(f"data.{split}.symbols=12" for split in ("train", "dev", "test"))
BARE = PredictionOptions(attention=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("compiled") / "run"
    train(recipe(*LETTERS, "training.steps=40"), place)
    return place


@pytest.fixture
def nothing_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> float:
        raise AssertionError("compiled")

    monkeypatch.setattr(choose, "compile_search", refuse)


def test_a_recurrent_model_compiled_says_what_it_said_before(folder: Path) -> None:
    ours, theirs = load(folder, engine="compiled"), load(folder, engine="torch")
    texts = ["abcd", "b", "", "dlkjihgfedcba"]
    choice = ours.choose_engine(TEXT_ONLY)
    assert choice.compiled
    assert choice.note.startswith("engine: torch compiled (compiled in ")
    for text in texts:
        [one], [other] = (run.translate([text], attention=False) for run in (ours, theirs))
        assert one.text == other.text
        assert one.score == pytest.approx(other.score, abs=1e-4)
    together = zip(ours.translate(texts), theirs.translate(texts, attention=False), strict=True)
    assert all(one.text == other.text for one, other in together)


REQUESTS: list[tuple[DecodingConfig, PredictionOptions, str]] = [
    (SampleConfig(), BARE, "decoding.kind: 'sample' is done by torch alone"),
    (GreedyConfig(), PredictionOptions(), "attention: where every layer and head looked"),
]


@pytest.mark.parametrize(("decoding", "wish", "words"), REQUESTS, ids=["sample", "attention"])
@pytest.mark.usefixtures("nothing_compiled")
def test_what_it_cannot_do_is_an_error_but_not_for_those_who_wait(
    folder: Path, decoding: DecodingConfig, wish: PredictionOptions, words: str
) -> None:
    run = load(folder, engine="compiled")
    with pytest.raises(ConfigError, match="the engine 'compiled' cannot answer this") as error:
        run.predict(["a"], wish, decoding=decoding)
    assert words in str(error.value)
    assert "--engine auto or torch" in str(error.value)
    choice = run.engines.choose(run.engine, decoding, wish, compile_now=False)
    assert (choice.name, choice.compiled) == ("torch", False)


@pytest.mark.usefixtures("nothing_compiled")
def test_nothing_is_compiled_while_somebody_waits(folder: Path) -> None:
    run = load(folder, engine="compiled")
    choice = run.engines.choose(run.engine, BeamConfig(width=7), BARE, compile_now=False)
    assert not choice.compiled
    assert "not compiled when there was time" in choice.note


@pytest.mark.usefixtures("nothing_compiled")
def test_an_evaluation_is_torchs_since_many_are_searched_together(folder: Path) -> None:
    assert load(folder, engine="compiled").evaluate("test").engine == "torch"


def test_a_gpu_and_an_ensemble_are_reasons_against_it(folder: Path) -> None:
    one, several = load(folder), load([folder, folder])
    assert not list(unsupported_by_compiled(one.model, GreedyConfig(), BARE, on_cpu=True))
    [reason] = unsupported_by_compiled(one.model, GreedyConfig(), BARE, on_cpu=False)
    assert "there is a GPU" in reason
    [reason] = unsupported_by_compiled(several.model, GreedyConfig(), BARE, on_cpu=True)
    assert "EnsembleDecoder" in reason


def test_without_a_compiler_it_says_what_to_install(folder: Path) -> None:
    without = torch._inductor.config.patch({"cpp.cxx": ("no-such-compiler",)})
    with without, pytest.raises(ConfigError, match=r"apt-get install g\+\+") as error:
        load(folder, engine="compiled").translate(["a"])
    assert "could not compile a step of this model" in str(error.value)
