"""The choice of the engine for a request, and equal outputs with every engine."""

import importlib
import shutil
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
from engine_runs import NO_ATTENTION, TEXTS, TRANSFORMER, TWELVE_LETTERS, train_transformer

from seqloom.config.schema.decoding import (
    BeamConfig,
    DecodingConfig,
    ExhaustiveConfig,
    GreedyConfig,
    SampleConfig,
)
from seqloom.config.schema.names import EngineKind
from seqloom.core.errors import ConfigError, DataError, NotFoundError
from seqloom.inference.options import TEXT_ONLY, PredictionOptions
from seqloom.inference.predictor import Predictor
from seqloom.inference.run import load
from seqloom.training.loop import train
from support.tiny_runs import tiny_config

pytestmark = pytest.mark.slow

DECODINGS: list[DecodingConfig] = [GreedyConfig(), BeamConfig(width=3)]
FLOAT32 = ("engine.precision=float32",)
WITH_SCORES = PredictionOptions(attention=False, probabilities="score")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_transformer(tmp_path_factory.mktemp("engine-select") / "run")


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    """A copy of the run without converted models."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


def test_ctranslate2_is_the_default_for_a_transformer_on_a_cpu(folder: Path) -> None:
    choice = load(folder).choose_engine(TEXT_ONLY)
    assert choice.engine is not None
    assert choice.name.startswith("ctranslate2 ")
    assert "Its log-probabilities differ by " in choice.note
    assert load(folder, engine="torch").choose_engine(TEXT_ONLY).note == "Engine: torch."
    assert load(folder, ["engine.kind=torch"]).choose_engine(TEXT_ONLY).engine is None


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("auto", "this run is on a CPU"),
        ("torch", "this run is on a CPU"),
        ("ctranslate2", "the engine 'ctranslate2' has no bf16"),
        ("compiled", "the engine 'compiled' has no bf16"),
    ],
)
def test_bf16_is_rejected_except_for_torch_on_a_gpu(
    folder: Path, kind: EngineKind, reason: str
) -> None:
    run = load(folder, ["engine.precision=bf16"], engine=kind)
    for texts in (["abc"], TEXTS):
        with pytest.raises(ConfigError) as caught:
            run.predict(texts, TEXT_ONLY)
        assert str(caught.value) == (
            f"engine.precision = bf16 is for torch on a GPU, and {reason}. Use "
            "engine.precision=auto, or --engine torch on a machine with a GPU."
        )


@pytest.mark.parametrize("decoding", [*DECODINGS, SampleConfig()], ids=lambda each: each.kind)
def test_searches_in_bf16_have_nearly_the_same_scores(
    folder: Path, decoding: DecodingConfig
) -> None:
    """A CPU stands for the GPU, where the engine may be used."""
    run = load(folder, ["engine.precision=bf16"], engine="torch")
    on_gpu = replace(run.engines, on_cpu=False)
    choice = on_gpu.choose(run.engine, decoding, TEXT_ONLY)
    assert choice.note == "Engine: torch with bf16 weights."
    plain = Predictor(run.model, run.task, torch.device("cpu"))
    in_bf16 = choice.apply(plain)
    assert in_bf16.precision == torch.bfloat16
    [[expected]], [[best]] = (
        each.predict(["abc"], GreedyConfig(max_length=1)) for each in (plain, in_bf16)
    )
    assert best.log_probabilities == pytest.approx(expected.log_probabilities, abs=0.1)
    assert best.log_probabilities != expected.log_probabilities
    assert len(in_bf16.predict(TEXTS, decoding)) == len(TEXTS)


@pytest.mark.parametrize("decoding", DECODINGS, ids=lambda decoding: decoding.kind)
@pytest.mark.parametrize("tokens", [1, 9, 4096])
def test_both_engines_give_the_same_predictions(
    folder: Path, decoding: DecodingConfig, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, empty for empty texts, and independent of the batches."""
    expected = load(folder, engine="torch").predict(TEXTS, NO_ATTENTION, decoding=decoding)
    monkeypatch.setattr("seqloom.inference.batching.CPU_BATCH_TOKENS", tokens)
    run = load(folder, FLOAT32, engine="ctranslate2")
    for [ours], [theirs] in zip(
        expected, run.predict(TEXTS, NO_ATTENTION, decoding=decoding), strict=True
    ):
        assert theirs.text == ours.text
        assert theirs.pieces == ours.pieces
        assert theirs.source_pieces == ours.source_pieces
        assert theirs.finished == ours.finished
        assert theirs.score == pytest.approx(ours.score, abs=1e-4)
        assert theirs.log_probabilities == pytest.approx(ours.log_probabilities, abs=1e-4)
    text_only = run.predict(TEXTS, TEXT_ONLY, decoding=decoding)
    assert [best.text for [best] in text_only] == [best.text for [best] in expected]
    with_scores = run.predict(TEXTS, WITH_SCORES, decoding=decoding)
    assert [best.text for [best] in with_scores] == [best.text for [best] in expected]
    assert [best.score for [best] in with_scores] == pytest.approx(
        [best.score for [best] in expected], abs=1e-4
    )


