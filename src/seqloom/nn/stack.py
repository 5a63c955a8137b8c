"""A list of layers that keeps its type."""

from collections.abc import Sequence
from typing import TypeVar, cast

from torch import nn

Layer = TypeVar("Layer", bound=nn.Module)


def stack(layers: Sequence[Layer]) -> Sequence[Layer]:
    """Register layers with the module they are assigned to, still known as what they are."""
    return cast("Sequence[Layer]", nn.ModuleList(layers))
