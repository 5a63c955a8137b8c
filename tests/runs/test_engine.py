"""Runs whose outputs are searched by CTranslate2: the same outputs, kept safely, refused aloud."""

import importlib
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from seqloom.config.schema.decoding import (
    BeamConfig,
    DecodingConfig,
    ExhaustiveConfig,
    GreedyConfig,
    SampleConfig,
)
from seqloom.core.errors import ConfigError, DataError, NotFoundError, StorageError
from seqloom.core.storage import find_damage
from seqloom.models.seq2seq import Model
from seqloom.runs.engine import store as kept
from seqloom.runs.engine.convert import Precision, convert
from seqloom.runs.folder.integrity import run_damage
from seqloom.runs.options import TEXT_ONLY, PredictionOptions
from seqloom.runs.run import Run, load
from seqloom.training.loop import train
from tiny_runs import recipe, stray

SIDES = tuple(
    f"model.{side}={{kind='transformer', width=16, layers=1, feedforward=32, dropout=0.0, "
    "attention={heads=2}, positions={kind='learned', max_length=24}}"
    for side in ("encoder", "decoder")
)
LETTERS = tuple(f"data.{split}.symbols=12" for split in ("train", "dev", "test"))
TEXTS = ["abcd", "", "b", "  ", "dlk", "abc", "\t", "zzz", "bcda", "a", "kkjihg"]
DECODINGS: list[DecodingConfig] = [GreedyConfig(), BeamConfig(width=3)]
FLOAT = ("engine.precision=float32",)
BARE = PredictionOptions(attention=False)
SCORED = PredictionOptions(attention=False, probabilities="score")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("engine") / "run"
    train(recipe(*SIDES, *LETTERS, "data.train.examples=400", "training.steps=120"), folder)
    return folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    """A copy of one's own, not yet converted."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


def engines(folder: Path) -> list[Path]:
    return sorted((folder / "engines").glob("*"))


@pytest.fixture
def no_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("converted again")

    monkeypatch.setattr(kept, "convert", refuse)


def test_a_transformer_on_a_cpu_is_searched_by_ctranslate2_unless_told_otherwise(
    folder: Path,
) -> None:
    choice = load(folder).choose_engine(TEXT_ONLY)
    assert choice.engine is not None
    assert choice.name.startswith("ctranslate2 ")
    assert "mean |Δ log p|" in choice.note
    assert load(folder, engine="torch").choose_engine(TEXT_ONLY).note == "engine: torch"
    assert load(folder, ["engine.kind=torch"]).choose_engine(TEXT_ONLY).engine is None


@pytest.mark.parametrize("decoding", DECODINGS, ids=lambda decoding: decoding.kind)
@pytest.mark.parametrize("tokens", [1, 9, 4096])
def test_both_engines_give_the_same_predictions(
    folder: Path, decoding: DecodingConfig, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, blank for blank, however the texts are cut into batches."""
    ours = load(folder, engine="torch").predict(TEXTS, BARE, decoding=decoding)
    monkeypatch.setattr("seqloom.runs.batching.BATCH_TOKENS", tokens)
    quick = load(folder, FLOAT, engine="ctranslate2")
    theirs = quick.predict(TEXTS, BARE, decoding=decoding)
    for [mine], [other] in zip(ours, theirs, strict=True):
        assert other.text == mine.text
        assert other.pieces == mine.pieces
        assert other.source_pieces == mine.source_pieces
        assert other.finished == mine.finished
        assert other.score == pytest.approx(mine.score, abs=1e-4)
        assert other.log_probabilities == pytest.approx(mine.log_probabilities, abs=1e-4)
    words = quick.predict(TEXTS, TEXT_ONLY, decoding=decoding)
    assert [one[0].text for one in words] == [one[0].text for one in ours]
    scored = quick.predict(TEXTS, SCORED, decoding=decoding)
    assert [one[0].text for one in scored] == [one[0].text for one in ours]
    known = [one[0].score for one in ours]
    assert [one[0].score for one in scored] == pytest.approx(known, abs=1e-4)