def test_ctranslate2_serves_plain_requests_without_torch(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the test above would compare torch with itself."""
    run = load(folder, FLOAT32, engine="ctranslate2")
    run.translate(["a"])

    def fail(*arguments: object, **named: object) -> None:
        raise AssertionError("torch searched")

    monkeypatch.setattr(run.model.decoder, "start", fail)
    outputs = run.translate(["abcd", "bl", "dcba"], decoding=BeamConfig(width=3))
    assert len(outputs) == 3


def test_repeated_errors_keep_no_objects_of_earlier_requests(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stored error is raised for each request. Its traceback holds the frames of its callers."""

    def fail(*arguments: object) -> None:
        raise ConfigError("no engine")

    monkeypatch.setattr("seqloom.inference.engine.select.load_or_convert", fail)
    run = load(folder, engine="ctranslate2")

    def frames() -> int:
        with pytest.raises(ConfigError, match="no engine") as caught:
            run.translate(["ab"])
        return len(caught.traceback)

    assert [frames() for _ in range(3)] == [frames()] * 3


def test_unfinished_outputs_are_the_same(folder: Path) -> None:
    texts, decoding = ["abcdef", "ab"], GreedyConfig(max_length=2)
    expected = load(folder, engine="torch").translate(texts, decoding=decoding)
    outputs = load(folder, FLOAT32, engine="ctranslate2").translate(texts, decoding=decoding)
    assert not expected[0].finished
    assert [output.text for output in outputs] == [output.text for output in expected]
    assert [output.finished for output in outputs] == [output.finished for output in expected]


def test_too_long_lines_are_an_error_with_ctranslate2(folder: Path) -> None:
    with pytest.raises(DataError, match=r"reads at most 24 tokens[\s\S]*line 2: 31 tokens"):
        load(folder, engine="ctranslate2").translate(["a", "a" * 30])


def test_error_without_the_package_states_how_to_install_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_module = importlib.import_module

    def import_without_ctranslate2(name: str, package: str | None = None) -> ModuleType:
        if name == "ctranslate2":
            raise ImportError(name)
        return import_module(name, package)

    monkeypatch.setattr(importlib, "import_module", import_without_ctranslate2)
    with pytest.raises(NotFoundError, match=r"pip install 'seqloom\[ctranslate2\]'"):
        load(folder, engine="ctranslate2").translate(["a"])
    choice = load(folder).choose_engine(TEXT_ONLY)
    assert choice.engine is None
    assert "not installed" in choice.note


def test_float32_is_chosen_if_int8_is_not_close(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seqloom.inference.engine.select.INT8_IS_FASTER", True)
    assert load(folder).choose_engine(TEXT_ONLY).name == "ctranslate2 int8"
    monkeypatch.setattr("seqloom.inference.engine.store.INT8_TOLERANCE", 0.0)
    assert load(folder).choose_engine(TEXT_ONLY).name == "ctranslate2 float32"
    int8 = load(folder, ["engine.precision=int8"])
    assert int8.choose_engine(TEXT_ONLY).name == "ctranslate2 int8"


def test_float32_is_chosen_if_int8_is_not_faster(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seqloom.inference.engine.select.INT8_IS_FASTER", False)
    assert load(folder).choose_engine(TEXT_ONLY).name == "ctranslate2 float32"
    int8 = load(folder, ["engine.precision=int8"])
    assert int8.choose_engine(TEXT_ONLY).name == "ctranslate2 int8"


def test_engine_is_loaded_once_per_run(folder: Path) -> None:
    run = load(folder)
    assert run.choose_engine(TEXT_ONLY).engine is run.choose_engine(TEXT_ONLY).engine


REQUESTS: list[tuple[DecodingConfig, PredictionOptions, str]] = [
    (SampleConfig(), NO_ATTENTION, "decoding.kind: 'sample' runs only on torch"),
    (ExhaustiveConfig(max_length=2), NO_ATTENTION, "decoding.kind: 'exhaustive'"),
    (GreedyConfig(min_length=2), NO_ATTENTION, "decoding.min_length"),
    (GreedyConfig(no_repeat_ngram=3), NO_ATTENTION, "decoding.no_repeat_ngram"),
    (
        BeamConfig(width=9),
        NO_ATTENTION,
        "a beam width of 9 needs a vocabulary of 18 or more, not 16",
    ),
    (
        BeamConfig(width=3, stopping="estimate"),
        NO_ATTENTION,
        "decoding.stopping: CTranslate2 has no rule 'estimate'",
    ),
    (
        BeamConfig(width=4, finished=2),
        PredictionOptions(3, attention=False),
        "decoding.finished: 2 returns fewer than 3 outputs",
    ),
    (
        GreedyConfig(),
        PredictionOptions(attention=True),
        "attention: only torch returns the weights",
    ),
    (
        GreedyConfig(),
        PredictionOptions(attention=False, prefixes=["", "b"]),
        "prefixes: CTranslate2 does not score",
    ),
]


@pytest.mark.parametrize(
    ("decoding", "options", "reason"), REQUESTS, ids=lambda value: str(value)[:20]
)
def test_unsupported_requests_run_on_torch_with_a_reason(
    folder: Path, decoding: DecodingConfig, options: PredictionOptions, reason: str
) -> None:
    texts = ["abc", "bl"]
    expected = load(folder, engine="torch").predict(texts, options, decoding=decoding)
    run = load(folder)
    choice = run.choose_engine(options, decoding=decoding)
    assert choice.engine is None
    assert reason in choice.note
    predictions = run.predict(texts, options, decoding=decoding)
    assert [[output.text for output in outputs] for outputs in predictions] == [
        [output.text for output in outputs] for outputs in expected
    ]
    with pytest.raises(
        ConfigError, match="engine 'ctranslate2' cannot serve this request"
    ) as caught:
        load(folder, engine="ctranslate2").predict(texts, options, decoding=decoding)
    assert reason in str(caught.value)


def test_error_lists_every_reason_against_a_request(folder: Path) -> None:
    decoding = SampleConfig(min_length=1, no_repeat_ngram=2)
    with pytest.raises(ConfigError) as caught:
        load(folder, engine="ctranslate2").predict(
            ["a"], PredictionOptions(attention=True, prefixes=["b"]), decoding=decoding
        )
    assert len(str(caught.value).splitlines()) == 1 + 5 + 1


def test_word_vocabulary_needs_torch_unless_unknown_tokens_are_allowed(tmp_path: Path) -> None:
    words = "text.tokenizer={kind='words'}"
    config = tiny_config(*TRANSFORMER, *TWELVE_LETTERS, words, "training.steps=4")
    train(config, tmp_path / "words")
    run = load(tmp_path / "words")
    assert "decoding.allow_unknown" in run.choose_engine(TEXT_ONLY).note
    allowed = BeamConfig(width=3, allow_unknown=True)
    assert run.choose_engine(TEXT_ONLY, decoding=allowed).engine is not None


def test_attention_of_outputs_of_ctranslate2_is_computed_when_it_is_read(folder: Path) -> None:
    run = load(folder, engine="ctranslate2")
    [output] = run.translate(["abc"])
    assert output.attention is not None
    assert output.attention.shape == (len(output.pieces), len(output.source_pieces))
    assert run.translate_n_best(["abc"], 2)[0][1].attention is not None
    assert run.translate(["abc"], attention=False)[0].attention is None
    with pytest.raises(ConfigError, match="attention"):
        run.translate(["abc"], attention=True)


def test_evaluation_uses_torch_unless_ctranslate2_is_set(folder: Path) -> None:
    torch_report = load(folder).evaluate()
    engine_report = load(folder, engine="ctranslate2").evaluate()
    assert torch_report.to_json()["engine"] == "torch"
    assert engine_report.to_json()["engine"] == load(folder).choose_engine(TEXT_ONLY).name
    assert len(engine_report.outputs) == len(torch_report.outputs)


def test_recurrent_run_uses_torch_with_a_reason(tmp_path: Path) -> None:
    train(tiny_config("training.steps=4"), tmp_path / "recurrent")
    run = load(tmp_path / "recurrent")
    assert "model.encoder is recurrent" in run.choose_engine(TEXT_ONLY).note
    with pytest.raises(ConfigError, match=r"model\.encoder is recurrent[\s\S]*model\.decoder is"):
        load(tmp_path / "recurrent", engine="ctranslate2").translate(["a"])


def test_load_rejects_an_unknown_engine(folder: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"unknown engine 'fast'\. Available: auto, torch, compiled, ctranslate2"
    ):
        load(folder, engine="fast")  # type: ignore[arg-type]
