"""Writes a run in the Marian format of Hugging Face, and compares the result with the run."""

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig
from seqloom.config.schema.transformer import TransformerDecoderConfig, TransformerEncoderConfig
from seqloom.core.batch import Padded
from seqloom.core.errors import StorageError
from seqloom.core.extras import import_optional
from seqloom.inference.run import Run
from seqloom.interop.huggingface_model import ACTIVATIONS, NEVER, PARTS, STOPPING
from seqloom.interop.marian_rules import marian_reasons
from seqloom.text.subwords import SubwordTokenizer
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN

MAX_LENGTH = 512
"""Maximum number of tokens of the exported model, as in OPUS-MT."""
TOLERANCE = 1e-4
"""Maximum difference between logits of the run and of the exported model."""
SCORE_TOLERANCE = 1e-3
OUTPUT_LIMIT = 64
"""Maximum length of the outputs that are compared."""


@dataclass(frozen=True)
class MarianVocabulary:
    """The token ids of a run that is exported in the Marian format.

    rows: for each id of the exported model, the id in the run. The order is </s>, <unk>, all
          pieces, <pad>. Marian has no START; its decoder starts with <pad>
    """

    rows: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, tokenizer: SubwordTokenizer) -> "MarianVocabulary":
        pieces = range(UNKNOWN + 1, tokenizer.size)
        rows = (END, UNKNOWN, *pieces, PAD)
        return cls(rows, tuple(tokenizer.pieces(rows)))

    @property
    def pad(self) -> int:
        return len(self.rows) - 1

    def ids(self, tokens: Sequence[int]) -> list[int]:
        """Convert ids of the run to ids of the exported model. START becomes <pad>."""
        index = {row: id_ for id_, row in enumerate(self.rows)} | {START: self.pad}
        return [index[token] for token in tokens]


def check_marian(run: Run) -> list[str]:
    """List the reasons why the run cannot be exported in the Marian format."""
    return marian_reasons(run.config, run.task.source_tokenizer, run.task.target_tokenizer)


def write_marian(run: Run, folder: Path) -> None:
    """Write model, settings and tokenizer to an existing folder."""
    tokenizer = run.task.target_tokenizer
    assert isinstance(tokenizer, SubwordTokenizer)
    vocabulary = MarianVocabulary.of(tokenizer)
    weights = {
        name: tensor.contiguous().clone() for name, tensor in _weights(run, vocabulary).items()
    }
    safetensors.torch.save_file(weights, folder / "model.safetensors", {"format": "pt"})
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(tokenizer.model)
    files = {
        "config.json": _model_settings(run, vocabulary),
        "generation_config.json": _generation_settings(run.config.decoding, vocabulary),
        "tokenizer_config.json": {
            "tokenizer_class": "MarianTokenizer",
            "separate_vocabs": False,
            "model_max_length": MAX_LENGTH,
            "unk_token": "<unk>",
            "eos_token": "</s>",
            "pad_token": "<pad>",
        },
        "vocab.json": {name: id_ for id_, name in enumerate(vocabulary.names)},
    }
    for name, content in files.items():
        text = json.dumps(content, ensure_ascii=False, indent=2)
        (folder / name).write_text(text + "\n", encoding="utf-8")


def _weights(run: Run, vocabulary: MarianVocabulary) -> dict[str, Tensor]:
    parameters = {name: tensor.detach().cpu() for name, tensor in run.model.named_parameters()}
    rows = torch.tensor(vocabulary.rows)
    shared = parameters.pop("encoder.embedder.lookup.table.weight")[rows]
    bias = parameters.pop("decoder.readout.output.bias")[rows]
    shared[vocabulary.pad] = 0.0  # what the decoder reads first
    bias[vocabulary.pad] = NEVER
    foreign_parts = {ours: theirs for theirs, ours in PARTS.items()}
    weights = {"model.shared.weight": shared, "final_logits_bias": bias.unsqueeze(0)}
    for name, tensor in parameters.items():
        side, layers, index, *part, kind = name.split(".")
        assert layers == "layers", name
        weights[f"model.{side}.layers.{index}.{foreign_parts['.'.join(part)]}.{kind}"] = tensor
    return weights


