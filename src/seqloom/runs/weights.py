"""Weights as safetensors files, which hold named tensors and no code."""

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from seqloom.core.errors import StorageError
from seqloom.runs.checkpoint_store import COPY_RUN

MAX_HEADER_BYTES = 8 * 1024 * 1024
"""Maximum size of the header of a safetensors file. A tensor needs about 150 bytes."""

TOO_LARGE = re.compile("not enough memory|can't allocate memory|overflow")
"""Matches the errors of torch about a tensor that does not fit into memory."""

COPY_OR_VERSION = (
    f"{COPY_RUN} If another version of seqloom wrote the run, use that version; `seqloom info` "
    "prints it."
)
"""Advice for weights of a run that do not match the model of the run."""


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Return all parameters of a model by name. A shared parameter appears only once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write named tensors to a safetensors file."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    path.write_bytes(safetensors.torch.save(contiguous))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file."""
    try:
        with path.open("rb") as file:
            header_bytes = int.from_bytes(file.read(8), "little")
        if header_bytes > MAX_HEADER_BYTES:
            raise ValueError(
                f"the header has {header_bytes:,} bytes, more than {MAX_HEADER_BYTES:,}"
            )
        return safetensors.torch.load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise StorageError(
            f"{path}: is not a readable safetensors file: {error}. {COPY_RUN}"
        ) from error


@contextmanager
def limited_size(
    weights: Mapping[str, Tensor], path: Path, remedy: str = COPY_OR_VERSION
) -> Iterator[None]:
    """Context manager for building a model. Raises a StorageError if the model becomes much larger
    than its stored weights.

    A recipe in a damaged or hostile run folder can describe a model that needs more memory than the
    machine has. Layers register their parameters before they initialise them, so the error is
    raised before the memory is used. `assign_weights` reports smaller differences in detail.

    path:   the file of the weights, for the error message
    remedy: end of the error message: what the user can do
    """
    values = sum(tensor.numel() for tensor in weights.values())
    limit = 2 * values + 1_000_000
    thread = threading.get_ident()
    parameters: dict[int, nn.Parameter] = {}  # by identity, because layers can share a parameter
    size = 0

    def check(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal size
        is_new = parameter is not None and id(parameter) not in parameters
        if parameter is None or not is_new or threading.get_ident() != thread:
            return
        parameters[id(parameter)] = parameter
        size += parameter.numel()
        if size > limit:
            raise StorageError(
                f"{path}: does not match the configuration of the model: the file has {values:,} "
                f"values, and the model has more than {limit:,}. {remedy}"
            )

    hook = register_module_parameter_registration_hook(check)
    try:
        yield
    except RuntimeError as error:
        if not TOO_LARGE.search(str(error)):
            raise
        raise StorageError(
            f"{path}: cannot build the model that config.toml describes: {error}. If the model is "
            f"large, use a machine with more memory. {remedy}"
        ) from error
    finally:
        hook.remove()


def assign_weights(
    model: nn.Module, weights: Mapping[str, Tensor], path: Path, remedy: str = COPY_OR_VERSION
) -> None:
    """Copy weights into a model. Every name and shape must match.

    path:   the file or folder of the weights, for the error message
    remedy: last line of the error message: what the user can do
    """
    parameters = dict(model.named_parameters())
    problems = [f"'{name}' is missing" for name in parameters.keys() - weights.keys()]
    problems += [f"'{name}' is unexpected" for name in weights.keys() - parameters.keys()]
    problems += [
        f"'{name}' is {tuple(weights[name].shape)}, expected {tuple(parameter.shape)}"
        for name, parameter in parameters.items()
        if name in weights and weights[name].shape != parameter.shape
    ]
    problems += [
        f"'{name}' has the type {weights[name].dtype}, expected a floating-point type"
        for name in parameters.keys() & weights.keys()
        if not weights[name].is_floating_point()
    ]
    if problems:
        listed = "\n".join(f"  {problem}" for problem in sorted(problems))
        raise StorageError(
            f"{path}: does not match the configuration of the model:\n{listed}\n{remedy}"
        )
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])
