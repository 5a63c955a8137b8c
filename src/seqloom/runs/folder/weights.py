"""Weights as safetensors files, which hold named tensors and no code."""

from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from seqloom.core.errors import StorageError


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter by name; a shared parameter appears once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write named tensors to a safetensors file."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    path.write_bytes(safetensors.torch.save(contiguous))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file."""
    try:
        return safetensors.torch.load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise StorageError(f"{path}: is not a readable safetensors file: {error}") from error


def assign_weights(model: nn.Module, weights: Mapping[str, Tensor], where: Path) -> None:
    """Copy weights into a model. Every name and shape must match.

    where: the file, for the error message
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
        raise StorageError(f"{where}: does not match the model of config.toml:\n{listed}")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])
