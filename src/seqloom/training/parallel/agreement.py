"""Checks that all ranks train the same model on the same data with the same software."""

import platform
from collections.abc import Mapping
from typing import Any

import torch

from seqloom import __version__
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import ConfigError
from seqloom.training.distributed import World


def check_equal_settings(config: RunConfig, world: World) -> None:
    """Raise a ConfigError if ranks have different recipes or software versions.

    The error lists all differences.
    """
    facts = flatten_settings(config.model_dump()) | {
        "device": world.device.type,
        "seqloom": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    check_equal_facts(facts, world)


def check_equal_facts(facts: Mapping[str, object], world: World) -> None:
    """Raise a ConfigError if ranks pass different values. The error lists all differences.

    facts: values that must be equal on all ranks, by name
    """
    first, *others = world.gather(dict(facts))
    differences = [
        f"  {name}: {first.get(name)!r} on rank 0, {other.get(name)!r} on rank {rank}"
        for rank, other in enumerate(others, 1)
        for name in sorted(first.keys() | other.keys())
        if first.get(name) != other.get(name)
    ]
    if differences:
        raise ConfigError(
            "the ranks of this job do not train the same model:\n"
            + "\n".join(differences)
            + "\nStart every machine with the same command, the same files and the same versions."
        )


def flatten_settings(tree: Any, path: str = "") -> dict[str, object]:
    """Map the path of every setting, such as "training.steps", to its value."""
    if isinstance(tree, dict):
        pairs = [(f"{path}.{key}".strip("."), value) for key, value in tree.items()]
    elif isinstance(tree, list | tuple):
        pairs = [(f"{path}[{index}]", value) for index, value in enumerate(tree)]
    else:
        return {path: tree}
    flat: dict[str, object] = {}
    for key, value in pairs:
        flat |= flatten_settings(value, key)
    return flat
