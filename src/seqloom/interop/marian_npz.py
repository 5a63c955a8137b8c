"""Reads models in the format of the Marian toolkit: an .npz file, YAML vocabularies and
sentencepiece models, as OPUS-MT publishes them."""

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqloom.config.schema.corpora import ImportedConfig
from seqloom.config.schema.decoding import BeamConfig
from seqloom.config.schema.model import ModelConfig
from seqloom.core.errors import ConfigError, DataError, NotFoundError, StorageError
from seqloom.core.extras import import_optional
from seqloom.interop.foreign_model import ForeignModel
from seqloom.interop.huggingface_files import check_files, read_bytes
from seqloom.interop.marian import POSITIONS, marian_tokenizer
from seqloom.text.vocabulary import SPECIAL_TOKENS

SETTINGS = "special:model.yml"
DECODER = "decoder.yml"
ACTIVATIONS = {"relu": "relu", "swish": "silu"}
PARTS = {
    "self_{}q": "attention.to_query",
    "self_{}k": "attention.to_key",
    "self_{}v": "attention.to_value",
    "self_{}o": "attention.output_projection",
    "context_{}q": "cross_attention.to_query",
    "context_{}k": "cross_attention.to_key",
    "context_{}v": "cross_attention.to_value",
    "context_{}o": "cross_attention.output_projection",
    "ffn_{}1": "feedforward.widen",
    "ffn_{}2": "feedforward.narrow",
}
"""Linear layers of Marian and of seqloom. {} is W for the matrix and b for the bias."""
NORMS = {
    "self_Wo": "attention_residual.norm",
    "context_Wo": "cross_attention_residual.norm",
    "ffn_ffn": "feedforward_residual.norm",
}
FIRST_ROWS = 2
"""Number of embedding rows that seqloom has and Marian does not have: PAD and START."""

Arrays = Mapping[str, np.ndarray[Any, Any]]


def read_marian_npz(folder: Path) -> ForeignModel:
    """Read a Marian model: a folder with an .npz file, vocabularies, source.spm and target.spm."""
    path = _weights_path(folder)
    arrays = _read_arrays(path)
    settings = _read_settings(path, arrays)
    check_files(folder, ["source.spm", "target.spm"])
    vocabularies = [_read_vocabulary(each) for each in _vocabulary_paths(folder)]
    source_names, target_names = vocabularies[0], vocabularies[-1]
    norm = "pre" if settings["transformer-preprocess"] == "n" else "post"
    embeddings = _embeddings(path, arrays, source_names, target_names)
    weights = {**_layers(arrays, settings), **embeddings}
    tie = _tie(embeddings)
    sides = {side: _side(arrays, settings, side, norm) for side in ("encoder", "decoder")}
    languages = tuple(
        name for name in source_names if name.startswith(">>") and name.endswith("<<")
    )
    return ForeignModel(
        path=path,
        kind="Marian (npz)",
        model=ModelConfig.model_validate(
            {
                "encoder": sides["encoder"],
                "decoder": {**sides["decoder"], "start": "zero", "special_outputs": False},
                "tie": tie,
            }
        ),
        source=_tokenizer(folder / "source.spm", source_names, languages),
        target=_tokenizer(folder / "target.spm", target_names, languages),
        weights=weights,
        data=ImportedConfig(tags=languages),
        decoding=BeamConfig(width=6, length_counts_end=True),  # the beam width of Marian's decoder
    )


def _weights_path(folder: Path) -> Path:
    paths = sorted(folder.glob("*.npz"))
    if len(paths) != 1:
        found = ", ".join(path.name for path in paths) or "none"
        raise NotFoundError(
            f"{folder}: must contain exactly one .npz file. Found: {found}. Keep the one to import."
        )
    return paths[0]


def _read_arrays(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    try:
        # numpy does not close a file that it opened itself if the file is damaged.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise StorageError(
            f"{path}: is damaged or not an .npz file: {error}. Download it again."
        ) from error


def _load_yaml(text: str, path: Path) -> dict[str, Any]:
    """Parse a YAML mapping. Return all scalars as strings.

    Standard YAML rules would read a piece such as `no` as a boolean.
    """
    yaml = import_optional("yaml", "huggingface", "the import of .npz models")
    try:
        content = yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise DataError(f"{path}: is not valid YAML: {error}. Download it again.") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: is not a YAML mapping. Download it again.")
    return content