def _model_settings(run: Run, vocabulary: MarianVocabulary) -> dict[str, Any]:
    encoder, decoder = run.config.model.encoder, run.config.model.decoder
    assert isinstance(encoder, TransformerEncoderConfig)
    assert isinstance(decoder, TransformerDecoderConfig)
    # Several names of transformers stand for the same activation. CTranslate2 supports all of them.
    activations = {ours: theirs for theirs, ours in ACTIVATIONS.items()}
    settings: dict[str, Any] = {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "vocab_size": len(vocabulary.rows),
        "decoder_vocab_size": len(vocabulary.rows),
        "d_model": encoder.width,
        "activation_function": activations[decoder.activation],
        "dropout": decoder.dropout,
        "attention_dropout": decoder.attention.dropout,
        "activation_dropout": decoder.feedforward_dropout,
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "max_position_embeddings": MAX_LENGTH,
        "normalize_before": False,
        "normalize_embedding": False,
        "static_position_embeddings": True,
        **_special_ids(vocabulary),
        "dtype": "float32",
    }
    for side, part in (("encoder", encoder), ("decoder", decoder)):
        settings[f"{side}_layers"] = part.layers
        settings[f"{side}_ffn_dim"] = part.feedforward
        settings[f"{side}_attention_heads"] = part.attention.heads
        settings[f"{side}_layerdrop"] = 0.0
    return settings


def _special_ids(vocabulary: MarianVocabulary) -> dict[str, int]:
    return {
        "bos_token_id": 0,
        "eos_token_id": 0,
        "pad_token_id": vocabulary.pad,
        "decoder_start_token_id": vocabulary.pad,
    }


def _generation_settings(decoding: DecodingConfig, vocabulary: MarianVocabulary) -> dict[str, Any]:
    settings: dict[str, Any] = {
        **_special_ids(vocabulary),
        "bad_words_ids": [[vocabulary.pad]],
        "num_beams": decoding.beam_width or 1,
        # transformers counts the start token, too.
        "max_length": MAX_LENGTH if decoding.max_length is None else decoding.max_length + 1,
    }
    if isinstance(decoding, BeamConfig) and decoding.width > 1:
        early_stopping = {ours: theirs for theirs, ours in STOPPING.items()}
        settings |= {
            "length_penalty": decoding.length_penalty,
            "early_stopping": early_stopping[decoding.stopping],
        }
    if not decoding.allow_unknown:
        settings["suppress_tokens"] = [vocabulary.names.index("<unk>")]
    if decoding.min_length:
        settings["min_new_tokens"] = decoding.min_length
    if decoding.no_repeat_ngram:
        settings["no_repeat_ngram_size"] = decoding.no_repeat_ngram
    return settings


def verify_marian(run: Run, folder: Path, texts: Sequence[str]) -> str:
    """Load the exported folder with transformers, and compare it with the run.

    Returns a summary. If the two differ, raises a StorageError that says what differs.
    """
    transformers = import_optional("transformers", "huggingface", "seqloom export --to huggingface")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MarianTokenizer recommends sacremoses
        tokenizer = transformers.MarianTokenizer.from_pretrained(str(folder))
        model = transformers.MarianMTModel.from_pretrained(str(folder)).eval()
    ours = run.task.target_tokenizer
    assert isinstance(ours, SubwordTokenizer)
    vocabulary = MarianVocabulary.of(ours)
    for text in texts:
        expected = vocabulary.ids([*ours.encode(text), END])
        if tokenizer(text)["input_ids"] != expected:
            raise _difference(f"the two tokenizers split {text!r} into different tokens")
    largest = max(_logit_difference(run, model, vocabulary, text) for text in texts)
    if not largest <= TOLERANCE:
        raise _difference(f"the logits of the two models differ by up to {largest:.1e}")
    greedy = GreedyConfig(max_length=OUTPUT_LIMIT)
    expected_texts = [
        each.text
        for each in run.translate(
            texts, decoding=greedy, attention=False, split=False, pass_through=False
        )
    ]
    found, _ = _generate(model, tokenizer, texts, beams=1)
    wrong = [text for text, a, b in zip(texts, expected_texts, found, strict=True) if a != b]
    if wrong:
        raise _difference(
            f"the two models have different greedy outputs for {len(wrong)} texts, "
            f"such as {wrong[0]!r}"
        )
    same = _compare_beams(run, model, tokenizer, texts)
    return (
        f"compared on {len(texts)} sentences: same tokens, logits differ by at most {largest:.0e}, "
        f"same greedy outputs, {same} of {len(texts)} beam search outputs are the same"
    )


