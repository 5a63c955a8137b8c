"""Settings of image encoders."""

from typing import Literal, Self

from pydantic import Field, model_validator

from seqloom.config.schema.section import Section
from seqloom.config.schema.transformer import LayerStackConfig

GROUPS = 8
"""Number of groups in group normalisation. The number of channels of each stage must be a multiple
of this number."""


class ImageAugmentationConfig(Section):
    """Augmentation of training images, in addition to random crops."""

    mirror: bool = True
    """Mirror training images at random. Set it to false if captions say "left" or "right".
    Default: true."""
    crop_scale: float = Field(1.0, gt=0, le=1)
    """Minimum side of a random crop, as a share of the image's side. Crops are scaled to task.size.
    1.0 switches scaling off, and crops are then always of size task.size; 0.6 helps with few
    images. Default: 1.0."""
    color_jitter: float = Field(0.0, ge=0, lt=1)
    """Largest relative change of brightness and contrast. 0.0 switches this off. Default: 0.0."""


class ConvolutionEncoderConfig(ImageAugmentationConfig):
    """A residual convolutional network that turns an image into a grid of vectors. Each stage
    halves the height and width of the grid."""

    kind: Literal["convolution"] = "convolution"
    width: int = Field(256, gt=0)
    """Width of the vectors that the decoder attends to, one for each cell of the grid. Default:
    256."""
    channels: tuple[int, ...] = (64, 128, 256)
    """Number of channels of each stage. The number of stages determines the grid: three stages
    reduce 80 x 80 pixels to 10 x 10 cells. Default: [64, 128, 256]."""
    blocks: int = Field(2, ge=1)
    """Number of residual blocks, of two convolutions each, per stage. Default: 2."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on the output vectors. Default: 0.1."""

    @property
    def state_width(self) -> int:
        """Width of the encoder's output vectors. The output is a grid with one vector per cell."""
        return self.width

    @model_validator(mode="after")
    def _check(self) -> Self:
        invalid = [str(n) for n in self.channels if n <= 0 or n % GROUPS]
        if not self.channels or invalid:
            problem = f"{', '.join(invalid)} not allowed" if invalid else "must not be empty"
            raise ValueError(
                f"channels: {problem}; the number of channels of each stage must be a positive "
                f"multiple of {GROUPS}, for example channels = [64, 128, 256]"
            )
        return self


class PatchEncoderConfig(ImageAugmentationConfig, LayerStackConfig):
    """A Transformer over square patches of the image (Dosovitskiy et al. 2021)."""

    kind: Literal["patches"] = "patches"
    patch_size: int = Field(8, ge=1)
    """Side of a patch in pixels. Must divide task.size. Default: 8."""
