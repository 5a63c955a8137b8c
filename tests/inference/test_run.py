"""Run: texts in, predictions out."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig, SampleConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.inference.options import PredictionOptions
from seqloom.inference.run import Run, load
from seqloom.training.loop import train
from support.tiny_runs import LANGUAGE_MODEL, TRANSFORMER, tiny_config
from support.tiny_texts import long_text_config

pytestmark = pytest.mark.slow

TEXTS = ["abcd", "", "b", "  ", "dd", "abc", "\t", "zzz", "bcda", "a"]
DECODINGS: list[DecodingConfig] = [
    GreedyConfig(),
    BeamConfig(width=3),
    SampleConfig(seed=4, samples=2),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def translator(folder: Path) -> Run:
    train(tiny_config("training.steps=40", "training.evaluate_every=40"), folder / "translator")
    return load(folder / "translator")


@pytest.fixture(scope="module")
def transformer(folder: Path) -> Run:
    train(tiny_config(*TRANSFORMER, "training.steps=4"), folder / "transformer")
    return load(folder / "transformer")


@pytest.fixture(scope="module")
def language_model(folder: Path) -> Run:
    train(tiny_config(*LANGUAGE_MODEL, "training.steps=4"), folder / "language-model")
    return load(folder / "language-model")


def test_outputs_keep_the_order_and_empty_texts_have_empty_outputs(translator: Run) -> None:
    outputs = translator.translate(TEXTS)
    assert len(outputs) == len(TEXTS)
    assert [not output.text and not output.pieces for output in outputs] == [
        not text.strip() for text in TEXTS
    ]
    for text, output in zip(TEXTS, outputs, strict=True):
        if text.strip():
            assert output.source_pieces == (*(c if c in "abcd" else "<unk>" for c in text), "</s>")


@pytest.mark.parametrize("decoding", DECODINGS, ids=lambda decoding: decoding.kind)
@pytest.mark.parametrize("tokens", [1, 7, 12])
def test_outputs_do_not_depend_on_the_batch(
    translator: Run, decoding: DecodingConfig, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = translator.translate(TEXTS, decoding=decoding)
    monkeypatch.setattr("seqloom.inference.batching.CPU_BATCH_TOKENS", tokens)
    outputs = translator.translate(TEXTS, decoding=decoding)
    assert [output.text for output in expected] == [output.text for output in outputs]
    assert [output.score for output in expected] == pytest.approx(
        [output.score for output in outputs], abs=1e-5
    )


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(order=st.permutations(TEXTS))
def test_outputs_do_not_depend_on_the_order_of_the_texts(
    translator: Run, order: Sequence[str]
) -> None:
    expected = dict(zip(TEXTS, translator.translate(TEXTS), strict=True))
    for text, output in zip(order, translator.translate(order), strict=True):
        assert output.text == expected[text].text


def test_white_space_around_a_text_is_ignored(translator: Run) -> None:
    plain, padded = translator.translate(["abc", " abc\n"])
    assert plain.text == padded.text
    assert plain.source_pieces == padded.source_pieces


def test_outputs_start_with_their_prefixes(translator: Run) -> None:
    free, constrained = translator.translate(["abcd", "abcd"], prefixes=["", "ba"])
    assert constrained.text.startswith("ba")
    assert free.text == translator.translate(["abcd"])[0].text
    for outputs in translator.translate_n_best(["abcd"], 3, beam=4, prefixes=["c"]):
        assert all(output.text.startswith("c") for output in outputs)
    with pytest.raises(DataError, match="got 1 texts and 2 prefixes"):
        translator.translate(["abcd"], prefixes=["a", "b"])


def test_first_index_of_a_chunk_numbers_lines_and_samples(transformer: Run) -> None:
    with pytest.raises(DataError, match="line 1003: "):
        transformer.predict(["a", "b", "a" * 300], PredictionOptions(first=1000))
    sampling = SampleConfig(seed=3)
    expected = transformer.predict(TEXTS, PredictionOptions(), decoding=sampling)
    rest = transformer.predict(TEXTS[2:], PredictionOptions(first=2), decoding=sampling)
    assert [outputs[0].text for outputs in rest] == [outputs[0].text for outputs in expected[2:]]


def test_n_best_outputs_are_sorted_and_complete(translator: Run) -> None:
    for outputs in translator.translate_n_best(["abcd", "b"], 3, beam=4):
        assert len(outputs) == 3
        assert len({output.text for output in outputs}) == 3
        finished = [output.score for output in outputs if output.finished]
        assert finished == sorted(finished, reverse=True)
        for output in outputs:
            assert len(output.log_probabilities) == len(output.pieces)
            length = len(output.pieces) - output.finished  # END does not count
            mean = sum(output.log_probabilities) / max(1, length)
            assert output.score == pytest.approx(mean, abs=1e-5)
            assert output.attention is not None
            assert output.attention.shape == (len(output.pieces), len(output.source_pieces))
            assert output.attention.sum(1).tolist() == pytest.approx([1.0] * len(output.pieces))
            assert json.loads(json.dumps(output.to_json()))["text"] == output.text
    (without_attention,) = translator.translate(["abcd"], attention=False)
    assert without_attention.attention is None


def test_finished_is_false_if_the_length_limit_ended_the_output(translator: Run) -> None:
    (cut,) = translator.translate(["abcd"], decoding=GreedyConfig(max_length=1, min_length=0))
    (complete,) = translator.translate(["abcd"], decoding=BeamConfig(width=8))
    assert not cut.finished
    assert complete.finished
    assert complete.pieces[-1] == "</s>"
    assert "</s>" not in cut.pieces


def test_score_equals_the_log_probabilities_of_the_search(translator: Run) -> None:
    outputs = translator.translate_n_best(["abcd"], 3, beam=3)[0]
    finished = [output for output in outputs if output.finished]
    scored = translator.score(["abcd"] * len(finished), [output.text for output in finished])
    assert finished
    for output, forced in zip(finished, scored, strict=True):
        assert forced.text == output.text
        assert forced.log_probabilities == pytest.approx(output.log_probabilities, abs=1e-4)
    with pytest.raises(DataError, match="got 2 sources and 1 targets"):
        translator.score(["a", "b"], ["a"])


def test_language_model_completes_and_scores(language_model: Run) -> None:
    completions = language_model.complete(
        ["ab", ""], decoding=SampleConfig(seed=1, samples=3), n_best=3
    )
    assert [len(outputs) for outputs in completions] == [3, 3]
    assert all(output.text.startswith("ab") for output in completions[0])
    (scored,) = language_model.score([""], ["abc"])
    assert len(scored.log_probabilities) == 4
    assert sum(scored.log_probabilities) < 0
    assert scored.source_pieces == ()


def test_complete_samples_with_the_settings_of_the_recipe(tmp_path: Path) -> None:
    sampling = ("decoding.kind=sample", "decoding.top_k=1", "decoding.max_length=30")
    train(long_text_config(tmp_path, "training.steps=5", *sampling), tmp_path / "run")
    run = load(tmp_path / "run")
    greedy = GreedyConfig(max_length=30)
    assert run.complete(["ann"])[0][0].text == run.complete(["ann"], decoding=greedy)[0][0].text
    assert len(run.complete([""], n_best=2)[0]) == 2


def test_settings_change_the_recipe_if_the_weights_still_fit(folder: Path, translator: Run) -> None:
    hard = load(folder / "translator", ["model.decoder.attention.selection=argmax"])
    (output,) = hard.translate(["abcd"])
    assert output.attention is not None
    assert set(output.attention.flatten().tolist()) == {0.0, 1.0}
    with pytest.raises(
        ConfigError, match=r"do not fit the settings model\.decoder\.width=9"
    ) as caught:
        load(folder / "translator", ["model.decoder.width=9"])
    assert (
        str(caught.value).splitlines()[-1].startswith("Change only settings that keep the weights")
    )


def test_too_many_outputs_are_an_error(translator: Run) -> None:
    with pytest.raises(ConfigError, match="greedy search returns one output per text, not 2"):
        translator.translate_n_best(["a"], 2, decoding=GreedyConfig())
    with pytest.raises(ConfigError, match="3 outputs per text need 3 samples or more, not 2"):
        translator.translate_n_best(["a"], 3, decoding=SampleConfig(samples=2))
    with pytest.raises(ConfigError, match="need a beam width of 7 or more, not 5"):
        translator.translate_n_best(["a"], 7)


def test_methods_of_other_tasks_are_an_error(translator: Run, language_model: Run) -> None:
    with pytest.raises(ConfigError, match=r"this is a language model.*Use `complete`"):
        language_model.translate(["a"])
    with pytest.raises(ConfigError, match=r"cannot complete a prompt.*Use `translate`"):
        translator.complete(["a"])


def test_invalid_arguments_are_an_error(translator: Run, language_model: Run) -> None:
    invalid_beam: Any = 2.5
    with pytest.raises(ConfigError, match=r"must be an integer of 1 or more, not 2\.5"):
        translator.translate(["a"], beam=invalid_beam)
    invalid_decoding: Any = {"kind": "greedy"}
    with pytest.raises(ConfigError, match="decoding must be a config"):
        translator.translate(["a"], decoding=invalid_decoding)
    with pytest.raises(ConfigError, match="n_best must be 1 or more, not 0"):
        translator.translate_n_best(["a"], 0)
    with pytest.raises(ConfigError, match="n_best must be 1 or more, not -1"):
        language_model.complete(["a"], n_best=-1)


def test_texts_must_be_a_list_of_strings(translator: Run, language_model: Run) -> None:
    methods = (
        translator.translate,
        language_model.complete,
        lambda texts: translator.score(texts, texts),
    )
    invalid: tuple[Any, ...] = (None, b"abc")
    for method in methods:
        with pytest.raises(DataError, match="texts must be a list"):
            method("abc")
        for value in invalid:
            with pytest.raises(DataError, match=rf"texts\[1\] is not a str but {value!r}"):
                method(["abc", value])


def test_beam_keeps_the_rules_of_the_search_it_replaces(translator: Run) -> None:
    decoding = GreedyConfig(max_length=2, length_penalty=0.5, length_counts_end=True)
    (output,) = translator.translate(["abcd"], beam=2, decoding=decoding)
    assert len(output.pieces) <= 2
    total = sum(output.log_probabilities)
    assert output.score == pytest.approx(total / math.sqrt(len(output.pieces)), abs=1e-5)


def test_no_texts_have_no_outputs(translator: Run, language_model: Run) -> None:
    assert translator.translate([]) == []
    assert translator.score([], []) == []
    assert language_model.complete([]) == []