def _difference(what: str) -> StorageError:
    return StorageError(
        f"the exported model differs from the run: {what}. Nothing was written. This is an error "
        "in seqloom; please report it with the recipe."
    )


@torch.inference_mode()
def _logit_difference(run: Run, model: Any, vocabulary: MarianVocabulary, text: str) -> float:
    """Return the maximum difference between the logits of the run and of the exported model.

    The text is used both as source and as target. Any other target would do as well, because the
    logits must be equal for every target.
    """
    tokens = run.task.target_tokenizer.encode(text)
    source, inputs = [*tokens, END], [START, *tokens]
    device = next(run.model.parameters()).device
    padded = Padded(torch.tensor([source]), torch.tensor([len(source)])).to(device)
    memory = run.model.encode(padded, 1)
    ours = run.model.decoder(torch.tensor([inputs], device=device), memory).logits()[0].cpu()
    theirs = model(
        input_ids=torch.tensor([vocabulary.ids(source)]),
        decoder_input_ids=torch.tensor([vocabulary.ids(inputs)]),
    ).logits[0]
    kept = torch.tensor(vocabulary.rows[:-1])  # <pad> has no probability in both
    return float((ours[:, kept] - theirs[:, :-1]).abs().max())


def _generate(
    model: Any, tokenizer: Any, texts: Sequence[str], beams: int
) -> tuple[list[str], list[float]]:
    """Translate texts with transformers. Return the outputs and, for beam search, their scores.

    beams: beam width; 1 means greedy search
    """
    outputs = model.generate(
        **tokenizer(list(texts), return_tensors="pt", padding=True),
        num_beams=beams,
        early_stopping=beams > 1,
        length_penalty=1.0,
        no_repeat_ngram_size=0,
        suppress_tokens=[tokenizer.unk_token_id],
        min_new_tokens=0,
        max_length=None,
        max_new_tokens=OUTPUT_LIMIT,
        return_dict_in_generate=True,
        output_scores=beams > 1,
    )
    found = tokenizer.batch_decode(outputs.sequences, skip_special_tokens=True)
    return found, outputs.sequences_scores.tolist() if beams > 1 else []


def _compare_beams(run: Run, model: Any, tokenizer: Any, texts: Sequence[str]) -> int:
    """Return how many beam search outputs of the run and of the exported model are the same.

    An output may differ if the scores of two hypotheses are equal up to rounding errors. Raises a
    StorageError if the outputs for a text are the same, but their scores are not.
    """
    decoding = BeamConfig(
        width=5,
        max_length=OUTPUT_LIMIT,
        length_counts_end=True,
        extra_candidate=True,
        rank_unfinished=True,
    )
    ours = run.translate(texts, decoding=decoding, attention=False, split=False, pass_through=False)
    found, scores = _generate(model, tokenizer, texts, beams=5)
    same = 0
    for prediction, text, score in zip(ours, found, scores, strict=True):
        is_same = prediction.text == text
        same += is_same
        if is_same and abs(prediction.score - score) > SCORE_TOLERANCE:
            raise _difference(
                f"the score of {text!r} is {prediction.score:.4f} in the run and {score:.4f} in "
                "the exported model"
            )
    return same
