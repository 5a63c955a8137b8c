"""Texts in, predictions out."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig, SampleConfig
from seqloom.core.errors import ConfigError, DataError, StorageError
from seqloom.models.interface import Memory
from seqloom.runs import batching as budget
from seqloom.runs.options import PredictionOptions
from seqloom.runs.predictor import Predictor
from seqloom.runs.run import Run, load
from seqloom.tasks.task import ModelInput
from seqloom.training.loop import train
from tiny_runs import SPEAKER, TRANSFORMER, recipe


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("predictions")


@pytest.fixture(scope="module")
def translator(folder: Path) -> Run:
    train(recipe("training.steps=40", "training.evaluate_every=40"), folder / "translator")
    return load(folder / "translator")


@pytest.fixture(scope="module")
def transformer(folder: Path) -> Run:
    train(recipe(*TRANSFORMER, "training.steps=4"), folder / "transformer")
    return load(folder / "transformer")


@pytest.fixture(scope="module")
def speaker(folder: Path) -> Run:
    train(recipe(*SPEAKER, "training.steps=4"), folder / "speaker")
    return load(folder / "speaker")


TEXTS = ["abcd", "", "b", "  ", "dd", "abc", "\t", "zzz", "bcda", "a"]
DECODINGS: list[DecodingConfig] = [
    GreedyConfig(),
    BeamConfig(width=3),
    SampleConfig(seed=4, samples=2),
]


def test_there_is_one_output_for_each_text_in_order_and_blank_for_blank(translator: Run) -> None:
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
def test_outputs_do_not_depend_on_what_else_is_in_a_batch(
    translator: Run, decoding: DecodingConfig, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = translator.translate(TEXTS, decoding=decoding)
    monkeypatch.setattr("seqloom.runs.batching.BATCH_TOKENS", tokens)
    cut = translator.translate(TEXTS, decoding=decoding)
    assert [one.text for one in whole] == [one.text for one in cut]
    assert [one.score for one in whole] == pytest.approx([one.score for one in cut], abs=1e-5)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(order=st.permutations(TEXTS))
def test_outputs_follow_their_texts(translator: Run, order: Sequence[str]) -> None:
    known = dict(zip(TEXTS, translator.translate(TEXTS), strict=True))
    for text, output in zip(order, translator.translate(order), strict=True):
        assert output.text == known[text].text


def test_white_space_around_a_text_means_nothing(translator: Run) -> None:
    bare, dressed = translator.translate(["abc", " abc\n"])
    assert bare.text == dressed.text
    assert bare.source_pieces == dressed.source_pieces


def test_an_output_begins_as_it_is_told(translator: Run) -> None:
    free, told = translator.translate(["abcd", "abcd"], prefixes=["", "ba"])
    assert told.text.startswith("ba")
    assert free.text == translator.translate(["abcd"])[0].text
    for outputs in translator.translate_n_best(["abcd"], 3, beam=4, prefixes=["c"]):
        assert all(output.text.startswith("c") for output in outputs)
    with pytest.raises(DataError, match="1 texts and 2 prefixes cannot be paired"):
        translator.translate(["abcd"], prefixes=["a", "b"])


def test_a_portion_says_where_it_begins(transformer: Run) -> None:
    """Errors name lines by their own number, and samples do not depend on where lists are cut."""
    with pytest.raises(DataError, match="line 1003: "):
        transformer.predict(["a", "b", "a" * 300], PredictionOptions(first=1000))
    sampling = SampleConfig(seed=3)
    whole = transformer.predict(TEXTS, PredictionOptions(), decoding=sampling)
    rest = transformer.predict(TEXTS[2:], PredictionOptions(first=2), decoding=sampling)
    assert [one[0].text for one in rest] == [one[0].text for one in whole[2:]]


def test_the_best_come_first_and_say_all_about_themselves(translator: Run) -> None:
    found = translator.translate_n_best(["abcd", "b"], 3, beam=4)
    for outputs in found:
        assert len(outputs) == 3
        assert len({output.text for output in outputs}) == 3
        finished = [output.score for output in outputs if output.finished]
        assert finished == sorted(finished, reverse=True)
        for output in outputs:
            assert len(output.log_probabilities) == len(output.pieces)
            mean = sum(output.log_probabilities) / len(output.pieces)
            assert output.score == pytest.approx(mean, abs=1e-5)
            assert output.attention is not None
            assert output.attention.shape == (len(output.pieces), len(output.source_pieces))
            assert output.attention.sum(1).tolist() == pytest.approx([1.0] * len(output.pieces))
            assert json.loads(json.dumps(output.to_json()))["text"] == output.text
    (bare,) = translator.translate(["abcd"], attention=False)
    assert bare.attention is None


def test_an_output_that_is_cut_off_says_so(translator: Run) -> None:
    (cut,) = translator.translate(["abcd"], decoding=GreedyConfig(max_length=1, min_length=0))
    (whole,) = translator.translate(["abcd"], decoding=BeamConfig(width=8))
    assert not cut.finished
    assert whole.finished
    assert whole.pieces[-1] == "</s>"
    assert "</s>" not in cut.pieces


def test_lines_too_long_for_the_model_are_named(transformer: Run) -> None:
    texts = ["a" * 23, "a" * 24, "b", "c" * 99]
    with pytest.raises(DataError) as caught:
        transformer.translate(texts)
    assert "reads at most 24 tokens" in str(caught.value)
    assert str(caught.value).splitlines()[1:] == ["  line 2: 25 tokens", "  line 4: 100 tokens"]
    assert len(transformer.translate(texts[:1])) == 1
    with pytest.raises(DataError, match=r"puts out at most 24 tokens[\s\S]*line 2: 31 tokens"):
        transformer.score(["a", "a"], ["a", "b" * 30])


def test_a_beginning_too_long_for_the_model_is_named(
    speaker: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speaker.model.decoder, "max_length", 4)
    with pytest.raises(DataError, match=r"shorten these beginnings[\s\S]*line 2: 5 tokens"):
        speaker.complete(["abc", "abcd"])
    assert speaker.complete(["abc"])[0][0].text.startswith("abc")


def test_scores_are_the_models_own(translator: Run) -> None:
    outputs = translator.translate_n_best(["abcd"], 3, beam=3)[0]
    ended = [output for output in outputs if output.finished]
    scored = translator.score(["abcd"] * len(ended), [output.text for output in ended])
    assert ended
    for output, again in zip(ended, scored, strict=True):
        assert again.text == output.text
        assert again.log_probabilities == pytest.approx(output.log_probabilities, abs=1e-4)
    with pytest.raises(DataError, match="2 sources and 1 targets cannot be paired"):
        translator.score(["a", "b"], ["a"])


def test_a_language_model_completes_and_scores(speaker: Run) -> None:
    found = speaker.complete(["ab", ""], decoding=SampleConfig(seed=1, samples=3), n_best=3)
    assert [len(outputs) for outputs in found] == [3, 3]
    assert all(output.text.startswith("ab") for output in found[0])
    (scored,) = speaker.score([""], ["abc"])
    assert len(scored.log_probabilities) == 4
    assert sum(scored.log_probabilities) < 0
    assert scored.source_pieces == ()


def test_a_model_that_learned_softly_can_look_hard(folder: Path, translator: Run) -> None:
    hard = load(folder / "translator", ["model.decoder.attention.selection=argmax"])
    (output,) = hard.translate(["abcd"])
    assert output.attention is not None
    assert set(output.attention.flatten().tolist()) == {0.0, 1.0}
    with pytest.raises(StorageError, match=r"does not fit the model of config\.toml"):
        load(folder / "translator", ["model.decoder.width=9"])


def test_greedy_search_and_too_few_samples_cannot_give_many_outputs(translator: Run) -> None:
    with pytest.raises(ConfigError, match="greedy search finds one output, not 2"):
        translator.translate_n_best(["a"], 2, decoding=GreedyConfig())
    with pytest.raises(ConfigError, match="3 outputs a text need as many samples, not 2"):
        translator.translate_n_best(["a"], 3, decoding=SampleConfig(samples=2))


def test_the_wrong_use_of_a_run_is_told(translator: Run, speaker: Run) -> None:
    with pytest.raises(ConfigError, match=r"is a language model.*use `complete`"):
        speaker.translate(["a"])
    with pytest.raises(ConfigError, match=r"cannot complete a beginning.*use `translate`"):
        translator.complete(["a"])
    wrong_beams: tuple[Any, ...] = (0, 2.5, "5")
    for beam in wrong_beams:
        with pytest.raises(ConfigError, match=f"1 or more wide, a whole number, not {beam!r}"):
            translator.translate(["a"], beam=beam)
    plain: Any = {"kind": "greedy"}
    with pytest.raises(ConfigError, match=r"give one of .* GreedyConfig\(\), not \{'kind'"):
        translator.translate(["a"], decoding=plain)
    with pytest.raises(ConfigError, match="7 outputs a text need a beam of 7 or more, not 5"):
        translator.translate_n_best(["a"], 7)
    with pytest.raises(ConfigError, match="at least one output a text is needed, not 0"):
        translator.translate_n_best(["a"], 0)
    with pytest.raises(ConfigError, match="at least one output a text is needed, not -1"):
        speaker.complete(["a"], n_best=-1)
    for use in (translator.translate, speaker.complete, lambda one: translator.score(one, one)):
        with pytest.raises(DataError, match="texts come as a list"):
            use("abc")
        others: tuple[Any, ...] = (None, b"abc")
        for other in others:
            with pytest.raises(DataError, match=f"text 1 of the list, .* is no str but {other!r}"):
                use(["abc", other])


def test_a_beam_keeps_the_rules_of_the_recipe(translator: Run) -> None:
    decoding = GreedyConfig(max_length=2, length_penalty=0.5)
    (output,) = translator.translate(["abcd"], beam=2, decoding=decoding)
    assert len(output.pieces) <= 2
    total = sum(output.log_probabilities)
    assert output.score == pytest.approx(total / math.sqrt(len(output.pieces)), abs=1e-5)


def test_nothing_in_is_nothing_out(translator: Run, speaker: Run) -> None:
    assert translator.translate([]) == []
    assert translator.score([], []) == []
    assert speaker.complete([]) == []


def test_a_batch_holds_fewer_texts_when_more_hypotheses_of_each_are_followed(
    translator: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    encode = Predictor.encode

    def spy(self: Predictor, batch: Sequence[ModelInput]) -> Memory:
        sizes.append(sum(len(one.source or ()) + 1 for one in batch))
        return encode(self, batch)

    monkeypatch.setattr(Predictor, "encode", spy)
    monkeypatch.setattr(budget, "BATCH_TOKENS", 120)
    texts = ["a b c", "b", "c a"] * 36
    searches: list[tuple[DecodingConfig, int]] = [
        (GreedyConfig(max_length=3), 1),
        (BeamConfig(width=4, max_length=3), 4),
        (SampleConfig(samples=3, max_length=3), 3),
    ]
    for decoding, hypotheses in searches:
        sizes.clear()
        translator.predictor.predict(texts, decoding)
        assert len(sizes) > hypotheses
        assert max(sizes[:-1]) * hypotheses <= 120
        assert sizes[-1] * hypotheses <= 240
