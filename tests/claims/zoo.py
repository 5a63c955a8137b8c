"""Every decoder that can be built: every value of every switch, and every pair of values that can
stand together, in as few models as cover them all."""

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from pydantic import ValidationError

from seqloom.config.schema.attention import AttentionConfig
from seqloom.config.schema.labels import LabelsDecoderConfig
from seqloom.config.schema.model import ModelConfig
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
    "merge": [False, True],
}
RECURRENT: dict[str, Sequence[Any]] = {
    "encoder": list(ENCODERS),
    "cell": ["rnn", "gru", "lstm"],
    "layers": [1, 2],
    "handover": ["whole", "mlp", "none"],
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
ALONE: dict[str, Sequence[Any]] = {
    "cell": ["rnn", "gru", "lstm"],
    "layers": [1, 2],
    "readout": ["linear", "tanh"],
    "readout_input": [False, True],
    "embedding": ["learned", "one-hot"],
    "positions": list(POSITIONS),
}
TIED_ALONE = {**ALONE, "embedding": ["learned"], "positions": ["none", "sine+"], "tie": ["output"]}


LABELS: dict[str, Sequence[Any]] = {
    "encoder": list(ENCODERS),
    "reads": ["positions", "last", "mean"],
    "previous": [False, True],
    "hidden": [None, 6],
}


def _attention(choice: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key: choice[key] for key in ("projection", "values", "selection", "heads", "merge")}
    return {"kind": "attention", "score": SCORES[choice["score"]], **plain}


def _recurrent(choice: Mapping[str, Any]) -> dict[str, Any]:
    keys = ["cell", "layers", "handover", "summary", "query", "context"]
    keys += ["readout", "readout_input", "copying"]
    decoder = {
        "kind": "recurrent",
        "width": WIDTH,
        "embedding": {"kind": choice["embedding"]},
        "positions": POSITIONS[choice["positions"]],
        "attention": _attention(choice) if "score" in choice else {"kind": "none"},
        **{key: choice[key] for key in keys if key in choice},
    }
    return {"encoder": ENCODERS[choice["encoder"]], "decoder": decoder, "tie": choice["tie"]}


def _transformer(choice: Mapping[str, Any]) -> dict[str, Any]:
    decoder = {
        "kind": "transformer",
        "width": WIDTH,
        "feedforward": 12,
        "embedding": {"kind": choice["embedding"]},
        "positions": POSITIONS.get(choice["positions"], {"kind": "rotary"}),
        "attention": _attention(choice),
        **{key: choice[key] for key in ("layers", "norm", "activation", "copying")},
    }
    encoder = {"kind": "none"} if choice["encoder"] == "none" else ENCODERS[choice["encoder"]]
    if choice["encoder"] == "transformer":  # the same switches on both sides
        encoder = {key: value for key, value in decoder.items() if key != "copying"}
    return {"encoder": encoder, "decoder": decoder, "tie": choice["tie"]}


def _alone(choice: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("cell", "layers", "readout", "readout_input")
    decoder = {
        "kind": "recurrent",
        "width": WIDTH,
        "handover": "none",
        "attention": {"kind": "none"},
        "embedding": {"kind": choice["embedding"]},
        "positions": POSITIONS[choice["positions"]],
        **{key: choice[key] for key in keys},
    }
    return {"encoder": {"kind": "none"}, "decoder": decoder, "tie": choice.get("tie", "none")}


def _labels(choice: Mapping[str, Any]) -> dict[str, Any]:
    decoder = {"kind": "labels", **{key: choice[key] for key in ("reads", "previous", "hidden")}}
    return {"encoder": ENCODERS[choice["encoder"]], "decoder": decoder}


@dataclass(frozen=True)
class Specimen:
    """A model of the zoo, and a name that says what is special about it."""

    name: str
    config: ModelConfig

    def build(self, dtype: torch.dtype = torch.float64) -> Model:
        torch.manual_seed(0)
        model = build_model(self.config, self.signature).to(dtype).eval().requires_grad_(False)
        for parameter in model.parameters():  # large weights, so that every path matters
            torch.nn.init.normal_(parameter, std=0.5)
        return model

    @property
    def signature(self) -> Signature:
        alone = self.config.encoder.kind == "none"
        return Signature(NoSource() if alone else Tokens(VOCABULARY), Tokens(VOCABULARY), False)

    @property
    def gives_labels(self) -> bool:
        """Does the source decide how many tokens there are, and hardly anything what came before?"""
        return isinstance(self.config.decoder, LabelsDecoderConfig)

    @property
    def copies(self) -> bool:
        decoder = self.config.decoder
        return not isinstance(decoder, LabelsDecoderConfig) and decoder.copying

    @property
    def attention(self) -> AttentionConfig | None:
        decoder = self.config.decoder
        if isinstance(decoder, LabelsDecoderConfig):
            return None
        return decoder.attention if isinstance(decoder.attention, AttentionConfig) else None

    @property
    def is_hard(self) -> bool:
        return self.attention is not None and self.attention.selection != "softmax"

    def source(self, lengths: Sequence[int], seed: int = 1) -> Padded | None:
        if self.config.encoder.kind == "none":
            return None
        generator = torch.Generator().manual_seed(seed)
        values = torch.randint(4, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
        source = Padded(values, torch.tensor(lengths))
        return Padded(values.masked_fill(~source.mask, 0), source.lengths)

    def memory(self, model: Model, lengths: Sequence[int] = (5, 2, 4), seed: int = 1) -> Memory:
        return model.encode(self.source(lengths, seed), len(lengths))


def _pairs(choice: Mapping[str, Any]) -> set[tuple[Any, ...]]:
    return set(itertools.combinations(sorted((k, str(v)) for k, v in choice.items()), 2))


def _cover(switches: Mapping[str, Sequence[Any]], assemble: Any, draws: int) -> list[Specimen]:
    """Draw many choices, keep those that can be built, and of these the few that show all pairs."""
    draw = random.Random(0)
    bits: dict[tuple[Any, ...], int] = {}
    pool: list[tuple[int, Specimen]] = []  # the pairs it shows, a bit each
    for _ in range(draws):
        choice = {key: draw.choice(values) for key, values in switches.items()}
        try:
            config = ModelConfig.model_validate(assemble(choice))
        except ValidationError:
            continue  # not every pair of values can stand together
        name = "-".join(
            "+".join(value) or "0" if isinstance(value, tuple) else str(value)
            for value in choice.values()
        )
        shown = sum(1 << bits.setdefault(pair, len(bits)) for pair in _pairs(choice))
        pool.append((shown, Specimen(name, config)))
    missing = (1 << len(bits)) - 1
    chosen = []
    while missing:
        shown, specimen = max(pool, key=lambda one: (one[0] & missing).bit_count())
        missing &= ~shown
        chosen.append(specimen)
    return chosen


EVERY_DECODER = [
    *_cover(RECURRENT, _recurrent, 4000),
    *_cover(BOTTLENECK, _recurrent, 1000),
    *_cover(TRANSFORMER, _transformer, 2000),
    *_cover(ALONE, _alone, 500),
    *_cover(TIED_ALONE, _alone, 200),
    *_cover(LABELS, _labels, 500),
]
