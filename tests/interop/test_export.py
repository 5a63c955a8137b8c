"""Exported models compute the same as their run, in transformers and in CTranslate2."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from comparison import (
    BEAM,
    EARLY_STOPPING,
    MAX_LENGTH,
    Output,
    assert_equal_outputs,
    generate,
)
from huggingface_models import load_marian_tokenizer, load_model, sentences

from seqloom.config.schema.corpora import BundledConfig
from seqloom.config.schema.text import Normalization
from seqloom.core.errors import ConfigError, StorageError
from seqloom.data.example import Example
from seqloom.data.modalities.text import TextModality
from seqloom.data.readers.bundled import read_bundled
from seqloom.inference.run import Run, load
from seqloom.interop import marian_export, verification_texts
from seqloom.interop.exporter import EXPORTERS, ExportFormat, export_run
from seqloom.interop.importer import import_model
from seqloom.interop.model_card import model_card
from seqloom.text.preprocessing import Preprocessing, Tags
from seqloom.text.subwords import SubwordTokenizer
from support.tiny_runs import TRANSFORMER, tiny_config

TEXTS = sentences("source")[:200]
every_format = pytest.mark.parametrize("to", EXPORTERS)


@pytest.fixture(scope="module")
def run(exportable_run: Path) -> Run:
    return load(exportable_run, [f"decoding.max_length={MAX_LENGTH}"], engine="torch")


@pytest.fixture(scope="module")
def folders(run: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("exported")
    for name in EXPORTERS:
        export_run(run, name, folder / name, license_="apache-2.0")
    return {name: folder / name for name in EXPORTERS}


def test_transformers_has_the_same_outputs(run: Run, folders: dict[str, Path]) -> None:
    """transformers searches with the exported settings, and with greedy search."""
    folder = folders["huggingface"]
    model, tokenizer = load_model(folder), load_marian_tokenizer(folder)
    assert_equal_outputs(run, generate(model, tokenizer, TEXTS), TEXTS)
    assert_equal_outputs(run, generate(model, tokenizer, TEXTS, num_beams=1), TEXTS, width=1)


@pytest.mark.long
def test_transformers_has_the_same_outputs_for_500_test_sentences(
    run: Run, folders: dict[str, Path]
) -> None:
    folder = folders["huggingface"]
    corpus = BundledConfig(source="de", target="en")
    texts = [example.source for example in islice(read_bundled(corpus, "test"), 500)]
    model, tokenizer = load_model(folder), load_marian_tokenizer(folder)
    assert len(texts) == 500
    for stopping, early_stopping in EARLY_STOPPING.items():
        expected = generate(model, tokenizer, texts, early_stopping=early_stopping)
        assert_equal_outputs(run, expected, texts, stopping=stopping)


@pytest.mark.filterwarnings("ignore:Recommended")  # MarianTokenizer recommends sacremoses
@pytest.mark.parametrize("beams", [1, 5])
def test_the_folder_converted_for_ctranslate2_has_the_same_outputs(
    beams: int, run: Run, folders: dict[str, Path], tmp_path: Path
) -> None:
    from ctranslate2 import Translator
    from ctranslate2.converters import TransformersConverter

    folder = folders["huggingface"]
    TransformersConverter(str(folder)).convert(str(tmp_path / "converted"))
    tokenizer = load_marian_tokenizer(folder)
    translator = Translator(str(tmp_path / "converted"), compute_type="float32")
    sources = [tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"]) for text in TEXTS]
    results = translator.translate_batch(
        sources,
        beam_size=beams,
        min_decoding_length=0,
        max_decoding_length=MAX_LENGTH,
        disable_unk=True,
    )
    outputs = [
        Output(
            tokenizer.decode(
                tokenizer.convert_tokens_to_ids(result.hypotheses[0]), skip_special_tokens=True
            )
        )
        for result in results
    ]
    assert_equal_outputs(run, outputs, TEXTS, width=beams)


@pytest.mark.parametrize("beams", [1, 5])
def test_ctranslate2_has_the_same_outputs(beams: int, run: Run, folders: dict[str, Path]) -> None:
    import sentencepiece
    from ctranslate2 import Translator

    folder = folders["ctranslate2"]
    source, target = (
        sentencepiece.SentencePieceProcessor(str(folder / name))
        for name in ("source.spm", "target.spm")
    )
    results = Translator(str(folder), compute_type="float32").translate_batch(
        [source.encode(text, out_type=str) for text in TEXTS],
        beam_size=beams,
        min_decoding_length=0,
        max_decoding_length=MAX_LENGTH,
        disable_unk=True,
    )
    outputs = [Output(target.decode(result.hypotheses[0]).strip()) for result in results]
    assert_equal_outputs(run, outputs, TEXTS, width=beams)


def test_an_exported_model_can_be_imported_again(
    run: Run, folders: dict[str, Path], tmp_path: Path
) -> None:
    import_model(folders["huggingface"], tmp_path / "again")
    again = load(tmp_path / "again", engine="torch")
    ours, theirs = (
        each.translate(TEXTS[:40], decoding=BEAM, attention=False, split=False, pass_through=False)
        for each in (run, again)
    )
    assert [output.text for output in ours] == [output.text for output in theirs]


@every_format
def test_the_model_card_names_licence_data_and_use(
    to: ExportFormat, folders: dict[str, Path]
) -> None:
    card = (folders[to] / "README.md").read_text(encoding="utf-8")
    header, _, body = card.removeprefix("---\n").partition("---\n")
    assert "license: apache-2.0" in header.splitlines()
    assert "pipeline_tag: translation" in header.splitlines()
    assert "tsv pairs.tsv" in body
    assert "no stored scores" in body
    assert "compared on 50 sentences" in body


def test_the_model_card_has_the_scores_of_the_stored_report(
    run: Run, exportable_run: Path, tmp_path: Path
) -> None:
    report = run.evaluate("test")
    path = report.save(exportable_run)
    try:
        export_run(run, "ctranslate2", tmp_path / "out")
    finally:
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    bleu = report.scores[0]
    assert bleu.signature
    assert f"| {bleu.value:.4g} | {bleu.signature} |" in card
    assert "license:" not in card


def test_search_settings_are_exported(folders: dict[str, Path]) -> None:
    settings = json.loads((folders["huggingface"] / "generation_config.json").read_bytes())
    assert settings["num_beams"] == 5
    assert settings["early_stopping"] is True
    assert settings["max_length"] == MAX_LENGTH + 1
    assert settings["suppress_tokens"] == [1]


@pytest.fixture(scope="module")
def other_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A Transformer over characters with the default settings."""
    import seqloom

    folder = tmp_path_factory.mktemp("other") / "run"
    seqloom.train(tiny_config(*TRANSFORMER, "training.steps=4"), folder)
    return load(folder, engine="torch")


