"""Freezing: excludes parts of a model from training."""

import re
from collections.abc import Sequence

from torch import nn

from seqloom.config.schema.names import ModelPart
from seqloom.core.errors import ConfigError

PATTERNS: dict[ModelPart, re.Pattern[str]] = {
    "embeddings": re.compile(r"(encoder|decoder)\.(embedder\.|previous\.)"),
    "cross-attention": re.compile(
        r"decoder\.(attention\.|to_state\.|layers\.\d+\.cross_attention(_residual)?\.)"
    ),
    "output": re.compile(r"decoder\.(readout|copying)\."),
    "encoder": re.compile(r"encoder\."),
    "decoder": re.compile(r"decoder\."),
}
"""For each part, a pattern that matches the names of its parameters. A parameter belongs to the
first part whose pattern matches its name."""


def model_parts(model: nn.Module) -> dict[ModelPart, list[nn.Parameter]]:
    """Return the parameters of each part of a model, such as "embeddings" or "decoder".

    Parts without parameters are left out. A parameter that several parts share, such as a tied
    embedding, is listed in each of these parts.
    """
    parts: dict[ModelPart, list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        part = next(part for part, pattern in PATTERNS.items() if pattern.match(name))
        parts.setdefault(part, []).append(parameter)
    return parts


def freeze(model: nn.Module, frozen: Sequence[ModelPart]) -> None:
    """Switch off the gradients of these parts of a model.

    Raises a ConfigError if the model lacks one of the parts, or if nothing is left to train.
    """
    parts = model_parts(model)
    unknown = [part for part in frozen if part not in parts]
    if unknown:
        raise ConfigError(
            f"training.freeze: this model has no {', '.join(unknown)}; its parts are "
            f"{', '.join(sorted(parts))}"
        )
    for part in frozen:
        for parameter in parts[part]:
            parameter.requires_grad_(False)
    if not trainable_parameters(model):
        raise ConfigError(
            "training.freeze: nothing is left to train; remove one of these parts: "
            f"{', '.join(frozen)}"
        )


def trainable_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Return the parameters that are not frozen. Shared parameters are listed once."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]
