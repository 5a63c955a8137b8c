"""Small random models of transformers, with sentencepiece models of the bundled sentences."""

import io
import json
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from comparison import MAX_LENGTH

from seqloom.config.schema.corpora import BundledConfig
from seqloom.data.readers.bundled import read_bundled

VOCABULARY = 280
LANGUAGES = (">>deu<<", ">>fra<<")
HOSTILE = [
    "",
    " ",
    "   ",
    "\t",
    "a\tb\nc",
    "  two  spaces  ",
    "😀 emoji 👩‍👩‍👧",
    "e\u0301 and \u0644\u0651 combining",
    "control \x00\x01\x7f characters",
    "zero\u200bwidth \ufeff mark",
    "word " * 400,
    "x" * 1000,
    "</s>",
    "before </s> after",
    "<unk>",
    "a<unk>b",
    "<pad> <s>",
    ">>deu<< Hello",
    ">>deu<<Hello",
    "Hello >>deu<< there",
    ">>xxx<< unknown tag",
    ">>unfinished",
    "</s>>>deu<< x",
    ">> a b << c",
    "＜ｆｕｌｌ　ｗｉｄｔｈ＞",
    "नमस्ते 日本語 текст",
    "▁underline▁",
]


@cache
def sentences(side: str, count: int = 400) -> list[str]:
    """The first bundled sentences in German ("source") or English ("target")."""
    corpus = BundledConfig(source="de", target="en")
    examples = list(islice(read_bundled(corpus, "train"), count))
    return [example.source if side == "source" else example.target for example in examples]


@cache
def sentencepiece_model(
    side: str, size: int, algorithm: str = "unigram", normalisation: str = "nmt_nfkc"
) -> bytes:
    lines = [*sentences("source"), *sentences("target")] if side == "both" else sentences(side)
    return train_sentencepiece(lines, size, algorithm, normalisation)


def train_sentencepiece(
    lines: Iterable[str], size: int, algorithm: str, normalisation: str
) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        model_type=algorithm,
        normalization_rule_name=normalisation,
        minloglevel=4,
    )
    return model.getvalue()


def pieces_of(model: bytes) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(id_) for id_ in range(processor.get_piece_size())]


def randomise(model: torch.nn.Module) -> None:
    """Draw larger weights than the default initialisation, so that logits differ."""
    torch.manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=0.1 if "embed" in name or "shared" in name else 0.18)


def fit(model: Any, tokenizer: Any, steps: int = 100, learning_rate: float = 3e-3) -> None:
    """Learn short pairs, so that most outputs end, and differ."""
    pairs = zip(sentences("source"), sentences("target"), strict=True)
    shortest = sorted(pairs, key=lambda pair: len(pair[0]) + len(pair[1]))[:40]
    batch = tokenizer(
        [source for source, _ in shortest],
        text_target=[target for _, target in shortest],
        return_tensors="pt",
        padding=True,
    )
    labels = batch["labels"].masked_fill(batch["labels"] == tokenizer.pad_token_id, -100)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    model.train()
    for _ in range(steps):
        model(**{**batch, "labels": labels}).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()


def load_model(folder: Path) -> Any:
    """Load a model with transformers."""
    from transformers import AutoModelForSeq2SeqLM

    model: Any = AutoModelForSeq2SeqLM.from_pretrained(folder)
    return model.eval()


def load_marian_tokenizer(folder: Path) -> Any:
    from transformers import MarianTokenizer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends sacremoses
        return MarianTokenizer.from_pretrained(folder)