def test_every_setting_that_prevents_an_export_is_listed(other_run: Run, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="this run cannot be exported to") as caught:
        export_run(other_run, "huggingface", tmp_path / "out")
    message = str(caught.value)
    for setting in (
        "text.shared",
        "model.tie",
        "model.encoder.norm",
        "model.decoder.norm",
        "model.encoder.positions",
        "model.decoder.start",
        "model.decoder.special_outputs",
        "text.tokenizer.kind",
        'preset = "exportable"',
    ):
        assert setting in message
    assert not (tmp_path / "out").exists()


REFUSED = {
    "model.encoder.norm='pre'": "model.encoder.norm",
    "model.decoder.start='learned'": "model.decoder.start",
    "model.decoder.special_outputs=true": "model.decoder.special_outputs",
    "model.decoder.positions={kind='learned'}": "model.decoder.positions",
    "model.encoder.remove_residual=1": "model.encoder.remove_residual",
    "model.decoder.attention.score.scale='one'": "model.decoder.attention.score",
    "model.encoder.attention.heads=2": "heads: must be equal",
    "model.tie='output'": "model.tie",
    "task.tag_side='target'": "task.tag_side",
    "model.encoder={kind='recurrent', width=32}": "model.encoder.kind",
}


@pytest.mark.parametrize("setting", REFUSED)
def test_a_setting_that_marian_does_not_have_is_refused(setting: str, run: Run) -> None:
    from seqloom.config.loading.loader import load_run_recipe
    from seqloom.interop.marian_rules import marian_reasons

    config = load_run_recipe(run.folder / "config.toml", [setting]).config
    tokenizer = run.task.target_tokenizer
    reasons = marian_reasons(config, tokenizer, tokenizer)
    assert any(REFUSED[setting] in reason for reason in reasons), reasons


def test_lowercasing_is_refused(run: Run) -> None:
    from seqloom.interop.text_rules import tokenizer_reasons

    tokenizer = run.task.target_tokenizer
    assert isinstance(tokenizer, SubwordTokenizer)
    lowercase = SubwordTokenizer(tokenizer.model, Preprocessing(lowercase=True))
    assert any("text.lowercase" in reason for reason in tokenizer_reasons(lowercase, lowercase))
    assert list(tokenizer_reasons(tokenizer, tokenizer)) == []


@pytest.mark.parametrize("forms", [("nfc", "none"), ("none", "nfc")])
def test_verification_texts_have_the_unicode_form_of_the_source(
    forms: tuple[Normalization, Normalization], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = run.task.target_tokenizer
    assert isinstance(tokenizer, SubwordTokenizer)
    source, target = (
        SubwordTokenizer(tokenizer.model, Preprocessing(Tags((), form))) for form in forms
    )
    monkeypatch.setattr(run.task, "modality", TextModality(source))
    monkeypatch.setattr(run.task, "target_tokenizer", target)
    decomposed = "scho\u0308n"
    examples = [Example(decomposed, "fine", ("fine",), "pairs.tsv:1")]
    monkeypatch.setattr(verification_texts, "read_split", lambda *_: iter(examples))
    expected = "sch\u00f6n" if forms[0] == "nfc" else decomposed
    assert verification_texts.verification_texts(run) == [expected]
    card = model_card(run, "transformers", "usage", "compared", None)
    assert ("seqloom converts texts to the Unicode form NFC" in card) == (forms[0] == "nfc")


def test_a_recurrent_run_is_refused_by_every_format(run: Run, tmp_path: Path) -> None:
    import seqloom

    seqloom.train(tiny_config("training.steps=2"), tmp_path / "run")
    recurrent = load(tmp_path / "run", engine="torch")
    for name in EXPORTERS:
        with pytest.raises(ConfigError, match=r"model\.encoder"):
            export_run(recurrent, name, tmp_path / "out")


@every_format
def test_an_existing_folder_is_kept(to: ExportFormat, run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match="already exists"):
        export_run(run, to, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_wrong_export_is_detected_and_leaves_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    correct = marian_export._weights

    def wrong_weights(*arguments: Any) -> Any:
        weights = correct(*arguments)
        name = "model.encoder.layers.0.fc1.bias"
        return {**weights, name: weights[name] + 0.01}

    monkeypatch.setattr(marian_export, "_weights", wrong_weights)
    with pytest.raises(StorageError, match="the logits of the two models differ by up to"):
        export_run(run, "huggingface", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
