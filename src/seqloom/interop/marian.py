"""Reads Marian models in the format of Hugging Face, such as the OPUS-MT models."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seqloom.config.schema.corpora import ImportedConfig
from seqloom.config.schema.model import ModelConfig
from seqloom.core.errors import DataError
from seqloom.interop.foreign_model import ForeignModel, select_rows
from seqloom.interop.huggingface_files import (
    CONFIG,
    check_files,
    read_json,
    read_json_if_present,
    read_weights,
)
from seqloom.interop.huggingface_model import (
    NEVER,
    Embeddings,
    ModelSettings,
    decoding_settings,
    layer_weights,
)
from seqloom.interop.sentencepiece_files import read_sentencepiece
from seqloom.text.imported import ImportedRules, ImportedTokenizer
from seqloom.text.preprocessing import Tags
from seqloom.text.vocabulary import SPECIAL_TOKENS, START

POSITIONS = {"kind": "sinusoidal", "frequencies": "vaswani", "layout": "halves"}
SPECIAL = ("</s>", "<unk>", "<pad>")


def read_marian(folder: Path) -> ForeignModel:
    """Read a folder with a MarianMTModel and its tokenizer."""
    settings = ModelSettings(folder / CONFIG, read_json(folder / CONFIG))
    settings.check()
    tokenizer_settings = read_json_if_present(folder / "tokenizer_config.json")
    is_separate = bool(tokenizer_settings.get("separate_vocabs"))
    tables = ["vocab.json", *(["target_vocab.json"] if is_separate else [])]
    check_files(folder, [*tables, "source.spm", "target.spm"])
    weights = read_weights(folder)
    embeddings = Embeddings.find(weights, folder)
    source_names = read_table(folder / tables[0], len(embeddings.encoder))
    target_names = read_table(folder / tables[-1], len(embeddings.decoder))
    start = settings.number("decoder_start_token_id")
    source_rows = marian_rows(source_names, folder / tables[0], start=None)
    target_rows = marian_rows(target_names, folder / tables[-1], start)
    named = embeddings.named(source_rows, target_rows)
    starts_with_zero = not embeddings.decoder[start].any()
    bias = _output_bias(weights, len(embeddings.decoder))
    named["decoder.readout.output.bias"] = add_start_bias(bias, target_rows)
    languages = () if is_separate else _language_tags(source_names)
    model = ModelConfig.model_validate(
        {
            "encoder": settings.layers("encoder", "post", POSITIONS),
            "decoder": {
                **settings.layers("decoder", "post", POSITIONS),
                "start": "zero" if starts_with_zero else "learned",
            },
            "tie": embeddings.tie,
        }
    )
    return ForeignModel(
        path=folder,
        kind="Marian (Hugging Face)",
        model=model,
        source=marian_tokenizer(folder / "source.spm", source_names, source_rows, languages),
        target=marian_tokenizer(folder / "target.spm", target_names, target_rows, languages),
        weights={**layer_weights(weights), **named},
        data=ImportedConfig(
            source=_language(tokenizer_settings, "source_lang"),
            target=None if languages else _language(tokenizer_settings, "target_lang"),
            tags=languages,
        ),
        decoding=decoding_settings(folder),
    )


def read_table(path: Path, rows: int) -> list[str]:
    """Read a vocabulary (vocab.json). Returns its pieces in the order of their ids.

    rows: number of rows of the embedding matrix, which must equal the number of pieces
    """
    table = read_json(path)
    ids = list(table.values())
    if sorted(map(str, ids)) != sorted(map(str, range(len(ids)))) or not all(
        isinstance(id_, int) for id_ in ids
    ):
        raise DataError(
            f"{path}: the token ids must be 0, 1, 2, … without gaps. Download it again."
        )
    if len(ids) != rows:
        raise DataError(
            f"{path}: has {len(ids):,} pieces, but the embedding matrix has {rows:,} rows. The "
            "files belong to different models. Download all files of the model again."
        )
    return sorted(table, key=lambda piece: table[piece])


def marian_rows(names: Sequence[str], path: Path, start: int | None) -> list[int]:
    """Return, for each token id of seqloom, the row of its vector in a Marian embedding matrix.

    Marian has no START token, so START gets the row of another token.

    names: the pieces of Marian in the order of their ids
    path:  the vocabulary file, for error messages
    start: id of the token with which the Marian decoder starts. START gets the row of this token.
           None for the encoder: START gets the row of <pad>
    """
    missing = [name for name in SPECIAL if name not in names]
    if missing:
        raise DataError(
            f"{path}: has no {', '.join(missing)}, so this is not the vocabulary of a Marian model. "
            "Download all files of the model again."
        )
    if start is not None and start >= len(names):
        raise DataError(
            f"{path}: decoder_start_token_id is {start}, but there are {len(names)} pieces. "
            "Download all files of the model again."
        )
    end, unknown, pad = (names.index(name) for name in SPECIAL)
    others = [id_ for id_ in range(len(names)) if id_ not in (end, unknown, pad)]
    return [pad, pad if start is None else start, end, unknown, *others]


def add_start_bias(bias: Tensor, rows: Sequence[int]) -> Tensor:
    """Reorder the bias of the output layer: from the token ids of Marian to those of seqloom.

    Marian has no START token. START gets a bias so low that its probability is 0.

    rows: for each token id of seqloom, the id in Marian
    """
    reordered = select_rows(bias, rows)
    reordered[START] = NEVER
    return reordered


def _output_bias(weights: Mapping[str, Tensor], count: int) -> Tensor:
    bias = weights.get("final_logits_bias", torch.zeros(1, count)).flatten()
    if len(bias) != count:
        raise DataError(
            f"final_logits_bias has {len(bias):,} entries, but the embedding matrix has {count:,} "
            "rows. Download all files of the model again."
        )
    return bias


def marian_tokenizer(
    path: Path, names: Sequence[str], rows: Sequence[int], languages: Sequence[str]
) -> ImportedTokenizer:
    """Build a tokenizer that splits text as the MarianTokenizer of transformers does.

    One difference: MarianTokenizer normalises punctuation if the package sacremoses is installed.
    The tokenizer of seqloom never does.

    path:      the sentencepiece model
    names:     the pieces of Marian in the order of their ids
    rows:      for each token id of seqloom, the id in Marian
    languages: the language tags
    """
    pieces = [*SPECIAL_TOKENS, *(names[row] for row in rows[len(SPECIAL_TOKENS) :])]
    # Marian has no START, so the string <s> is ordinary text. It may be a piece of its own.
    pieces[START] = "<s>" if "<s>" not in names else "<start>"
    rules = ImportedRules(special=SPECIAL, leading_tag=True)
    return ImportedTokenizer(read_sentencepiece(path), pieces, Tags(languages), rules)


def _language_tags(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name.startswith(">>") and name.endswith("<<"))


def _language(settings: Mapping[str, Any], name: str) -> str | None:
    value = settings.get(name)
    return value if isinstance(value, str) and value else None
