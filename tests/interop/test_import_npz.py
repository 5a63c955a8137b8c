"""An imported .npz model of Marian computes the same as CTranslate2's own conversion of it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from comparison import BEAM, GREEDY, MAX_LENGTH, Output, assert_equal_outputs
from huggingface_models import sentences

from seqloom.core.errors import ConfigError, DataError, NotFoundError, SeqloomError, StorageError
from seqloom.inference.run import load
from seqloom.interop.importer import import_model

SOURCES = sentences("source")[:100]
NPZ = "opus.transformer.npz"
SETTINGS = {
    "type": "transformer",
    "enc-depth": 2,
    "dec-depth": 2,
    "transformer-heads": 4,
    "transformer-ffn-activation": "swish",
    "transformer-decoder-autoreg": "self-attention",
    "transformer-no-projection": "false",
    "transformer-preprocess": '""',
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-guided-alignment-layer": "last",
}
LINEAR = {
    "self_attn.q_proj": "self_{}q",
    "self_attn.k_proj": "self_{}k",
    "self_attn.v_proj": "self_{}v",
    "self_attn.out_proj": "self_{}o",
    "encoder_attn.q_proj": "context_{}q",
    "encoder_attn.k_proj": "context_{}k",
    "encoder_attn.v_proj": "context_{}v",
    "encoder_attn.out_proj": "context_{}o",
    "fc1": "ffn_{}1",
    "fc2": "ffn_{}2",
}
NORMS = {
    "self_attn_layer_norm": "self_Wo",
    "encoder_attn_layer_norm": "context_Wo",
    "final_layer_norm": "ffn_ffn",
}


def to_npz(marian: Path) -> dict[str, Any]:
    """Convert a Hugging Face model to the arrays of Marian, which has no <pad>."""
    weights = safetensors.numpy.load_file(marian / "model.safetensors")
    arrays: dict[str, Any] = {
        "Wemb": weights.pop("model.shared.weight")[:-1],
        "decoder_ff_logit_out_b": weights.pop("final_logits_bias")[:, :-1],
    }
    for name, array in weights.items():
        _, side, _, index, *parts, kind = name.split(".")
        scope, part = f"{side}_l{int(index) + 1}_", ".".join(parts)
        if part in NORMS:
            suffix = "scale" if kind == "weight" else "bias"
            arrays[f"{scope}{NORMS[part]}_ln_{suffix}"] = array.reshape(1, -1)
        elif kind == "weight":
            arrays[scope + LINEAR[part].format("W")] = array.T
        else:
            arrays[scope + LINEAR[part].format("b")] = array.reshape(1, -1)
    return arrays


def write_npz(folder: Path, arrays: dict[str, Any], **changes: Any) -> None:
    lines = "".join(f"{name}: {value}\n" for name, value in {**SETTINGS, **changes}.items())
    settings = np.frombuffer(lines.encode() + b"\0", dtype=np.int8)
    named: dict[str, Any] = {**arrays, "special:model.yml": settings}
    np.savez(folder / NPZ, **named)


@pytest.fixture(scope="module")
def npz_folder(marian: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("npz")
    for name in ("source.spm", "target.spm"):
        shutil.copy(marian / name, folder / name)
    table = json.loads((marian / "vocab.json").read_bytes())
    del table["<pad>"]
    lines = [f"{json.dumps(piece, ensure_ascii=False)}: {id_}\n" for piece, id_ in table.items()]
    (folder / "opus.vocab.yml").write_text("".join(lines), encoding="utf-8")
    write_npz(folder, to_npz(marian))
    return folder


@pytest.mark.parametrize("beams", [1, 5])
def test_outputs_are_those_of_the_conversion_of_ctranslate2(
    beams: int, npz_folder: Path, tmp_path: Path
) -> None:
    import sentencepiece
    from ctranslate2 import Translator
    from ctranslate2.converters import MarianConverter

    import_model(npz_folder, tmp_path / "run")
    converter = MarianConverter(str(npz_folder / NPZ), [str(npz_folder / "opus.vocab.yml")])
    converter.convert(str(tmp_path / "converted"))
    source, target = (
        sentencepiece.SentencePieceProcessor(str(npz_folder / name))
        for name in ("source.spm", "target.spm")
    )
    results = Translator(str(tmp_path / "converted"), compute_type="float32").translate_batch(
        [source.encode(text, out_type=str) for text in SOURCES],
        beam_size=beams,
        min_decoding_length=0,
        max_decoding_length=MAX_LENGTH,
        disable_unk=True,
    )
    expected = [Output(target.decode(result.hypotheses[0]).strip()) for result in results]
    search = {**BEAM.model_dump(), "width": beams}
    assert_equal_outputs(load(tmp_path / "run", engine="torch"), expected, SOURCES, **search)


def test_the_greedy_outputs_are_those_of_the_hugging_face_model(
    npz_folder: Path, marian_run: Path, tmp_path: Path
) -> None:
    import_model(npz_folder, tmp_path / "run")
    runs = [load(folder, engine="torch") for folder in (tmp_path / "run", marian_run)]
    ours, theirs = (run.translate(SOURCES, decoding=GREEDY, attention=False) for run in runs)
    assert [output.text for output in ours] == [output.text for output in theirs]


def test_the_vocabularies_are_those_of_the_decoder_settings(
    npz_folder: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(npz_folder, tmp_path / "model")
    (folder / "opus.vocab.yml").rename(folder / "pieces.yml")
    (folder / "decoder.yml").write_text("vocabs:\n  - /old/pieces.yml\n  - pieces.yml\n")
    import_model(folder, tmp_path / "run")
    assert (tmp_path / "run" / "config.toml").is_file()


def test_pieces_that_yaml_reads_as_other_types_are_kept(npz_folder: Path) -> None:
    from seqloom.interop.marian_npz import _read_vocabulary

    path = npz_folder / "types.yml"
    path.write_text("</s>: 0\n<unk>: 1\nno: 2\n12: 3\n~: 4\n'null': 5\n")
    assert _read_vocabulary(path) == ["</s>", "<unk>", "no", "12", "~", "null"]
    path.unlink()


def truncate(folder: Path) -> None:
    path = folder / NPZ
    path.write_bytes(path.read_bytes()[:-2000])


def write_pickle(folder: Path) -> None:
    np.savez(folder / NPZ, Wemb=np.array([object()], dtype=object))


def write_vocabulary(text: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / "opus.vocab.yml").write_text(text)

    return change


CASES: dict[str, tuple[Callable[[Path], None], type[SeqloomError], str]] = {
    "truncated": (truncate, StorageError, "is damaged or not an .npz file"),
    "a pickle inside": (write_pickle, StorageError, "is damaged or not an .npz file"),
    "no settings": (
        lambda folder: np.savez(folder / NPZ, Wemb=np.zeros(1)),
        DataError,
        "so it is not a model of Marian. Give a folder with a model that Marian wrote",
    ),
    "two models": (
        lambda folder: (folder / "b.npz").touch(),
        NotFoundError,
        "exactly one .npz file",
    ),
    "no vocabulary": (
        lambda folder: (folder / "opus.vocab.yml").unlink(),
        NotFoundError,
        r"exactly one \*vocab\*\.yml\. Found: none",
    ),
    "no sentencepiece model": (
        lambda folder: (folder / "source.spm").unlink(),
        NotFoundError,
        r"Missing: source\.spm",
    ),
    "vocabulary is not YAML": (write_vocabulary("{"), DataError, "is not valid YAML"),
    "vocabulary is a list": (write_vocabulary("- a\n"), DataError, "is not a YAML mapping"),
    "vocabulary with a gap": (write_vocabulary("a: 0\nb: 2\n"), DataError, "ids must be 0, 1, 2"),
    "vocabulary without END": (write_vocabulary("a: 0\nb: 1\n"), DataError, "does not start with"),
    "another vocabulary": (
        write_vocabulary("</s>: 0\n<unk>: 1\n"),
        DataError,
        "the vocabulary has 2 pieces, but the embedding matrix has",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_folder_that_cannot_be_imported_is_explained(
    name: str, npz_folder: Path, tmp_path: Path
) -> None:
    change, kind, message = CASES[name]
    folder = shutil.copytree(npz_folder, tmp_path / "model")
    change(folder)
    with pytest.raises(kind, match=message):
        import_model(folder, tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_every_unsupported_setting_is_listed(
    marian: Path, npz_folder: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(npz_folder, tmp_path / "model")
    changes = {
        "type": "s2s",
        "transformer-ffn-activation": "gelu",
        "transformer-postprocess": "dn",
        "transformer-heads": "many",
    }
    write_npz(folder, {**to_npz(marian), "Wpos": np.zeros((1, 1))}, **changes)
    with pytest.raises(ConfigError) as caught:
        import_model(folder, tmp_path / "run")
    message = str(caught.value)
    assert all(name in message for name in (*changes, "learned positions"))


def test_a_missing_matrix_is_named(marian: Path, npz_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(npz_folder, tmp_path / "model")
    arrays = to_npz(marian)
    del arrays["decoder_l2_context_Wk"]
    write_npz(folder, arrays)
    with pytest.raises(StorageError, match=r"decoder\.layers\.1\.cross_attention\.to_key\.weight"):
        import_model(folder, tmp_path / "run")