def _read_settings(path: Path, arrays: Arrays) -> dict[str, Any]:
    if SETTINGS not in arrays:
        raise DataError(
            f"{path}: has no {SETTINGS}, so it is not a model of Marian. Give a folder with a model "
            "that Marian wrote."
        )
    text = arrays[SETTINGS].tobytes().rstrip(b"\0").decode("utf-8", errors="replace")
    settings = _load_yaml(text, path)
    problems = list(_problems(settings, arrays))
    if problems:
        listed = "\n".join(f"  {problem}" for problem in problems)
        raise ConfigError(f"{path}: seqloom cannot import this model:\n{listed}")
    return settings


def _problems(settings: Mapping[str, Any], arrays: Arrays) -> Iterator[str]:
    expected = {
        "type": ("transformer",),
        "transformer-ffn-activation": tuple(ACTIVATIONS),
        "transformer-decoder-autoreg": ("self-attention",),
        "transformer-no-projection": ("false",),
        "transformer-postprocess-emb": ("", "d"),
    }
    for name, values in expected.items():
        if str(settings.get(name, "")) not in values:
            listed = " or ".join(repr(value) for value in values)
            yield f"{name}: must be {listed}, not {settings.get(name)!r}"
    layers = tuple(
        str(settings.get(f"transformer-{name}", ""))
        for name in ("preprocess", "postprocess", "postprocess-top")
    )
    if layers not in (("", "dan", ""), ("n", "da", "n")):
        yield (
            "transformer-preprocess, transformer-postprocess and transformer-postprocess-top: must "
            f"be '', 'dan', '' or 'n', 'da', 'n', not {layers}"
        )
    for name in ("transformer-heads", "enc-depth", "dec-depth"):
        if not str(settings.get(name, "")).isdecimal():
            yield f"{name}: must be a number, not {settings.get(name)!r}"
    if "Wpos" in arrays:
        yield "transformer-train-position-embeddings: learned positions are not supported"


def _vocabulary_paths(folder: Path) -> list[Path]:
    """Return the paths of the vocabularies of source and target; one path if they share a file."""
    if (folder / DECODER).is_file():
        path = folder / DECODER
        listed = _load_yaml(read_bytes(path).decode("utf-8", errors="replace"), path).get("vocabs")
        if isinstance(listed, list) and listed:
            names = [Path(str(name)).name for name in listed]
            check_files(folder, names)
            return [folder / name for name in names]
    paths = sorted(folder.glob("*vocab*.yml"))
    if len(paths) != 1:
        found = ", ".join(path.name for path in paths) or "none"
        raise NotFoundError(
            f"{folder}: must contain a {DECODER} that lists the vocabularies, or exactly one "
            f"*vocab*.yml. Found: {found}. Download all files of the model."
        )
    return paths


def _read_vocabulary(path: Path) -> list[str]:
    table = _load_yaml(read_bytes(path).decode("utf-8", errors="replace"), path)
    ids = {str(id_): str(piece) for piece, id_ in table.items()}
    names = [ids.get(str(index)) for index in range(len(table))]
    if any(name is None for name in names):
        raise DataError(
            f"{path}: the token ids must be 0, 1, 2, … without gaps. Download the file again."
        )
    found = [name for name in names if name is not None]
    if found[:2] != ["</s>", "<unk>"]:
        raise DataError(f"{path}: does not start with </s> and <unk>. Download it again.")
    return found


def _tokenizer(path: Path, names: Sequence[str], languages: Sequence[str]) -> Any:
    # In a Hugging Face folder, <pad> is the last piece. Marian has none.
    padded = [*names, "<pad>"]
    pad = len(names)
    rows = [pad, pad, 0, 1, *range(2, len(names))]
    assert len(rows) == len(names) + len(SPECIAL_TOKENS) - 2
    return marian_tokenizer(path, padded, rows, languages)


def _tensor(array: np.ndarray[Any, Any]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))


def _with_first_rows(matrix: Tensor) -> Tensor:
    """Insert rows of zeros before the first row, for PAD and START. Marian has no such tokens."""
    return torch.cat([matrix.new_zeros(FIRST_ROWS, *matrix.shape[1:]), matrix])


