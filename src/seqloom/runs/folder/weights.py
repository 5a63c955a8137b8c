"""Weights as safetensors files, which hold named tensors and no code."""

import re
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from seqloom.core.errors import StorageError

RENAMED = tuple(
    (re.compile(old), new)
    for old, new in (
        (r"\.around_attention\.", ".attention_residual."),
        (r"\.around_cross\.", ".cross_attention_residual."),
        (r"\.around_feedforward\.", ".feedforward_residual."),
        (r"attention\.merge\.", "attention.output_projection."),
        (r"\.readout\.bend\.", ".readout.hidden_layer."),
        (r"\.embedder\.fit\.", ".embedder.projection."),
        (r"(^|:)encoder\.fit\.", r"\1encoder.projection."),
        (r"\.embedder\.lookup\.map\.", ".embedder.lookup.projection."),
        (r"\.handover\.map\.", ".initial_state.projection."),
        (r"\.patches\.cut\.", ".patches.projection."),
        (r"\.patches\.places(?=$|:)", ".patches.positions"),
        (r"(\.stages\.\d+)\.around\.", r"\1.shortcut."),
    )
)
"""Changes of weight names, so that runs of earlier versions can be loaded. Each entry is a pair: a
regular expression that matches the old part of a name, and the text that replaces this part."""


def current_name(name: str) -> str:
    """Return the name that the current version uses for a weight or for its optimiser state.

    name: the name in a file, which an earlier version may have written
    """
    for old, new in RENAMED:
        name = old.sub(new, name)
    return name


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Return all parameters of a model by name. A shared parameter appears only once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write named tensors to a safetensors file."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    path.write_bytes(safetensors.torch.save(contiguous))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file. Names from earlier versions are replaced by the current ones."""
    try:
        tensors = safetensors.torch.load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise StorageError(f"{path}: is not a readable safetensors file: {error}") from error
    return {current_name(name): tensor for name, tensor in tensors.items()}


def assign_weights(model: nn.Module, weights: Mapping[str, Tensor], path: Path) -> None:
    """Copy weights into a model. Every name and shape must match.

    path: the file or folder of the weights, for the error message
    """
    parameters = dict(model.named_parameters())
    problems = [f"'{name}' is missing" for name in parameters.keys() - weights.keys()]
    problems += [f"'{name}' is unexpected" for name in weights.keys() - parameters.keys()]
    problems += [
        f"'{name}' is {tuple(weights[name].shape)}, expected {tuple(parameter.shape)}"
        for name, parameter in parameters.items()
        if name in weights and weights[name].shape != parameter.shape
    ]
    if problems:
        listed = "\n".join(f"  {problem}" for problem in sorted(problems))
        raise StorageError(f"{path}: does not match the model of config.toml:\n{listed}")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])
