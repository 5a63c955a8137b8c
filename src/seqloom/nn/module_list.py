"""A list of modules that keeps its element type."""

from collections.abc import Sequence
from typing import TypeVar, cast

from torch import nn

Layer = TypeVar("Layer", bound=nn.Module)


def module_list(layers: Sequence[Layer]) -> Sequence[Layer]:
    """An nn.ModuleList that type checkers treat as a sequence of `Layer`."""
    return cast("Sequence[Layer]", nn.ModuleList(layers))
