"""Encoders of images: what they hand over is a grid of places to look at, and a summary."""

import torch
from torch import Tensor, nn

from seqloom.core.batch import Images, Packing, Source
from seqloom.models.interface import EncoderModule, Memory
from seqloom.nn.convolution import Crop, Patches, ResidualNetwork
from seqloom.nn.dropout import Dropout
from seqloom.nn.stack import stack
from seqloom.nn.transformer import EncoderLayer


class ImageEncoder(EncoderModule):
    """Crops the images and makes a Memory of what `look` finds in them.

    The summary, what a decoder without attention starts from, is the mean over the grid.
    """

    max_length = None

    def __init__(self, crop: Crop) -> None:
        super().__init__()
        self.crop = crop

    def look(self, images: Tensor) -> Tensor:
        """(B, 3, N, N) -> (B, G, D)"""
        raise NotImplementedError

    def forward(self, source: Source, packing: Packing | None = None) -> Memory:
        assert isinstance(source, Images), "images are read here"
        assert packing is None, "a row of a batch has one image"
        states = self.look(self.crop(source.values))
        everywhere = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
        return Memory(states, everywhere, states.mean(1, keepdim=True))


class ConvolutionEncoder(ImageEncoder):
    """A residual network; position s of the memory is cell s of its grid, in reading order."""

    def __init__(self, crop: Crop, network: ResidualNetwork, width: int, dropout: float) -> None:
        super().__init__(crop)
        self.network = network
        self.fit = nn.Linear(network.width, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def look(self, images: Tensor) -> Tensor:
        cells = self.network(images).flatten(2).transpose(1, 2)  # (B, G, C)
        return self.dropout(self.norm(self.fit(cells)))


class PatchEncoder(ImageEncoder):
    """A Transformer over patches (Dosovitskiy et al. 2021): nothing here knows that cells which
    touch belong together; it has to be learned."""

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
        self.layers = stack(layers)
        self.norm = norm
        self.dropout = Dropout(dropout)

    def compile_parts(self) -> None:
        for layer in self.layers:
            layer.compile(dynamic=False)

    def look(self, images: Tensor) -> Tensor:
        stream = self.dropout(self.patches(images))
        everywhere = torch.ones(1, 1, 1, stream.shape[1], dtype=torch.bool, device=stream.device)
        for layer in self.layers:
            stream = layer(stream, everywhere)
        return self.norm(stream)
