"""Image encoders. The source positions are the cells of a grid over the image."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from seqloom.core.batch import Images, Packing, Source
from seqloom.models.interface import EncoderModule, Memory, module_list
from seqloom.nn.convolution import Crop, Patches, ResidualNetwork
from seqloom.nn.dropout import Dropout
from seqloom.nn.transformer import EncoderLayer


class ImageEncoder(EncoderModule):
    """Base class: crops the images and encodes them as a grid of G cells, in reading order.

    `Memory.summary` is the mean of the cells. A recurrent decoder can compute its initial state
    from this mean.
    """

    def __init__(self, crop: Crop) -> None:
        super().__init__()
        self.crop = crop

    def encode_grid(self, images: Tensor) -> Tensor:
        """Encode square images, N pixels wide, as G grid cells: (B, 3, N, N) -> (B, G, D)"""
        raise NotImplementedError

    def forward(self, source: Source, packing: Packing | None = None) -> Memory:
        assert isinstance(source, Images), "an image encoder needs images"
        assert packing is None, "images cannot be packed: a row of a batch is one image"
        states = self.encode_grid(self.crop(source.values))
        mask = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
        return Memory(states, mask, states.mean(1, keepdim=True))


class ConvolutionEncoder(ImageEncoder):
    """An image encoder with a residual network and a projection to the output width."""

    def __init__(self, crop: Crop, network: ResidualNetwork, width: int, dropout: float) -> None:
        super().__init__(crop)
        self.network = network
        self.projection = nn.Linear(network.width, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    @property
    def grid_cells(self) -> int:
        return self.network.output_side(self.crop.size) ** 2

    def encode_grid(self, images: Tensor) -> Tensor:
        cells = self.network(images).flatten(2).transpose(1, 2)  # (B, G, C)
        return self.dropout(self.norm(self.projection(cells)))


class PatchEncoder(ImageEncoder):
    """A Transformer encoder over the patches of an image (Dosovitskiy et al. 2021).

    Unlike a convolutional network, it has to learn which patches are neighbours.
    """

    def __init__(
        self,
        crop: Crop,
        patches: Patches,
        layers: list[EncoderLayer],
        norm: nn.Module,
        dropout: float,
    ) -> None:
        super().__init__(crop)
        self.patches = patches
        self.layers = module_list(layers)
        self.norm = norm
        self.dropout = Dropout(dropout)

    @property
    def grid_cells(self) -> int:
        return len(self.patches.positions)

    @property
    def layer_stack(self) -> Sequence[nn.Module]:
        return self.layers

    def encode_grid(self, images: Tensor) -> Tensor:
        stream = self.dropout(self.patches(images))
        mask = torch.ones(1, 1, 1, stream.shape[1], dtype=torch.bool, device=stream.device)
        for layer in self.layers:
            stream = layer(stream, mask)
        return self.norm(stream)
