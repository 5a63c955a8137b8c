"""An imported M2M100 or NLLB model has the tokens, logits and outputs of the original model."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from comparison import BEAM, assert_equal_outputs, generate, logits
from huggingface_models import (
    HOSTILE,
    build_nllb_tokenizer,
    load_m2m100_tokenizer,
    load_model,
    sentencepiece_model,
    sentences,
    write_m2m100,
    write_nllb,
)

from seqloom.core.errors import ConfigError, DataError, NotFoundError
from seqloom.inference.run import Run, load
from seqloom.interop.importer import import_model
from seqloom.text.vocabulary import END, PAD, START

SOURCES = sentences("source")[:220]
KINDS = ("nllb", "m2m100")
TARGETS = {"nllb": "eng_Latn", "m2m100": "en"}
LANGUAGE_TEXTS = ["eng_Latn hi", "hi deu_Latn there", "__en__ hi", "<mask> a", "a <mask>", "end "]
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("m2m100")
    return {
        "nllb": write_nllb(folder / "nllb"),
        "m2m100": write_m2m100(folder / "m2m100"),
    }


@pytest.fixture(scope="module")
def runs(folders: dict[str, Path]) -> dict[str, Run]:
    for kind, folder in folders.items():
        import_model(folder, folder.parent / f"{kind}-run")
    return {
        kind: load(folder.parent / f"{kind}-run", engine="torch")
        for kind, folder in folders.items()
    }


@pytest.fixture(scope="module")
def tokenizers(folders: dict[str, Path]) -> dict[str, Any]:
    return {
        "nllb": build_nllb_tokenizer(sentencepiece_model("both", 260, "bpe")),
        "m2m100": load_m2m100_tokenizer(folders["m2m100"]),
    }


def original_ids(ids: list[int]) -> list[int]:
    """PAD and START have each other's id in the original model."""
    return [{PAD: 1, START: 0}.get(id_, id_) for id_ in ids]


@every_kind
def test_tokens_are_those_of_the_original_tokenizer(
    kind: str, runs: dict[str, Run], tokenizers: dict[str, Any]
) -> None:
    tokenizer, original = runs[kind].task.source_tokenizer, tokenizers[kind]
    assert tokenizer is not None
    for text in [*SOURCES, *HOSTILE, *LANGUAGE_TEXTS]:
        ids = original_ids([*tokenizer.encode(text), END])
        assert ids == original(text)["input_ids"], text


@every_kind
def test_the_target_starts_with_its_language(
    kind: str, runs: dict[str, Run], tokenizers: dict[str, Any]
) -> None:
    run = runs[kind]
    for text in sentences("target")[:50]:
        tag = next(tag for tag in run.languages.tags if TARGETS[kind] in tag.strip("_"))
        prepared = run.task.prepare(f"{tag} x")
        ids = [*prepared.prefix, *run.task.target_tokenizer.encode(text), END]
        assert original_ids(ids) == tokenizers[kind](text_target=text)["input_ids"]


