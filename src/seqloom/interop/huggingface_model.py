"""Converts settings and weights of Hugging Face models, for the import of Marian and M2M100."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import ValidationError
from torch import Tensor

from seqloom.config.schema.decoding import BeamConfig
from seqloom.config.schema.names import StoppingRule
from seqloom.core.errors import ConfigError, DataError
from seqloom.interop.foreign_model import select_rows
from seqloom.interop.huggingface_files import read_json_if_present

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "silu": "silu",
    "swish": "silu",
}
"""Names of activations in transformers and in seqloom."""
PARTS = {
    "self_attn.q_proj": "attention.to_query",
    "self_attn.k_proj": "attention.to_key",
    "self_attn.v_proj": "attention.to_value",
    "self_attn.out_proj": "attention.output_projection",
    "self_attn_layer_norm": "attention_residual.norm",
    "encoder_attn.q_proj": "cross_attention.to_query",
    "encoder_attn.k_proj": "cross_attention.to_key",
    "encoder_attn.v_proj": "cross_attention.to_value",
    "encoder_attn.out_proj": "cross_attention.output_projection",
    "encoder_attn_layer_norm": "cross_attention_residual.norm",
    "fc1": "feedforward.widen",
    "fc2": "feedforward.narrow",
    "final_layer_norm": "feedforward_residual.norm",
}
"""Names of the parts of a layer in transformers and in seqloom."""
NEVER = -1e4
"""Output bias for a token that the foreign model does not have. With this bias, the probability of
the token is 0 in float32. The bias is not -inf, so that the run can be trained."""


@dataclass(frozen=True)
class ModelSettings:
    """The settings of a Hugging Face model, read from its config.json.

    path:   the path of config.json, for error messages
    values: the content of config.json
    """

    path: Path
    values: Mapping[str, Any]

    def number(self, name: str) -> int:
        value = self.values.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise DataError(
                f"{self.path}: '{name}' must be a whole number of 0 or more, not {value!r}. "
                "Download the file again."
            )
        return value

    def share(self, name: str) -> float:
        """Return the dropout rate that a setting contains; 0 if it is missing or invalid.

        The rate has an effect only if the imported run is trained further.
        """
        value = self.values.get(name, 0.0)
        return float(value) if isinstance(value, int | float) and 0 <= value < 1 else 0.0

    def check(self) -> None:
        """If seqloom cannot express some settings, raise a ConfigError that lists all of them."""
        problems = list(self._problems())
        if problems:
            listed = "\n".join(f"  {problem}" for problem in problems)
            raise ConfigError(f"{self.path}: seqloom cannot import this model:\n{listed}")

    def _problems(self) -> Iterator[str]:
        activation = self.values.get("activation_function")
        if activation not in ACTIVATIONS:
            yield (
                f"activation_function: {activation!r} is not supported, only "
                f"{', '.join(ACTIVATIONS)}"
            )
        if self.values.get("scale_embedding") is not True:
            yield "scale_embedding: only models that multiply embeddings by √d_model are supported"
        for side in ("encoder", "decoder"):
            heads, width = self.number(f"{side}_attention_heads"), self.number("d_model")
            if heads == 0 or width % heads:
                yield f"{side}_attention_heads: {heads} heads do not divide d_model = {width}"

    def layers(
        self, side: Literal["encoder", "decoder"], norm: str, positions: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the settings of the encoder or decoder in the form of a seqloom recipe.

        norm:      position of the layer norms, "pre" or "post"
        positions: settings of the positional encoding
        """
        return {
            "kind": "transformer",
            "width": self.number("d_model"),
            "layers": self.number(f"{side}_layers"),
            "feedforward": self.number(f"{side}_ffn_dim"),
            "activation": ACTIVATIONS[self.values["activation_function"]],
            "norm": norm,
            "attention": {
                "kind": "attention",
                "score": {"kind": "dot", "scale": "sqrt"},
                "projection": "linear",
                "values": "learned",
                "heads": self.number(f"{side}_attention_heads"),
                "output_projection": True,
                "dropout": self.share("attention_dropout"),
            },
            "dropout": self.share("dropout"),
            "feedforward_dropout": self.share("activation_dropout"),
            "positions": dict(positions),
        }


