"""A zoo of small models that covers the configuration space of decoders.

Every value of every setting, and every valid pair of values, occurs in at least one model.
"""

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from pydantic import ValidationError

from seqloom.config.schema.attention import AttentionConfig
from seqloom.config.schema.model import LabelsDecoderConfig, ModelConfig
from seqloom.core.batch import Padded
from seqloom.core.signature import NoSource, Signature, Tokens
from seqloom.models.build import build_model
from seqloom.models.interface import Memory
from seqloom.models.seq2seq import Model

WIDTH = 8
VOCABULARY = 8  # four special tokens and four words

SCORES = {
    "dot/1": {"kind": "dot", "scale": "one"},
    "dot/√d": {"kind": "dot", "scale": "sqrt"},
    "dot/d": {"kind": "dot", "scale": "width"},
    "bilinear": {"kind": "bilinear"},
    "additive": {"kind": "additive", "width": 6},
    "rbf": {"kind": "rbf", "gamma": 0.5},
}
POSITIONS = {
    "none": {"kind": "none"},
    "one-hot+": {"kind": "one-hot", "join": "add", "max_length": WIDTH},
    "one-hot,": {"kind": "one-hot", "join": "append", "max_length": 16},
    "sine+": {"kind": "sinusoidal", "join": "add"},
    "sine,": {"kind": "sinusoidal", "join": "append", "width": 6},
    "learned+": {"kind": "learned", "join": "add", "max_length": 16},
    "learned,": {"kind": "learned", "join": "append", "max_length": 16, "width": 4},
}
CONTEXTS = [
    ("readout",),
    ("input",),
    ("layer",),
    ("state",),
    ("input", "readout"),
    ("layer", "readout"),
    ("input", "state"),
    ("input", "readout", "layer", "state"),
]
ENCODERS: dict[str, dict[str, Any]] = {
    "rnn→": {"kind": "recurrent", "cell": "rnn", "direction": "forward", "width": WIDTH},
    "gru←": {"kind": "recurrent", "cell": "gru", "direction": "backward", "width": WIDTH},
    "lstm↔": {"kind": "recurrent", "cell": "lstm", "direction": "both", "width": WIDTH // 2},
    "gru↔2": {"kind": "recurrent", "cell": "gru", "layers": 2, "width": WIDTH // 2},
    "lstm→2": {
        "kind": "recurrent",
        "cell": "lstm",
        "layers": 2,
        "direction": "forward",
        "width": WIDTH,
    },
    "transformer": {"kind": "transformer", "width": WIDTH, "layers": 1, "feedforward": 12},
}

ATTENTION: dict[str, Sequence[Any]] = {
    "score": list(SCORES),
    "projection": ["none", "linear", "sigmoid", "tanh"],
    "values": ["states", "learned"],
    "selection": ["softmax", "argmax", "nearest"],
    "heads": [1, 2, 4],
    "output_projection": [False, True],
}
RECURRENT: dict[str, Sequence[Any]] = {
    "encoder": list(ENCODERS),
    "cell": ["rnn", "gru", "lstm"],
    "layers": [1, 2],
    "initial_state": ["copy", "mlp", "zeros"],
    "summary": [(), ("input",), ("readout",), ("input", "readout")],
    "query": ["current", "previous"],
    "context": CONTEXTS,
    "readout": ["linear", "tanh"],
    "readout_input": [False, True],
    "copying": [False, True],
    "embedding": ["learned", "one-hot"],
    "positions": list(POSITIONS),
    "tie": ["none", "output"],
    **ATTENTION,
}
BOTTLENECK = {
    key: RECURRENT[key]
    for key in RECURRENT
    if key not in {*ATTENTION, "query", "context", "copying"}
}
TRANSFORMER: dict[str, Sequence[Any]] = {
    "encoder": [*ENCODERS, "none"],
    "layers": [1, 2],
    "norm": ["pre", "post"],
    "activation": ["relu", "gelu"],
    "copying": [False, True],
    "embedding": ["learned", "one-hot"],
    "positions": [*POSITIONS, "rotary"],
    "tie": ["none", "output"],
    **ATTENTION,
}
LANGUAGE_MODEL: dict[str, Sequence[Any]] = {
    "cell": ["rnn", "gru", "lstm"],
    "layers": [1, 2],
    "readout": ["linear", "tanh"],
    "readout_input": [False, True],
    "embedding": ["learned", "one-hot"],
    "positions": list(POSITIONS),
}
TIED_LANGUAGE_MODEL = {
    **LANGUAGE_MODEL,
    "embedding": ["learned"],
    "positions": ["none", "sine+"],
    "tie": ["output"],
}


LABELS: dict[str, Sequence[Any]] = {
    "encoder": list(ENCODERS),
    "pooling": ["none", "last", "mean"],
    "previous": [False, True],
    "hidden": [None, 6],
}


def _attention_config(choice: Mapping[str, Any]) -> dict[str, Any]:
    settings = {
        key: choice[key]
        for key in ("projection", "values", "selection", "heads", "output_projection")
    }
    return {"kind": "attention", "score": SCORES[choice["score"]], **settings}


def _recurrent_config(choice: Mapping[str, Any]) -> dict[str, Any]:
    keys = ["cell", "layers", "initial_state", "summary", "query", "context"]
    keys += ["readout", "readout_input", "copying"]
    decoder = {
        "kind": "recurrent",
        "width": WIDTH,
        "embedding": {"kind": choice["embedding"]},
        "positions": POSITIONS[choice["positions"]],
        "attention": _attention_config(choice) if "score" in choice else {"kind": "none"},
        **{key: choice[key] for key in keys if key in choice},
    }
    return {"encoder": ENCODERS[choice["encoder"]], "decoder": decoder, "tie": choice["tie"]}


def _transformer_config(choice: Mapping[str, Any]) -> dict[str, Any]:
    decoder = {
        "kind": "transformer",
        "width": WIDTH,
        "feedforward": 12,
        "embedding": {"kind": choice["embedding"]},
        "positions": POSITIONS.get(choice["positions"], {"kind": "rotary"}),
        "attention": _attention_config(choice),
        **{key: choice[key] for key in ("layers", "norm", "activation", "copying")},
    }
    encoder = {"kind": "none"} if choice["encoder"] == "none" else ENCODERS[choice["encoder"]]
    if choice["encoder"] == "transformer":  # the same settings on both sides
        encoder = {key: value for key, value in decoder.items() if key != "copying"}
    return {"encoder": encoder, "decoder": decoder, "tie": choice["tie"]}


def _language_model_config(choice: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("cell", "layers", "readout", "readout_input")
    decoder = {
        "kind": "recurrent",
        "width": WIDTH,
        "initial_state": "zeros",
        "attention": {"kind": "none"},
        "embedding": {"kind": choice["embedding"]},
        "positions": POSITIONS[choice["positions"]],
        **{key: choice[key] for key in keys},
    }
    return {"encoder": {"kind": "none"}, "decoder": decoder, "tie": choice.get("tie", "none")}


def _label_config(choice: Mapping[str, Any]) -> dict[str, Any]:
    decoder = {"kind": "labels", **{key: choice[key] for key in ("pooling", "previous", "hidden")}}
    return {"encoder": ENCODERS[choice["encoder"]], "decoder": decoder}


@dataclass(frozen=True)
class Specimen:
    """A model of the zoo. Its name lists its settings."""

    name: str
    config: ModelConfig

    def build(self, dtype: torch.dtype = torch.float64) -> Model:
        """The model with large random weights, so that every path matters. No gradients."""
        torch.manual_seed(0)
        model = build_model(self.config, self.signature).to(dtype).eval().requires_grad_(False)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
        return model

    @property
    def signature(self) -> Signature:
        """Tokens to tokens; a language model without an encoder."""
        has_source = self.config.encoder.kind != "none"
        source = Tokens(VOCABULARY) if has_source else NoSource()
        return Signature(source, Tokens(VOCABULARY), shared=False)

    @property
    def gives_labels(self) -> bool:
        """True for label decoders: the source alone determines the number of tokens."""
        return isinstance(self.config.decoder, LabelsDecoderConfig)

    @property
    def copies(self) -> bool:
        """True if the decoder has a copy mechanism."""
        decoder = self.config.decoder
        return not isinstance(decoder, LabelsDecoderConfig) and decoder.copying

    @property
    def attention(self) -> AttentionConfig | None:
        """The attention of the decoder; None without attention."""
        decoder = self.config.decoder
        if isinstance(decoder, LabelsDecoderConfig):
            return None
        return decoder.attention if isinstance(decoder.attention, AttentionConfig) else None

    @property
    def is_hard(self) -> bool:
        """True if attention selects one key instead of mixing all."""
        return self.attention is not None and self.attention.selection != "softmax"

    def source(self, lengths: Sequence[int], seed: int = 1) -> Padded | None:
        """Random source tokens, padded; None without an encoder."""
        if self.config.encoder.kind == "none":
            return None
        generator = torch.Generator().manual_seed(seed)
        values = torch.randint(4, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
        source = Padded(values, torch.tensor(lengths))
        return Padded(values.masked_fill(~source.mask, 0), source.lengths)

    def memory(self, model: Model, lengths: Sequence[int] = (5, 2, 4), seed: int = 1) -> Memory:
        """The encoder output of `source`."""
        return model.encode(self.source(lengths, seed), len(lengths))


def _setting_pairs(choice: Mapping[str, Any]) -> set[tuple[Any, ...]]:
    return set(itertools.combinations(sorted((k, str(v)) for k, v in choice.items()), 2))


def _cover(settings: Mapping[str, Sequence[Any]], build_config: Any, draws: int) -> list[Specimen]:
    """Draw random settings, keep the valid ones, and of these a few that cover all pairs."""
    generator = random.Random(0)
    bits: dict[tuple[Any, ...], int] = {}
    pool: list[tuple[int, Specimen]] = []  # a bit for each pair it covers
    for _ in range(draws):
        choice = {key: generator.choice(values) for key, values in settings.items()}
        try:
            config = ModelConfig.model_validate(build_config(choice))
        except ValidationError:
            continue  # not every combination is valid
        name = "-".join(
            "+".join(value) or "0" if isinstance(value, tuple) else str(value)
            for value in choice.values()
        )
        covered = sum(1 << bits.setdefault(pair, len(bits)) for pair in _setting_pairs(choice))
        pool.append((covered, Specimen(name, config)))
    missing = (1 << len(bits)) - 1
    chosen = []
    while missing:
        covered, specimen = max(pool, key=lambda entry: (entry[0] & missing).bit_count())
        missing &= ~covered
        chosen.append(specimen)
    return chosen


EVERY_DECODER = [
    *_cover(RECURRENT, _recurrent_config, 4000),
    *_cover(BOTTLENECK, _recurrent_config, 1000),
    *_cover(TRANSFORMER, _transformer_config, 2000),
    *_cover(LANGUAGE_MODEL, _language_model_config, 500),
    *_cover(TIED_LANGUAGE_MODEL, _language_model_config, 200),
    *_cover(LABELS, _label_config, 500),
]