def write_marian(
    folder: Path, languages: tuple[str, ...] = (), trained: bool = False, **changes: Any
) -> Path:
    """Write a Marian model with random weights and its tokenizer, as `save_pretrained` does.

    trained: train the model for a few steps
    changes: changes of config.json
    """
    from transformers import MarianConfig, MarianMTModel

    folder.mkdir(parents=True, exist_ok=True)
    models = {
        "source.spm": sentencepiece_model("source", 160),
        "target.spm": sentencepiece_model("target", 150),
    }
    pieces = dict.fromkeys(
        piece for model in models.values() for piece in pieces_of(model)[3:]
    )  # without <unk>, <s>, </s>
    names = ["</s>", "<unk>", *pieces, *languages, "<pad>"]
    for name, model_bytes in models.items():
        (folder / name).write_bytes(model_bytes)
    vocabulary = {name: id_ for id_, name in enumerate(names)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    settings = {"source_lang": "de", "target_lang": "en", "tokenizer_class": "MarianTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    pad = len(names) - 1
    config = MarianConfig(
        **{
            "vocab_size": len(names),
            "decoder_vocab_size": len(names),
            "d_model": 32,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 48,
            "decoder_ffn_dim": 48,
            "activation_function": "swish",
            "dropout": 0.0,
            "scale_embedding": True,
            "max_position_embeddings": 512,
            "eos_token_id": 0,
            "bos_token_id": 0,
            "pad_token_id": pad,
            "decoder_start_token_id": pad,
            "forced_eos_token_id": None,
            **changes,
        }
    )
    model = MarianMTModel(config)
    randomise(model)
    if trained:
        fit(model, load_marian_tokenizer(folder))
    with torch.no_grad():
        model.final_logits_bias.normal_(std=0.1)
        model.final_logits_bias[0, pad] = 0
        for embedding in (model.model.encoder.embed_tokens, model.model.decoder.embed_tokens):
            embedding.weight[pad] = 0
    generation = model.generation_config
    generation.bad_words_ids = [[pad]]
    generation.num_beams = 5
    generation.max_length = MAX_LENGTH + 1  # transformers counts the start token
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.save_pretrained(folder)
    return folder


NLLB_LANGUAGES = ("deu_Latn", "eng_Latn", "fra_Latn")


def build_nllb_tokenizer(model: bytes) -> Any:
    """Build a NllbTokenizer. `from_pretrained` would need protobuf to read a sentencepiece model."""
    from transformers import NllbTokenizer
    from transformers.convert_slow_tokenizer import generate_merges

    special = ("<s>", "<pad>", "</s>", "<unk>")
    vocabulary = {name: id_ for id_, name in enumerate(special)}
    vocabulary |= {piece: id_ + 1 for id_, piece in enumerate(pieces_of(model)) if id_ >= 3}
    build: Any = NllbTokenizer
    return build(
        vocab=vocabulary,
        merges=generate_merges(vocabulary, None, skip_tokens=special),
        _spm_precompiled_charsmap=_normalisation_table(model),
        extra_special_tokens=list(NLLB_LANGUAGES),
        src_lang="deu_Latn",
        tgt_lang="eng_Latn",
    )


def _normalisation_table(model: bytes) -> bytes:
    """Return the field normalizer_spec.precompiled_charsmap of a serialised sentencepiece model."""
    [normaliser] = [value for number, value in _fields(model) if number == 3]
    [table] = [value for number, value in _fields(normaliser) if number == 2]
    return table


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the content of each field of a protobuf message."""
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while position < len(data):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            varint()
            continue
        length = {1: 8, 5: 4}.get(kind) or varint()
        yield number, data[position : position + length]
        position += length


def write_m2m100_model(folder: Path, tokenizer: Any, size: int, **changes: Any) -> None:
    """Write an M2M100 model that was trained for a few steps."""
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    config = M2M100Config(
        **{
            "vocab_size": size,
            "d_model": 32,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 48,
            "decoder_ffn_dim": 48,
            "activation_function": "relu",
            "dropout": 0.0,
            "attention_dropout": 0.0,
            "activation_dropout": 0.0,
            "encoder_layerdrop": 0.0,
            "decoder_layerdrop": 0.0,
            "scale_embedding": True,
            "bos_token_id": 0,
            "pad_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 2,
            **changes,
        }
    )
    model = M2M100ForConditionalGeneration(config)
    randomise(model)
    fit(model, tokenizer, steps=60, learning_rate=1e-2)
    model.generation_config.num_beams = 5
    model.generation_config.max_length = MAX_LENGTH + 1
    model.save_pretrained(folder)


def write_nllb(folder: Path, **changes: Any) -> Path:
    """Write an NLLB model and its tokenizer."""
    folder.mkdir(parents=True)
    model = sentencepiece_model("both", 260, "bpe")
    tokenizer = build_nllb_tokenizer(model)
    tokenizer.save_pretrained(folder)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    write_m2m100_model(folder, tokenizer, len(tokenizer) + 2, **changes)
    return folder


def load_m2m100_tokenizer(folder: Path, source: str = "de", target: str = "en") -> Any:
    from transformers import M2M100Tokenizer

    return M2M100Tokenizer.from_pretrained(folder, src_lang=source, tgt_lang=target)


def write_m2m100(folder: Path) -> Path:
    """Write an M2M100 model and its tokenizer."""
    folder.mkdir(parents=True)
    model = sentencepiece_model("both", 260, "bpe")
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    names = ["<s>", "<pad>", "</s>", "<unk>", *pieces_of(model)[3:]]
    vocabulary = {name: id_ for id_, name in enumerate(names)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    settings = {"tokenizer_class": "M2M100Tokenizer", "src_lang": "de", "tgt_lang": "en"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    write_m2m100_model(folder, load_m2m100_tokenizer(folder), len(names) + 100 + 8)
    return folder
