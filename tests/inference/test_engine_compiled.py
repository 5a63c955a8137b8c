"""The engine 'compiled': the same outputs as torch, after a compilation of half a minute."""

from pathlib import Path

import pytest
import torch

from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig, SampleConfig
from seqloom.core.errors import ConfigError
from seqloom.inference.engine import select
from seqloom.inference.engine.compiled import unsupported_by_compiled
from seqloom.inference.options import TEXT_ONLY, PredictionOptions
from seqloom.inference.run import load
from seqloom.training.loop import train
from support.tiny_runs import tiny_config

pytestmark = pytest.mark.slow

TWELVE_LETTERS = tuple(f"data.{split}.symbols=12" for split in ("train", "dev", "test"))
NO_ATTENTION = PredictionOptions(attention=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled") / "run"
    train(tiny_config(*TWELVE_LETTERS, "training.steps=40"), folder)
    return folder


@pytest.fixture
def forbid_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> float:
        raise AssertionError("compiled")

    monkeypatch.setattr(select, "compile_search", fail)


def test_compiled_search_gives_the_same_outputs_as_torch(folder: Path) -> None:
    compiled, plain = load(folder, engine="compiled"), load(folder, engine="torch")
    texts = ["abcd", "b", "", "dlkjihgfedcba"]
    choice = compiled.choose_engine(TEXT_ONLY)
    assert choice.compiled
    assert choice.note.startswith("Engine: compiled torch. It was compiled in ")
    for text in texts:
        [first], [second] = (run.translate([text], attention=False) for run in (compiled, plain))
        assert first.text == second.text
        assert first.score == pytest.approx(second.score, abs=1e-4)
    pairs = zip(compiled.translate(texts), plain.translate(texts, attention=False), strict=True)
    assert all(first.text == second.text for first, second in pairs)


REQUESTS: list[tuple[DecodingConfig, PredictionOptions, str]] = [
    (SampleConfig(), NO_ATTENTION, "decoding.kind: 'sample' runs only on torch"),
    (
        GreedyConfig(),
        PredictionOptions(attention=True),
        "attention: only torch returns the weights",
    ),
]


@pytest.mark.parametrize(("decoding", "options", "reason"), REQUESTS, ids=["sample", "attention"])
@pytest.mark.usefixtures("forbid_compilation")
def test_unsupported_requests_are_an_error_or_run_on_torch_without_compile_now(
    folder: Path, decoding: DecodingConfig, options: PredictionOptions, reason: str
) -> None:
    run = load(folder, engine="compiled")
    with pytest.raises(ConfigError, match="engine 'compiled' cannot serve this request") as caught:
        run.predict(["a"], options, decoding=decoding)
    assert reason in str(caught.value)
    assert "--engine auto or torch" in str(caught.value)
    choice = run.engines.choose(run.engine, decoding, options, compile_now=False)
    assert (choice.name, choice.compiled) == ("torch", False)


@pytest.mark.usefixtures("forbid_compilation")
def test_nothing_is_compiled_for_several_texts(folder: Path) -> None:
    compiled, plain = load(folder, engine="compiled"), load(folder, engine="torch")
    texts = ["ab", "cab", "b"]
    outputs = [run.translate(texts, attention=False) for run in (compiled, plain)]
    assert [each.text for each in outputs[0]] == [each.text for each in outputs[1]]
    assert [each.score for each in outputs[0]] == [each.score for each in outputs[1]]
    with pytest.raises(AssertionError, match="compiled"):
        compiled.translate(texts[:1], attention=False)


@pytest.mark.usefixtures("forbid_compilation")
def test_an_unsupported_request_for_several_texts_is_an_error(folder: Path) -> None:
    with pytest.raises(ConfigError, match="engine 'compiled' cannot serve this request"):
        load(folder, engine="compiled").translate(["ab", "b"], attention=True)


@pytest.mark.usefixtures("forbid_compilation")
def test_nothing_is_compiled_without_compile_now(folder: Path) -> None:
    run = load(folder, engine="compiled")
    choice = run.engines.choose(run.engine, BeamConfig(width=7), NO_ATTENTION, compile_now=False)
    assert not choice.compiled
    assert "not compiled at start-up" in choice.note


@pytest.mark.usefixtures("forbid_compilation")
def test_evaluation_runs_on_torch(folder: Path) -> None:
    """The compiled engine serves single texts only."""
    assert load(folder, engine="compiled").evaluate("test").engine == "torch"


def test_gpus_and_ensembles_are_not_supported(folder: Path) -> None:
    single, ensemble = load(folder), load([folder, folder])
    greedy = GreedyConfig()
    assert not list(unsupported_by_compiled(single.model, greedy, NO_ATTENTION, on_cpu=True))
    [reason] = unsupported_by_compiled(single.model, greedy, NO_ATTENTION, on_cpu=False)
    assert "on a GPU" in reason
    [reason] = unsupported_by_compiled(ensemble.model, greedy, NO_ATTENTION, on_cpu=True)
    assert "EnsembleDecoder" in reason


def test_error_without_a_compiler_names_the_package_to_install(folder: Path) -> None:
    no_compiler = torch._inductor.config.patch({"cpp.cxx": ("no-such-compiler",)})
    with no_compiler, pytest.raises(ConfigError, match=r"apt-get install g\+\+") as caught:
        load(folder, engine="compiled").translate(["a"], decoding=GreedyConfig())
    assert "failed to compile the decoder step" in str(caught.value)
