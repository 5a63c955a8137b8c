"""A model's weights as a safetensors file: numbers and names, no code."""

from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from seqloom.core.errors import StorageError


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter by name; one that is shared by several parts comes once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    path.write_bytes(safetensors.torch.save(whole))


def read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise StorageError(f"{path}: cannot be read as tensors: {error}") from error


def assign_weights(model: nn.Module, weights: Mapping[str, Tensor], where: Path) -> None:
    """Put weights into a model; every name and shape must match."""
    places = dict(model.named_parameters())
    problems = [f"has no '{name}'" for name in places.keys() - weights.keys()]
    problems += [f"has '{name}' too much" for name in weights.keys() - places.keys()]
    problems += [
        f"'{name}' is {tuple(weights[name].shape)}, expected {tuple(place.shape)}"
        for name, place in places.items()
        if name in weights and weights[name].shape != place.shape
    ]
    if problems:
        listed = "\n".join(f"  {problem}" for problem in sorted(problems))
        raise StorageError(f"{where}: does not fit the model of config.toml:\n{listed}")
    with torch.no_grad():
        for name, place in places.items():
            place.copy_(weights[name])