@dataclass(frozen=True)
class Embeddings:
    """The three embedding matrices of a Hugging Face model: encoder, decoder and output.

    Row i belongs to token id i of that model.

    tie: "all" if the three matrices are equal, "output" if only `decoder` and `output` are equal,
         otherwise "none"
    """

    encoder: Tensor
    decoder: Tensor
    output: Tensor
    tie: Literal["none", "output", "all"]

    @classmethod
    def find(cls, weights: Mapping[str, Tensor], folder: Path) -> "Embeddings":
        """Find the embedding matrices among the weights of a model.

        The field `tie` says which matrices are equal. It is found by comparing them, because the
        flags in config.json are wrong in some published models.
        """
        encoder = _first(
            weights, folder, "model.encoder.embed_tokens.weight", "model.shared.weight"
        )
        decoder = _first(
            weights, folder, "model.decoder.embed_tokens.weight", "model.shared.weight"
        )
        output = weights.get("lm_head.weight", decoder)
        is_tied = output.shape == decoder.shape and torch.equal(output, decoder)
        is_shared = encoder.shape == decoder.shape and torch.equal(encoder, decoder)
        tie: Literal["none", "output", "all"] = "none"
        if is_tied:
            tie = "all" if is_shared else "output"
        return cls(encoder, decoder, output, tie)

    def named(self, source_rows: Sequence[int], target_rows: Sequence[int]) -> dict[str, Tensor]:
        """Return the embedding matrices with the names and the row order of seqloom.

        source_rows, target_rows: for each token id of seqloom, the row of this token in the matrix
                                  of the Hugging Face model
        """
        return {
            "encoder.embedder.lookup.table.weight": select_rows(self.encoder, source_rows),
            "decoder.embedder.lookup.table.weight": select_rows(self.decoder, target_rows),
            "decoder.readout.output.weight": select_rows(self.output, target_rows),
        }


def _first(weights: Mapping[str, Tensor], folder: Path, *names: str) -> Tensor:
    for name in names:
        if name in weights:
            return weights[name]
    raise DataError(
        f"{folder}: the weights have no {' or '.join(names)}. Download all files of the model."
    )


def layer_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of the layers and of the final norms, renamed as seqloom names them."""
    renamed: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        new_name = _layer_name(name)
        if new_name is not None:
            renamed[new_name] = tensor
    return renamed


def _layer_name(name: str) -> str | None:
    """Convert the name of a weight in transformers to its name in seqloom.

    Example: model.encoder.layers.0.fc1.weight -> encoder.layers.0.feedforward.widen.weight

    Returns None if the weight belongs neither to a layer nor to a final norm.
    """
    parts = name.split(".")
    if parts[0] != "model" or len(parts) < 4:
        return None
    side, kind = parts[1], parts[2]
    if kind == "layer_norm":
        return f"{side}.norm.{parts[3]}"
    if kind != "layers":
        return None
    part = PARTS.get(".".join(parts[4:-1]))
    return None if part is None else f"{side}.layers.{parts[3]}.{part}.{parts[-1]}"


STOPPING: dict[Any, StoppingRule] = {True: "count", False: "estimate", "never": "bound"}
"""Values of early_stopping in transformers, and of decoding.stopping in seqloom."""


def decoding_settings(folder: Path) -> BeamConfig:
    """Convert the search settings in generation_config.json to settings of seqloom.

    A missing setting has the default value of transformers. Greedy search becomes beam search of
    width 1. transformers counts END in the length of an output, so `length_counts_end` is True.
    """
    path = folder / "generation_config.json"
    generation = {
        name: value for name, value in read_json_if_present(path).items() if value is not None
    }
    try:
        return BeamConfig(
            width=generation.get("num_beams", 1),
            length_penalty=generation.get("length_penalty", 1.0),
            max_length=_new_tokens(generation, "max_new_tokens", "max_length"),
            min_length=_new_tokens(generation, "min_new_tokens", "min_length") or 0,
            no_repeat_ngram=generation.get("no_repeat_ngram_size", 0),
            length_counts_end=True,
            stopping=STOPPING[generation.get("early_stopping", False)],
            extra_candidate=True,
            rank_unfinished=True,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{path}: seqloom cannot import a search setting: {_reason(error)}. Change the value, "
            "or remove it to use the default of transformers."
        ) from error


def _new_tokens(generation: Mapping[str, Any], new_name: str, name: str) -> int | None:
    """Return a length limit from generation_config.json; None if it is not set.

    The result does not count the start token. transformers has two settings for each limit.

    new_name: the setting that does not count the start token. It has priority
    name:     the setting that counts the start token
    """
    if new_name in generation:
        return int(generation[new_name])
    length = int(generation.get(name, 0))
    return length - 1 if length > 0 else None


def _reason(error: Exception) -> str:
    match error:
        case ValidationError():
            return "; ".join(
                ": ".join([*map(str, problem["loc"]), problem["msg"]]) for problem in error.errors()
            )
        case KeyError():
            return f'early_stopping must be true, false or "never", not {error}'
        case _:
            return str(error)