@every_kind
def test_logits_are_those_of_the_original_model(
    kind: str, folders: dict[str, Path], runs: dict[str, Run]
) -> None:
    run, original = runs[kind], load_model(folders[kind])
    tokenizer = run.task.source_tokenizer
    assert tokenizer is not None
    order = torch.tensor([1, 0, *range(2, tokenizer.size)])
    for source, target in zip(SOURCES[:20], sentences("target")[:20], strict=True):
        source_ids = [*tokenizer.encode(source), END]
        inputs = run.task.target_tokenizer.encode(target)
        with torch.inference_mode():
            expected = original(
                input_ids=torch.tensor([original_ids(source_ids)]),
                decoder_input_ids=torch.tensor([[2, *original_ids(inputs)]]),
            ).logits[0]
        ours = logits(run, source_ids, [START, *inputs])
        torch.testing.assert_close(ours, expected[:, order], atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({}, {}),
        ({"num_beams": 1}, {"width": 1}),
        ({"early_stopping": True}, {"stopping": "count"}),
    ],
    ids=["as imported", "greedy", "early stopping"],
)
@every_kind
def test_outputs_are_those_of_the_original_model(
    kind: str,
    theirs: dict[str, Any],
    ours: dict[str, Any],
    folders: dict[str, Path],
    runs: dict[str, Run],
    tokenizers: dict[str, Any],
) -> None:
    tokenizer, target = tokenizers[kind], TARGETS[kind]
    token = target if kind == "nllb" else f"__{target}__"
    forced = tokenizer.convert_tokens_to_ids(token)
    expected = generate(
        load_model(folders[kind]),
        tokenizer,
        SOURCES,
        forced_bos_token_id=forced,
        suppress_tokens=[0, 1],
        **theirs,
    )
    # M2M100Tokenizer does not treat its languages as special tokens, so they stay in the text.
    expected = [
        output._replace(text=output.text.removeprefix(token).strip()) for output in expected
    ]
    assert_equal_outputs(runs[kind], expected, SOURCES, to=target, **ours)


@every_kind
def test_ctranslate2_has_the_same_outputs_as_torch(kind: str, runs: dict[str, Run]) -> None:
    run, texts = runs[kind], SOURCES[:20]
    fast = load(run.folder, ["engine.precision=float32"], engine="ctranslate2")
    ours, theirs = (
        each.translate(texts, decoding=BEAM, attention=False, to=TARGETS[kind])
        for each in (run, fast)
    )
    assert [output.text for output in ours] == [output.text for output in theirs]


@every_kind
def test_the_source_language_can_be_chosen(
    kind: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    name = TARGETS[kind]
    import_model(folders[kind], tmp_path / "run", source_language=name)
    tokenizer = load(tmp_path / "run", engine="torch").task.source_tokenizer
    assert tokenizer is not None
    [piece, *_] = tokenizer.pieces(tokenizer.encode("Das ist gut."))
    assert piece.strip("_") == name


def test_an_unknown_source_language_lists_the_languages(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"Did you mean 'fra_Latn'.*deu_Latn, eng_Latn, fra_Latn"):
        import_model(folders["nllb"], tmp_path / "run", source_language="fra_Lat")


def test_a_marian_model_has_no_choice_of_source_language(marian: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Remove --from en"):
        import_model(marian, tmp_path / "run", source_language="en")


def test_languages_are_read_from_the_settings_without_tokenizer_json(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(folders["nllb"], tmp_path / "model")
    (folder / "tokenizer.json").unlink()
    settings = {"additional_special_tokens": ["fra_Latn", "deu_Latn"], "src_lang": "deu_Latn"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    foreign = import_model(folder, tmp_path / "run")
    assert foreign.target.preprocessing.tags.names == ("fra_Latn", "deu_Latn")
    # The ids follow those of the pieces, and <mask> is the last of them.
    assert foreign.target.encode("fra_Latn") == [261]
    assert foreign.target.encode("<mask>") == [263]


def remove_languages(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text("{}")


def remove_model(folder: Path) -> None:
    (folder / "sentencepiece.bpe.model").unlink()


def change_start(folder: Path) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "decoder_start_token_id": 0}))


def add_tokens(folder: Path) -> None:
    path = folder / "tokenizer.json"
    content = json.loads(path.read_bytes())
    content["added_tokens"].append({"id": 999, "content": "xxx_Latn"})
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (remove_languages, DataError, "the tokenizer has no languages"),
        (remove_model, NotFoundError, r"Missing: sentencepiece\.bpe\.model"),
        (change_start, ConfigError, "decoder_start_token_id and eos_token_id must both be 2"),
        (add_tokens, DataError, "has 1,000 pieces, but the embedding matrix has"),
    ],
)
def test_a_folder_that_cannot_be_imported_is_explained(
    change: Any, error: Any, message: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(folders["nllb"], tmp_path / "model")
    change(folder)
    with pytest.raises(error, match=message):
        import_model(folder, tmp_path / "run")
