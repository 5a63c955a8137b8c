"""An imported Marian model has the tokens, logits and outputs of the original model."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from comparison import (
    BEAM,
    EARLY_STOPPING,
    GREEDY,
    MAX_LENGTH,
    assert_equal_outputs,
    generate,
    logits,
)
from huggingface_models import (
    HOSTILE,
    LANGUAGES,
    load_marian_tokenizer,
    load_model,
    sentences,
    write_marian,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.core.errors import ConfigError, DataError
from seqloom.inference.run import load
from seqloom.interop.huggingface_model import decoding_settings
from seqloom.interop.importer import import_model
from seqloom.interop.marian import marian_rows
from seqloom.text.imported import ImportedTokenizer
from seqloom.text.vocabulary import END, START, UNKNOWN
from support.disk_recorder import recorded_disk

SOURCES = sentences("source")[:220]


@pytest.fixture(scope="module")
def original(marian: Path) -> Any:
    return load_model(marian)


def rows_of(folder: Path) -> list[int]:
    """For each id of seqloom, the id of the original model."""
    table = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    names = sorted(table, key=lambda name: table[name])
    return marian_rows(names, folder, start=len(names) - 1)


@pytest.mark.parametrize("name", ["marian", "multilingual_marian"])
def test_tokens_are_those_of_the_original_tokenizer(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    folder = request.getfixturevalue(name)
    import_model(folder, tmp_path / "run")
    task = load(tmp_path / "run", engine="torch").task
    original, rows = load_marian_tokenizer(folder), rows_of(folder)
    assert isinstance(task.source_tokenizer, ImportedTokenizer)
    for text in [*SOURCES, *sentences("target")[:200], *HOSTILE]:
        ids = [rows[id_] for id_ in task.source_tokenizer.encode(text)]
        assert ids == original(text)["input_ids"][:-1], text
        target_ids = [rows[id_] for id_ in task.target_tokenizer.encode(text)]
        assert target_ids == original(text_target=text)["input_ids"][:-1], text


@pytest.fixture(scope="module")
def tokenizers(multilingual_marian: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    run = tmp_path_factory.mktemp("tokenizers") / "run"
    import_model(multilingual_marian, run)
    tokenizer = load(run, engine="torch").task.source_tokenizer
    return tokenizer, load_marian_tokenizer(multilingual_marian), rows_of(multilingual_marian)


fragments = st.sampled_from([*LANGUAGES, "</s>", "<unk>", "<pad>", ">>", "<<", " ", "\t", "Haus"])
any_text = st.lists(fragments | st.text(max_size=6)).map("".join)


@settings(max_examples=150, deadline=None)
@given(text=any_text)
def test_any_text_has_the_tokens_of_the_original_tokenizer(tokenizers: Any, text: str) -> None:
    ours, original, rows = tokenizers
    assert [rows[id_] for id_ in ours.encode(text)] == original(text)["input_ids"][:-1]


def test_decoded_text_is_that_of_the_original_tokenizer(tokenizers: Any) -> None:
    ours, original, rows = tokenizers
    for text in SOURCES:
        ids = ours.encode(text)
        expected = original.decode([rows[id_] for id_ in ids], skip_special_tokens=True)
        assert ours.decode([id_ for id_ in ids if id_ != UNKNOWN]) == expected


def test_each_token_belongs_to_a_word_of_the_decoded_text(tokenizers: Any) -> None:
    ours, _, _ = tokenizers
    for text in SOURCES:
        ids = ours.encode(text)
        assert max(ours.word_of(ids)) == len(ours.decode(ids).split()) - 1


def test_unknown_pieces_are_listed(tokenizers: Any) -> None:
    ours, _, _ = tokenizers
    assert ours.unknown("日本語")
    assert ours.unknown("Das ist gut.") == []


def test_logits_are_those_of_the_original_model(
    marian: Path, marian_run: Path, original: Any
) -> None:
    run, rows = load(marian_run, engine="torch"), rows_of(marian)
    tokenizer = run.task.source_tokenizer
    assert tokenizer is not None
    for source, target in zip(SOURCES[:20], sentences("target")[:20], strict=True):
        source_ids = [*tokenizer.encode(source), END]
        inputs = [START, *run.task.target_tokenizer.encode(target)]
        with torch.inference_mode():
            expected = original(
                input_ids=torch.tensor([[rows[id_] for id_ in source_ids]]),
                decoder_input_ids=torch.tensor([[rows[id_] for id_ in inputs]]),
            ).logits[0]
        ours = logits(run, source_ids, inputs)
        kept = [id_ for id_ in range(len(rows)) if id_ != START]
        torch.testing.assert_close(
            ours[:, kept], expected[:, [rows[id_] for id_ in kept]], atol=1e-4, rtol=0
        )
        # The normaliser contains the same tokens, so the probabilities are equal, too.
        torch.testing.assert_close(
            ours.log_softmax(-1)[:, END], expected.log_softmax(-1)[:, rows[END]], atol=1e-4, rtol=0
        )


def test_outputs_are_those_of_the_original_model(
    marian: Path, marian_run: Path, original: Any
) -> None:
    """Both search with the settings of generation_config.json."""
    expected = generate(original, load_marian_tokenizer(marian), SOURCES)
    assert_equal_outputs(load(marian_run, engine="torch"), expected, SOURCES)


@pytest.mark.parametrize("stopping", EARLY_STOPPING)
def test_every_stopping_rule_has_the_outputs_of_the_original_model(
    stopping: str, marian: Path, marian_run: Path, original: Any
) -> None:
    texts = SOURCES if stopping == "count" else SOURCES[:100]
    settings = {"early_stopping": EARLY_STOPPING[stopping], "length_penalty": 0.7}
    expected = generate(original, load_marian_tokenizer(marian), texts, **settings)
    run = load(marian_run, engine="torch")
    assert_equal_outputs(run, expected, texts, stopping=stopping, length_penalty=0.7)


def test_greedy_outputs_are_those_of_the_original_model(
    marian: Path, marian_run: Path, original: Any
) -> None:
    expected = generate(original, load_marian_tokenizer(marian), SOURCES, num_beams=1)
    assert_equal_outputs(load(marian_run, engine="torch"), expected, SOURCES, width=1)


def test_outputs_that_reach_the_length_limit_are_those_of_the_original_model(
    multilingual_marian: Path, tmp_path: Path
) -> None:
    """The model was not trained, so that hardly any output ends."""
    import_model(multilingual_marian, tmp_path / "run")
    tokenizer, texts = load_marian_tokenizer(multilingual_marian), SOURCES[:60]
    tagged = [f">>deu<< {text}" for text in texts]
    expected = generate(load_model(multilingual_marian), tokenizer, tagged)
    assert_equal_outputs(load(tmp_path / "run", engine="torch"), expected, texts, to="deu")


@pytest.mark.parametrize("decoding", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_ctranslate2_has_the_same_outputs_as_torch(decoding: Any, marian_run: Path) -> None:
    settings = ["engine.precision=float32"]
    fast = load(marian_run, settings, engine="ctranslate2")
    expected = load(marian_run, engine="torch").translate(
        SOURCES, decoding=decoding, attention=False
    )
    outputs = fast.translate(SOURCES, decoding=decoding)
    assert [output.text for output in outputs] == [output.text for output in expected]


def test_the_target_language_selects_the_tag(multilingual_marian: Path, tmp_path: Path) -> None:
    import_model(multilingual_marian, tmp_path / "run")
    run = load(tmp_path / "run", engine="torch")
    [german], [french] = (run.translate([SOURCES[0]], to=to) for to in ("deu", "fra"))
    assert german.source_pieces[0] == ">>deu<<"
    assert french.source_pieces[0] == ">>fra<<"


def test_settings_of_the_search_are_imported(marian_run: Path) -> None:
    decoding = load(marian_run, engine="torch").config.decoding
    assert decoding == BEAM.model_copy(update={"stopping": "estimate"})
    assert decoding.max_length == MAX_LENGTH


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({}, {"width": 1, "stopping": "estimate", "max_length": None}),
        ({"num_beams": 4, "early_stopping": True}, {"width": 4, "stopping": "count"}),
        ({"early_stopping": "never", "length_penalty": 0.6}, {"stopping": "bound"}),
        ({"max_length": 200, "max_new_tokens": 50}, {"max_length": 50}),
        ({"min_length": 3, "no_repeat_ngram_size": 2}, {"min_length": 2, "no_repeat_ngram": 2}),
        ({"num_beams": None, "length_penalty": None}, {"width": 1, "length_penalty": 1.0}),
    ],
)
def test_generation_settings_become_settings_of_the_search(
    content: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "generation_config.json").write_text(json.dumps(content))
    decoding = decoding_settings(tmp_path)
    assert {name: getattr(decoding, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"early_stopping": "always"}, 'early_stopping must be true, false or "never"'),
        ({"length_penalty": -1}, "length_penalty: Input should be greater than or equal to 0"),
        ({"num_beams": "many"}, "width: Input should be a valid integer"),
        ({"max_length": "long"}, "invalid literal"),
        ({"min_length": 9, "max_length": 5}, "make max_length at least 9"),
    ],
)
def test_generation_settings_that_seqloom_does_not_have_are_refused(
    content: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (tmp_path / "generation_config.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=message) as caught:
        decoding_settings(tmp_path)
    assert "generation_config.json" in str(caught.value)
    assert "Change the value" in str(caught.value)


def test_a_prefix_with_a_special_token_is_refused(marian_run: Path) -> None:
    run = load(marian_run, engine="torch")
    with pytest.raises(DataError, match="contains the name of a special token"):
        run.translate(["Das ist gut."], prefixes=["It </s>"])


def test_the_server_knows_the_languages(marian_run: Path, multilingual_marian: Path) -> None:
    from seqloom.interop.importer import read_foreign
    from seqloom.serving.api.languages.pairs import recipe_language_pairs

    config = load(marian_run, engine="torch").config
    assert [str(pair) for pair in recipe_language_pairs(config)] == ["de-en"]
    multilingual, _, _ = read_foreign(multilingual_marian).build()
    assert [str(pair) for pair in recipe_language_pairs(multilingual)] == ["de-deu", "de-fra"]


VARIANTS: dict[str, dict[str, Any]] = {
    "separate output layer": {"tie_word_embeddings": False},
    "relu": {"activation_function": "relu"},
    "tanh-gelu": {"activation_function": "gelu_new"},
    "different sides": {
        "encoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_layers": 3,
        "decoder_ffn_dim": 20,
    },
}


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_of_the_model_have_equal_outputs(name: str, tmp_path: Path) -> None:
    folder = write_marian(tmp_path / "model", **VARIANTS[name])
    import_model(folder, tmp_path / "run")
    model = load_model(folder)
    expected = generate(model, load_marian_tokenizer(folder), SOURCES[:50], num_beams=1)
    assert_equal_outputs(load(tmp_path / "run", engine="torch"), expected, SOURCES[:50], width=1)


def test_a_learned_start_embedding_is_imported(marian: Path, tmp_path: Path) -> None:
    import safetensors.torch

    folder = shutil.copytree(marian, tmp_path / "model")
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    weights["model.shared.weight"][-1] = torch.randn(32)
    safetensors.torch.save_file(weights, folder / "model.safetensors", {"format": "pt"})
    import_model(folder, tmp_path / "run")
    model = load_model(folder)
    expected = generate(model, load_marian_tokenizer(folder), SOURCES[:50], num_beams=1)
    run = load(tmp_path / "run", engine="torch")
    assert run.config.model.decoder.start == "learned"  # type: ignore[attr-defined]
    assert_equal_outputs(run, expected, SOURCES[:50], width=1)


def test_weights_in_several_files_are_imported(
    marian: Path, marian_run: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(marian, tmp_path / "model")
    (folder / "model.safetensors").unlink()
    load_model(marian).save_pretrained(folder, max_shard_size="40KB")
    assert (folder / "model.safetensors.index.json").is_file()
    import_model(folder, tmp_path / "run")
    ours, expected = (load(run, engine="torch") for run in (tmp_path / "run", marian_run))
    assert ours.weights_digest == expected.weights_digest


def test_a_power_failure_after_an_import_loses_nothing(marian: Path, tmp_path: Path) -> None:
    with recorded_disk(tmp_path) as disk:
        import_model(marian, tmp_path / "run")
        assert disk.lost(tmp_path / "run", tmp_path) == []
    assert disk.violations == []
