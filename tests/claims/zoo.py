"""A zoo of small models that covers the configuration space of decoders.

Every value of every setting, and every valid pair of values, occurs in at least one model. Claims that
depend on combinations of settings run on all models (`every_decoder`). The others run on fewer models,
which cover every value, and as long tests on the rest (`every_value`).
"""

import functools
import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from seqloom.config.schema.attention import AttentionConfig
from seqloom.config.schema.model import ModelConfig
from seqloom.config.schema.recurrent import RecurrentDecoderConfig
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
POSITIONAL_SCORES = {
    "fixed": {"kind": "fixed", "max_length": 16},
    "position": {"kind": "position", "max_source_length": 16, "max_target_length": 16},
}
PROJECTIONS: dict[str, dict[str, Any]] = {
    "none": {"projection": "none"},
    "linear": {"projection": "linear"},
    "sigmoid": {"projection": "sigmoid"},
    "tanh": {"projection": "tanh"},
    "tanh²": {"projection": "tanh", "projection_layers": 2},
}
SELECTIONS: dict[str, dict[str, Any]] = {
    "softmax": {"selection": "softmax"},
    "argmax": {"selection": "argmax"},
    "nearest": {"selection": "nearest"},
    # With a tolerance of 0, random queries match no key.
    "exact": {"selection": "exact", "tolerance": 1.5},
}
INITIAL_STATES: dict[str, dict[str, Any]] = {
    "copy": {"initial_state": "copy"},
    "mlp": {"initial_state": "mlp"},
    "mlp²": {"initial_state": "mlp", "initial_state_layers": 2},
    "zeros": {"initial_state": "zeros"},
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
OTHER_SINES = {
    "marian": {"kind": "sinusoidal", "layout": "halves", "frequencies": "vaswani"},
    "m2m": {"kind": "sinusoidal", "layout": "halves", "frequencies": "fairseq", "offset": 2},
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
SELF_ATTENTIVE_ENCODERS: dict[str, dict[str, Any]] = {
    "gru↔self": {
        "kind": "recurrent",
        "width": WIDTH // 2,
        "self_attention": {
            "kind": "attention",
            "score": {"kind": "dot"},
            "projection": "linear",
            "values": "learned",
            "heads": 2,
            "output_projection": True,
        },
        "self_attention_residual": True,
    },
    "rnn↔self": {  # without parameters
        "kind": "recurrent",
        "cell": "rnn",
        "width": WIDTH // 2,
        "self_attention": {"kind": "attention", "score": {"kind": "dot", "scale": "one"}},
    },
    "lstm→self": {
        "kind": "recurrent",
        "cell": "lstm",
        "direction": "forward",
        "width": WIDTH,
        "self_attention": {"kind": "attention", "score": POSITIONAL_SCORES["position"]},
    },
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
# Settings that few models use have their own, smaller families.
UNFED: dict[str, Sequence[Any]] = {  # a decoder that does not read its output
    "input": ["unfed"],
    "encoder": list(SELF_ATTENTIVE_ENCODERS),
    "cell": ["gru", "lstm"],
    "initial_state": ["mlp", "mlp²"],
    "context": [("readout",), ("input",)],
    "positions": ["none", *OTHER_SINES],
    "score": ["dot/√d", "bilinear"],
    "projection": ["linear", "tanh²"],
    "selection": ["softmax", "exact"],
}
POSITIONAL: dict[str, Sequence[Any]] = {  # attention weights that ignore the contents
    "score": list(POSITIONAL_SCORES),
    "encoder": ["gru↔2", "transformer", "lstm→self"],
    "layers": [1, 2],
    "context": [("readout",), ("input",), ("layer",)],
    "query": ["current", "previous"],
    "selection": ["softmax", "argmax"],
    "heads": [1, 2],
}
OTHER_TRANSFORMER: dict[str, Sequence[Any]] = {
    "encoder": ["transformer", "gru↔self", "none"],
    "positions": list(OTHER_SINES),
    "score": ["dot/√d", "additive"],
    "projection": ["none", "tanh²"],
    "selection": ["softmax", "exact"],
    "start": ["learned", "zero", "end", "padding"],
    "special_outputs": [True, False],
    "tie": ["none", "output"],
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
    "activation": ["relu", "gelu", "gelu-tanh", "silu"],
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
    keys = ("values", "heads", "output_projection")
    settings = {key: choice[key] for key in keys if key in choice}
    settings |= PROJECTIONS[choice.get("projection", "none")] | SELECTIONS[choice["selection"]]
    score = (SCORES | POSITIONAL_SCORES)[choice["score"]]
    return {"kind": "attention", "score": score, **settings}


def _recurrent_config(choice: Mapping[str, Any]) -> dict[str, Any]:
    keys = ["cell", "layers", "summary", "query", "context"]
    keys += ["readout", "readout_input", "copying"]
    decoder = {
        "kind": "recurrent",
        "width": WIDTH,
        "embedding": {"kind": choice.get("embedding", "learned")},
        "positions": (POSITIONS | OTHER_SINES)[choice.get("positions", "none")],
        "attention": _attention_config(choice) if "score" in choice else {"kind": "none"},
        "feed_output": "input" not in choice,
        **INITIAL_STATES[choice.get("initial_state", "mlp")],
        **{key: choice[key] for key in keys if key in choice},
    }
    encoder = (ENCODERS | SELF_ATTENTIVE_ENCODERS)[choice["encoder"]]
    return {"encoder": encoder, "decoder": decoder, "tie": choice.get("tie", "none")}


DECODER_ONLY = ("copying", "start", "special_outputs")


def _transformer_config(choice: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("layers", "norm", "activation", "copying", "start", "special_outputs")
    decoder = {
        "kind": "transformer",
        "width": WIDTH,
        "feedforward": 12,
        "embedding": {"kind": choice.get("embedding", "learned")},
        "positions": (POSITIONS | OTHER_SINES).get(choice["positions"], {"kind": "rotary"}),
        "attention": _attention_config(choice),
        **{key: choice[key] for key in keys if key in choice},
    }
    encoders = {"none": {"kind": "none"}, **ENCODERS, **SELF_ATTENTIVE_ENCODERS}
    encoder = encoders[choice["encoder"]]
    if choice["encoder"] == "transformer":  # the same settings on both sides
        encoder = {key: decoder[key] for key in decoder if key not in DECODER_ONLY}
    return {"encoder": encoder, "decoder": decoder, "tie": choice.get("tie", "none")}


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


@dataclass(frozen=True, eq=False)
class Specimen:
    """A model of the zoo. Its name lists its settings.

    values: names of its settings and their values
    """

    name: str
    config: ModelConfig
    values: frozenset[tuple[str, str]]

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
        has_source = self.config.has_encoder
        source = Tokens(VOCABULARY) if has_source else NoSource()
        return Signature(source, Tokens(VOCABULARY), shared=False)

    @property
    def gives_labels(self) -> bool:
        """True for label decoders: the source alone determines the number of tokens."""
        return self.config.decoder.predicts_labels

    @property
    def copies(self) -> bool:
        """True if the decoder has a copy mechanism."""
        return self.config.decoder.copies

    @property
    def attention(self) -> AttentionConfig | None:
        """The attention of the decoder; None without attention."""
        return self.config.decoder.cross_attention

    @property
    def reads_its_output(self) -> bool:
        """False if the decoder does not depend on the previous tokens."""
        decoder = self.config.decoder
        return not isinstance(decoder, RecurrentDecoderConfig) or decoder.feed_output

    @property
    def is_hard(self) -> bool:
        """True if attention selects one key instead of mixing all."""
        return self.attention is not None and self.attention.selection != "softmax"

    def source(self, lengths: Sequence[int], seed: int = 1) -> Padded | None:
        """Random source tokens, padded; None without an encoder."""
        if not self.config.has_encoder:
            return None
        generator = torch.Generator().manual_seed(seed)
        values = torch.randint(4, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
        source = Padded(values, torch.tensor(lengths))
        return Padded(values.masked_fill(~source.mask, 0), source.lengths)

    def memory(self, model: Model, lengths: Sequence[int] = (5, 2, 4), seed: int = 1) -> Memory:
        """The encoder output of `source`."""
        return model.encode(self.source(lengths, seed), len(lengths))


@functools.cache
def shared_model(specimen: Specimen, dtype: torch.dtype = torch.float64) -> Model:
    """The model of `Specimen.build`, built once for all tests. Tests must not change it."""
    return specimen.build(dtype)


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
        values = frozenset((key, str(value)) for key, value in choice.items())
        pairs = itertools.combinations(sorted(values), 2)
        covered = sum(1 << bits.setdefault(pair, len(bits)) for pair in pairs)
        pool.append((covered, Specimen(name, config, values)))
    missing = (1 << len(bits)) - 1
    chosen = []
    while missing:
        covered, specimen = max(pool, key=lambda entry: (entry[0] & missing).bit_count())
        missing &= ~covered
        chosen.append(specimen)
    return chosen


def _cover_values(family: Sequence[Specimen]) -> list[Specimen]:
    """A few models of a family. Every value occurs with soft and with hard attention, if it can."""
    covered = {
        specimen: {(specimen.is_hard, value) for value in specimen.values} for specimen in family
    }
    missing = {value for values in covered.values() for value in values}
    chosen = []
    while missing:
        chosen.append(max(family, key=lambda specimen: len(covered[specimen] & missing)))
        missing -= covered[chosen[-1]]
    return chosen


FAMILIES = [
    _cover(RECURRENT, _recurrent_config, 4000),
    _cover(BOTTLENECK, _recurrent_config, 1000),
    _cover(TRANSFORMER, _transformer_config, 2000),
    _cover(LANGUAGE_MODEL, _language_model_config, 500),
    _cover(TIED_LANGUAGE_MODEL, _language_model_config, 200),
    _cover(LABELS, _label_config, 500),
    _cover(UNFED, _recurrent_config, 800),
    _cover(POSITIONAL, _recurrent_config, 800),
    _cover(OTHER_TRANSFORMER, _transformer_config, 300),
]
EVERY_DECODER = [specimen for family in FAMILIES for specimen in family]
EVERY_VALUE = [specimen for family in FAMILIES for specimen in _cover_values(family)]


def run_on(
    specimens: Sequence[Specimen], always: Sequence[Specimen] = EVERY_VALUE
) -> pytest.MarkDecorator:
    """Run a claim on these models, as a long test on those that are not in `always`."""
    cases = [
        pytest.param(one, id=one.name, marks=() if one in always else pytest.mark.long)
        for one in specimens
    ]
    return pytest.mark.parametrize("specimen", cases)


every_decoder = run_on(EVERY_DECODER, EVERY_DECODER)
every_value = run_on(EVERY_DECODER)