def _embeddings(
    path: Path, arrays: Arrays, source_names: Sequence[str], target_names: Sequence[str]
) -> dict[str, Tensor]:
    encoder = arrays.get("encoder_Wemb", arrays.get("Wemb"))
    decoder = arrays.get("decoder_Wemb", arrays.get("Wemb"))
    if encoder is None or decoder is None or "decoder_ff_logit_out_b" not in arrays:
        raise DataError(f"{path}: has no embeddings or no output bias. Download it again.")
    for names, matrix in ((source_names, encoder), (target_names, decoder)):
        if len(names) != len(matrix):
            raise DataError(
                f"{path}: the vocabulary has {len(names):,} pieces, but the embedding matrix has "
                f"{len(matrix):,} rows. The files belong to different models. Download all files of "
                "the model again."
            )
    if "decoder_ff_logit_out_W" in arrays:
        output = arrays["decoder_ff_logit_out_W"].T
    else:
        output = arrays.get("decoder_ff_logit_out_Wt", decoder)
    return {
        "encoder.embedder.lookup.table.weight": _with_first_rows(_tensor(encoder)),
        "decoder.embedder.lookup.table.weight": _with_first_rows(_tensor(decoder)),
        "decoder.readout.output.weight": _with_first_rows(_tensor(output)),
        "decoder.readout.output.bias": _with_first_rows(
            _tensor(arrays["decoder_ff_logit_out_b"].reshape(-1))
        ),
    }


def _tie(embeddings: Mapping[str, Tensor]) -> str:
    encoder = embeddings["encoder.embedder.lookup.table.weight"]
    decoder = embeddings["decoder.embedder.lookup.table.weight"]
    output = embeddings["decoder.readout.output.weight"]
    if not torch.equal(decoder, output):
        return "none"
    return "all" if torch.equal(encoder, decoder) else "output"


def _layers(arrays: Arrays, settings: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the weights of the layers, renamed from Marian to seqloom.

    Marian counts layers from 1, seqloom from 0.
    """
    weights: dict[str, Tensor] = {}
    for side, depth in (("encoder", "enc-depth"), ("decoder", "dec-depth")):
        for index in range(int(settings[depth])):
            old, new = f"{side}_l{index + 1}", f"{side}.layers.{index}"
            for name, part in PARTS.items():
                matrix, bias = f"{old}_{name.format('W')}", f"{old}_{name.format('b')}"
                if matrix in arrays and bias in arrays:
                    weights[f"{new}.{part}.weight"] = _tensor(arrays[matrix].T)
                    weights[f"{new}.{part}.bias"] = _tensor(arrays[bias].reshape(-1))
            for name, part in NORMS.items():
                weights |= _norm(arrays, f"{old}_{name}", f"{new}.{part}")
        weights |= _norm(arrays, f"{side}_top", f"{side}.norm")
    return weights


def _norm(arrays: Arrays, old: str, new: str) -> dict[str, Tensor]:
    for suffix in ("_pre", ""):
        scale, bias = f"{old}_ln_scale{suffix}", f"{old}_ln_bias{suffix}"
        if scale in arrays and bias in arrays:
            return {
                f"{new}.weight": _tensor(arrays[scale].reshape(-1)),
                f"{new}.bias": _tensor(arrays[bias].reshape(-1)),
            }
    return {}


def _side(arrays: Arrays, settings: Mapping[str, Any], side: str, norm: str) -> dict[str, Any]:
    inner = arrays.get(f"{side}_l1_ffn_W1")
    if inner is None:
        raise DataError(f"{side}_l1_ffn_W1 is missing in the .npz file. Download it again.")
    width, feedforward = inner.shape
    return {
        "kind": "transformer",
        "width": int(width),
        "layers": int(settings["enc-depth" if side == "encoder" else "dec-depth"]),
        "feedforward": int(feedforward),
        "activation": ACTIVATIONS[settings["transformer-ffn-activation"]],
        "norm": norm,
        "attention": {
            "kind": "attention",
            "score": {"kind": "dot", "scale": "sqrt"},
            "projection": "linear",
            "values": "learned",
            "heads": int(settings["transformer-heads"]),
            "output_projection": True,
        },
        "positions": POSITIONS,
    }
