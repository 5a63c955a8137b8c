"""Reads M2M100 and NLLB models in the format of Hugging Face.

Both have the same architecture. M2M100 has a table of pieces (vocab.json). NLLB uses the ids of its
sentencepiece model, plus one. The ids of the language codes follow the ids of the pieces. A source
is the code of its language, the text and </s>. The decoder starts with </s>, and its first output
is forced to be the code of the target language.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece
import torch

from seqloom.config.loading.error_messages import closest_match
from seqloom.config.schema.corpora import ImportedConfig, tag_display_name
from seqloom.config.schema.model import ModelConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.interop.foreign_model import ForeignModel
from seqloom.interop.huggingface_files import (
    CONFIG,
    check_files,
    read_json,
    read_json_if_present,
    read_weights,
)
from seqloom.interop.huggingface_model import (
    Embeddings,
    ModelSettings,
    decoding_settings,
    layer_weights,
)
from seqloom.interop.sentencepiece_files import read_sentencepiece
from seqloom.text.imported import ImportedRules, ImportedTokenizer
from seqloom.text.preprocessing import Tags
from seqloom.text.vocabulary import SPECIAL_TOKENS

MODEL = "sentencepiece.bpe.model"
POSITIONS = {"kind": "sinusoidal", "frequencies": "fairseq", "layout": "halves", "offset": 2}
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
"""The special tokens in the order of their ids."""
ROWS = (1, 0, 2, 3)
"""For PAD, START, END and UNKNOWN, the id in the foreign model."""
# fmt: off
M2M100_LANGUAGES = (
    "af", "am", "ar", "ast", "az", "ba", "be", "bg", "bn", "br", "bs", "ca", "ceb", "cs", "cy", "da", "de",
    "el", "en", "es", "et", "fa", "ff", "fi", "fr", "fy", "ga", "gd", "gl", "gu", "ha", "he", "hi", "hr",
    "ht", "hu", "hy", "id", "ig", "ilo", "is", "it", "ja", "jv", "ka", "kk", "km", "kn", "ko", "lb", "lg",
    "ln", "lo", "lt", "lv", "mg", "mk", "ml", "mn", "mr", "ms", "my", "ne", "nl", "no", "ns", "oc", "or",
    "pa", "pl", "ps", "pt", "ro", "ru", "sd", "si", "sk", "sl", "so", "sq", "sr", "ss", "su", "sv", "sw",
    "ta", "th", "tl", "tn", "tr", "uk", "ur", "uz", "vi", "wo", "xh", "yi", "yo", "zh", "zu",
)
# fmt: on
"""The languages of M2M100 in the order of their ids. The files of the model do not contain them."""


@dataclass(frozen=True)
class M2M100Vocabulary:
    """The vocabulary of an M2M100 or NLLB model.

    names:     the piece of each token id
    languages: the language codes. They are pieces in `names`, too
    rules:     settings of the target tokenizer. The source tokenizer has the same settings, but
               also puts a language code before each source
    """

    names: tuple[str, ...]
    languages: tuple[str, ...]
    rules: ImportedRules


def read_m2m100(folder: Path, source_language: str | None) -> ForeignModel:
    """Read a folder with an M2M100ForConditionalGeneration model and its tokenizer.

    source_language: code of the source language. Default: None, which means the language in
                     tokenizer_config.json, or else English, or else the model's first language
    """
    settings = ModelSettings(folder / CONFIG, read_json(folder / CONFIG))
    settings.check()
    _check_start(settings)
    check_files(folder, [MODEL])
    model_bytes = read_sentencepiece(folder / MODEL)
    weights = read_weights(folder)
    embeddings = Embeddings.find(weights, folder)
    vocabulary = _read_vocabulary(folder, model_bytes, len(embeddings.encoder))
    language = _source_language(folder, vocabulary.languages, source_language)
    rows = [*ROWS, *range(len(ROWS), len(vocabulary.names))]
    pieces = [*SPECIAL_TOKENS, *vocabulary.names[len(ROWS) :]]
    tags = Tags(vocabulary.languages)
    rules = vocabulary.rules
    source_rules = ImportedRules(rules.special, False, (language,), rules.keep_space)
    named = embeddings.named(rows, rows)
    named["decoder.readout.output.bias"] = torch.zeros(len(rows))
    return ForeignModel(
        path=folder,
        kind="M2M100 or NLLB (Hugging Face)",
        model=ModelConfig.model_validate(
            {
                "encoder": settings.layers("encoder", "pre", POSITIONS),
                "decoder": {**settings.layers("decoder", "pre", POSITIONS), "start": "end"},
                "tie": embeddings.tie,
            }
        ),
        source=ImportedTokenizer(model_bytes, pieces, tags, source_rules),
        target=ImportedTokenizer(model_bytes, pieces, tags, rules),
        weights={**layer_weights(weights), **named},
        data=ImportedConfig(source=tag_display_name(language), tags=vocabulary.languages),
        decoding=decoding_settings(folder).model_copy(update={"score_prefix": False}),
        tag_side="target",
    )


def _check_start(settings: ModelSettings) -> None:
    start, end = settings.number("decoder_start_token_id"), settings.number("eos_token_id")
    if start != end or end != SPECIAL.index("</s>"):
        raise ConfigError(
            f"{settings.path}: seqloom cannot import this model: decoder_start_token_id and "
            f"eos_token_id must both be 2, but are {start} and {end}"
        )


def _read_vocabulary(folder: Path, model: bytes, rows: int) -> M2M100Vocabulary:
    tokenizer_settings = read_json_if_present(folder / "tokenizer_config.json")
    if (folder / "vocab.json").is_file():
        table = _m2m100_table(folder, tokenizer_settings)
    else:
        table = _nllb_table(folder, model, tokenizer_settings)
    names, languages, rules = table
    if tuple(names.get(id_) for id_ in range(len(SPECIAL))) != SPECIAL:
        raise DataError(
            f"{folder}: the first pieces are not {', '.join(SPECIAL)}. Download all files of the "
            "model again."
        )
    if max(names) >= rows:
        raise DataError(
            f"{folder}: the tokenizer has {max(names) + 1:,} pieces, but the embedding matrix has "
            f"{rows:,} rows. The files belong to different models. Download all files of the model "
            "again."
        )
    # The matrix has more rows than there are pieces. These rows have no text.
    filled = tuple(names.get(id_, f"<unused-{id_}>") for id_ in range(rows))
    return M2M100Vocabulary(filled, languages, rules)


Table = tuple[dict[int, str], tuple[str, ...], ImportedRules]
"""Pieces by id, languages, and rules."""


def _m2m100_table(folder: Path, settings: Mapping[str, Any]) -> Table:
    pieces = read_json(folder / "vocab.json")
    if not all(isinstance(id_, int) for id_ in pieces.values()):
        raise DataError(f"{folder / 'vocab.json'}: an id is not a number. Download it again.")
    names = {id_: piece for piece, id_ in pieces.items()}
    if sorted(names) != list(range(len(pieces))):
        raise DataError(
            f"{folder / 'vocab.json'}: the token ids must be 0, 1, 2, … without gaps. Download it again."
        )
    languages = tuple(f"__{language}__" for language in M2M100_LANGUAGES)
    names |= {len(pieces) + index: language for index, language in enumerate(languages)}
    special = [name for name in _extra_tokens(folder, settings) if name in languages]
    return names, languages, ImportedRules(special=(*SPECIAL, *special))


def _nllb_table(folder: Path, model: bytes, settings: Mapping[str, Any]) -> Table:
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    count = processor.get_piece_size()
    names = dict(enumerate(SPECIAL))
    # sentencepiece has <unk>, <s> and </s> as 0, 1 and 2. All other ids are one larger here.
    names |= {id_ + 1: processor.id_to_piece(id_) for id_ in range(3, count)}
    added = _added_tokens(folder, settings, first=count + 1)
    names |= added
    extra = [name for _, name in sorted(added.items()) if name not in SPECIAL]
    languages = tuple(name for name in extra if name != "<mask>")
    if not languages:
        raise DataError(
            f"{folder}: the tokenizer has no languages. tokenizer.json or tokenizer_config.json must "
            "list them. Download all files of the model."
        )
    return names, languages, ImportedRules(special=(*SPECIAL, *extra), keep_space=True)


def _added_tokens(folder: Path, settings: Mapping[str, Any], first: int) -> dict[int, str]:
    """Return the tokens that an NLLB model adds to its sentencepiece model, as {id: token}.

    tokenizer.json lists these tokens under "added_tokens". Without this list, they are the language
    codes and <mask>, with the ids `first`, `first` + 1, ...

    first: the first id after the pieces of the sentencepiece model
    """
    content = read_json_if_present(folder / "tokenizer.json").get("added_tokens")
    if isinstance(content, list):
        return {int(token["id"]): str(token["content"]) for token in content}
    languages = _extra_tokens(folder, settings)
    return dict(enumerate((*languages, "<mask>"), start=first)) if languages else {}


def _extra_tokens(folder: Path, settings: Mapping[str, Any]) -> list[str]:
    """Return the additional special tokens, except <mask>, that the tokenizer's settings list."""
    special = read_json_if_present(folder / "special_tokens_map.json")
    for values in (settings, special):
        for key in ("extra_special_tokens", "additional_special_tokens"):
            tokens = values.get(key)
            if isinstance(tokens, list) and tokens:
                return [
                    str(token["content"]) if isinstance(token, dict) else str(token)
                    for token in tokens
                    if token != "<mask>"
                ]
    return []


def _source_language(folder: Path, languages: Sequence[str], given: str | None) -> str:
    """Return the code of the source language, spelled as in the vocabulary.

    languages: all language codes of the vocabulary
    given:     the language that the user wants. None means the language in tokenizer_config.json,
               or else English, or else the first language
    """
    by_name = {tag_display_name(language): language for language in languages}
    if given is not None:
        if given in by_name or given in languages:
            return by_name.get(given, given)
        near = closest_match(given, list(by_name))
        hint = f"Did you mean '{near}'? " if near else ""
        raise ConfigError(
            f"{folder}: the model has no source language '{given}'. {hint}Available: "
            f"{', '.join(by_name)}"
        )
    configured = read_json_if_present(folder / "tokenizer_config.json").get("src_lang")
    for name in (configured, "eng_Latn", "en"):
        if name in by_name:
            return by_name[name]
    return languages[0]
