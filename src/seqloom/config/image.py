"""Encoders of images, and their switches."""

from typing import Literal, Self

from pydantic import Field, model_validator

from seqloom.config.section import Section
from seqloom.config.transformer import LayersConfig

GROUPS = 8


class SightConfig(Section):
    """How images are varied in training, beside being cut and mirrored: no image looks the same
    twice, so that few of them teach more."""

    zoom: float = Field(1.0, gt=0, le=1)
    """The least share of an image's side that is looked at, scaled to the size that is wanted."""
    light: float = Field(0.0, ge=0, lt=1)
    """By how much of itself brightness and contrast may change."""


class ConvolutionEncoderConfig(SightConfig):
    """A residual network. Each of its stages halves the grid."""

    kind: Literal["convolution"] = "convolution"
    width: int = Field(256, gt=0)
    """Of the vectors that the decoder sees, one for each cell of the grid."""
    channels: tuple[int, ...] = (64, 128, 256)
    """Of each stage; their number decides the grid: 80 pixels are 10 x 10 cells after three."""
    blocks: int = Field(2, ge=1)
    """Residual blocks of two convolutions in each stage."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """On those vectors."""

    @property
    def state_width(self) -> int:
        return self.width

    @model_validator(mode="after")
    def _possible(self) -> Self:
        odd = [str(channels) for channels in self.channels if channels <= 0 or channels % GROUPS]
        if not self.channels or odd:
            raise ValueError(
                f"channels: {', '.join(odd) or 'there are none'}; every stage needs a multiple of "
                f"{GROUPS}, for example channels = [64, 128, 256]"
            )
        return self


class PatchEncoderConfig(SightConfig, LayersConfig):
    """A Transformer over square patches of the image."""

    kind: Literal["patches"] = "patches"
    patch_size: int = Field(8, ge=1)
    """Pixels along one side of a patch."""