def test_most_of_it_is_really_done_by_the_engine(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the test above compares two engines, and not torch with itself."""
    run = load(folder, FLOAT, engine="ctranslate2")
    run.translate(["a"])

    def refuse(*arguments: object, **named: object) -> None:
        raise AssertionError("torch was asked")

    monkeypatch.setattr(run.model.decoder, "start", refuse)
    run.translate(["abcd", "bl", "dcba"], decoding=BeamConfig(width=3))


def test_an_output_that_is_cut_off_is_the_same_too(folder: Path) -> None:
    decoding = GreedyConfig(max_length=2)
    ours = load(folder, engine="torch").translate(["abcdef", "ab"], decoding=decoding)
    theirs = load(folder, FLOAT, engine="ctranslate2").translate(
        ["abcdef", "ab"], decoding=decoding
    )
    assert not ours[0].finished
    assert [one.text for one in theirs] == [one.text for one in ours]
    assert [one.finished for one in theirs] == [one.finished for one in ours]


def test_lines_too_long_are_named_as_ever(folder: Path) -> None:
    with pytest.raises(DataError, match=r"reads at most 24 tokens[\s\S]*line 2: 31 tokens"):
        load(folder, engine="ctranslate2").translate(["a", "a" * 30])


def test_a_converted_model_is_kept_and_found_again(
    folder: Path, request: pytest.FixtureRequest
) -> None:
    first = load(folder).choose_engine(TEXT_ONLY)
    (place,) = engines(folder)
    assert find_damage(place) == []
    assert run_damage(folder) == []
    assert not stray(folder)
    request.getfixturevalue("no_conversion")
    assert load(folder).choose_engine(TEXT_ONLY).note == first.note


@pytest.mark.parametrize("name", ["model.bin", "manifest.json", "agreement.json", "config.json"])
def test_a_damaged_copy_is_made_again(folder: Path, name: str) -> None:
    good = load(folder).translate(TEXTS, attention=False)
    (place,) = engines(folder)
    data = bytearray((place / name).read_bytes())
    data[len(data) // 2] ^= 1
    (place / name).write_bytes(data)
    assert find_damage(place)
    again = load(folder).translate(TEXTS, attention=False)
    assert again == good
    assert engines(folder) == [place]
    assert find_damage(place) == []


def test_the_engine_of_other_weights_takes_the_place_of_the_old(folder: Path) -> None:
    load(folder).choose_engine(TEXT_ONLY)
    (old,) = engines(folder)
    other = load(folder, ["model.decoder.attention.score.scale=one"])
    other.choose_engine(TEXT_ONLY)
    (new,) = engines(folder)
    assert new != old


def test_a_folder_that_cannot_be_written_has_its_engine_in_the_cache(
    folder: Path, own_cache: Path, request: pytest.FixtureRequest
) -> None:
    (folder / "engines").write_text("in the way", encoding="utf-8")
    assert load(folder).choose_engine(TEXT_ONLY).engine is not None
    (place,) = (own_cache / "engines").glob("ctranslate2-*")
    assert find_damage(place) == []
    request.getfixturevalue("no_conversion")
    assert load(folder).choose_engine(TEXT_ONLY).engine is not None


def test_with_no_place_to_keep_an_engine_torch_answers_and_says_so(
    folder: Path, own_cache: Path
) -> None:
    (folder / "engines").write_text("in the way", encoding="utf-8")
    own_cache.parent.mkdir(exist_ok=True)
    own_cache.write_text("in the way", encoding="utf-8")
    choice = load(folder).choose_engine(TEXT_ONLY)
    assert choice.engine is None
    assert "cannot be written" in choice.note
    with pytest.raises(StorageError, match="cannot be written"):
        load(folder, engine="ctranslate2").translate(["a"])


def test_without_the_package_it_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.import_module

    def missing(name: str, package: str | None = None) -> ModuleType:
        if name == "ctranslate2":
            raise ImportError(name)
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(NotFoundError, match=r"pip install 'seqloom\[ctranslate2\]'"):
        load(folder, engine="ctranslate2").translate(["a"])
    choice = load(folder).choose_engine(TEXT_ONLY)
    assert choice.engine is None
    assert "not installed" in choice.note


def test_a_conversion_that_computes_something_else_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(model: Model, place: Path, precision: Precision) -> None:
        bias = model.decoder.readout.get_submodule("output").get_parameter("bias").data
        bias[5] += 0.01
        convert(model, place, precision)
        bias[5] -= 0.01

    monkeypatch.setattr(kept, "convert", spoil)
    with pytest.raises(ConfigError, match=r"does not compute what torch computes \(mean"):
        load(folder, engine="ctranslate2").translate(["a"])
    choice = load(folder).choose_engine(TEXT_ONLY)
    assert choice.engine is None
    assert "does not compute what torch computes" in choice.note
    assert engines(folder) == []


def test_where_int8_does_not_hold_float32_is_taken_unless_int8_was_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seqloom.runs.engine.select.INT8_PAYS", True)
    assert load(folder).choose_engine(TEXT_ONLY).name == "ctranslate2 int8"
    monkeypatch.setattr("seqloom.runs.engine.agreement.CLOSE", 0.0)
    assert load(folder).choose_engine(TEXT_ONLY).name == "ctranslate2 float32"
    asked = load(folder, ["engine.precision=int8"])
    assert asked.choose_engine(TEXT_ONLY).name == "ctranslate2 int8"


def test_where_int8_is_slower_float32_is_taken_unless_int8_was_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seqloom.runs.engine.select.INT8_PAYS", False)
    assert load(folder).choose_engine(TEXT_ONLY).name == "ctranslate2 float32"
    asked = load(folder, ["engine.precision=int8"])
    assert asked.choose_engine(TEXT_ONLY).name == "ctranslate2 int8"


def test_an_engine_is_made_once_for_each_run(folder: Path) -> None:
    run = load(folder)
    assert run.choose_engine(TEXT_ONLY).engine is run.choose_engine(TEXT_ONLY).engine


REQUESTS: list[tuple[DecodingConfig, PredictionOptions, str]] = [
    (SampleConfig(), BARE, "decoding.kind: 'sample' is done by torch alone"),
    (ExhaustiveConfig(max_length=2), BARE, "decoding.kind: 'exhaustive'"),
    (GreedyConfig(min_length=2), BARE, "decoding.min_length"),
    (GreedyConfig(no_repeat_ngram=3), BARE, "decoding.no_repeat_ngram"),
    (BeamConfig(width=9), BARE, "a beam of 9 needs a vocabulary of 18 or more, not 16"),
    (
        BeamConfig(width=4, finished=2),
        PredictionOptions(3, attention=False),
        "decoding.finished: 2 leaves",
    ),
    (GreedyConfig(), PredictionOptions(), "attention: where all layers and heads looked"),
    (
        GreedyConfig(),
        PredictionOptions(attention=False, prefixes=["", "b"]),
        "prefixes: it does not count",
    ),
]


@pytest.mark.parametrize(("decoding", "wish", "words"), REQUESTS, ids=lambda each: str(each)[:20])
def test_a_request_that_it_cannot_answer_goes_to_torch_and_says_why(
    folder: Path, decoding: DecodingConfig, wish: PredictionOptions, words: str
) -> None:
    texts = ["abc", "bl"]
    ours = load(folder, engine="torch").predict(texts, wish, decoding=decoding)
    run = load(folder)
    choice = run.choose_engine(wish, decoding=decoding)
    assert choice.engine is None
    assert words in choice.note
    again = run.predict(texts, wish, decoding=decoding)
    assert [[one.text for one in each] for each in again] == [
        [one.text for one in each] for each in ours
    ]
    with pytest.raises(ConfigError, match="the engine 'ctranslate2' cannot answer this") as caught:
        load(folder, engine="ctranslate2").predict(texts, wish, decoding=decoding)
    assert words in str(caught.value)


def test_every_reason_against_a_request_is_given_at_once(folder: Path) -> None:
    decoding = SampleConfig(min_length=1, no_repeat_ngram=2)
    with pytest.raises(ConfigError) as caught:
        load(folder, engine="ctranslate2").predict(
            ["a"], PredictionOptions(prefixes=["b"]), decoding=decoding
        )
    assert len(str(caught.value).splitlines()) == 1 + 5 + 1


def test_a_vocabulary_of_words_stays_on_torch_unless_the_unknown_is_allowed(
    tmp_path: Path,
) -> None:
    words = "text.tokenizer={kind='words'}"
    train(recipe(*SIDES, *LETTERS, words, "training.steps=4"), tmp_path / "words")
    run = load(tmp_path / "words")
    assert "decoding.allow_unknown" in run.choose_engine(TEXT_ONLY).note
    allowed = BeamConfig(width=3, allow_unknown=True)
    assert run.choose_engine(TEXT_ONLY, decoding=allowed).engine is not None


def test_attention_is_left_out_where_the_engine_was_named(folder: Path) -> None:
    quick = load(folder, engine="ctranslate2")
    assert quick.translate(["abc"])[0].attention is None
    assert quick.translate_n_best(["abc"], 2)[0][1].attention is None
    with pytest.raises(ConfigError, match="attention"):
        quick.translate(["abc"], attention=True)
    assert load(folder).translate(["abc"])[0].attention is not None


def test_evaluation_is_torchs_unless_told_otherwise(folder: Path) -> None:
    plain, quick = load(folder).evaluate(), load(folder, engine="ctranslate2").evaluate()
    assert plain.to_json()["engine"] == "torch"
    assert quick.to_json()["engine"] == load(folder).choose_engine(TEXT_ONLY).name
    assert len(quick.outputs) == len(plain.outputs)


def test_a_recurrent_run_says_why_it_stays(tmp_path: Path) -> None:
    train(recipe("training.steps=4"), tmp_path / "plain")
    run: Run = load(tmp_path / "plain")
    assert "model.encoder is recurrent" in run.choose_engine(TEXT_ONLY).note
    with pytest.raises(ConfigError, match=r"model\.encoder is recurrent[\s\S]*model\.decoder is"):
        load(tmp_path / "plain", engine="ctranslate2").translate(["a"])


def test_an_engine_that_does_not_exist_is_named(folder: Path) -> None:
    with pytest.raises(
        ConfigError, match="no engine 'fast'; there are auto, torch, compiled, ctranslate2"
    ):
        load(folder, engine="fast")  # type: ignore[arg-type]
