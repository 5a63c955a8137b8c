"""Model: an encoder, if there is anything to read, and a decoder."""

import torch
from torch import nn

from seqloom.core.batch import Batch, Packing, Source
from seqloom.models.interface import DecoderModule, DecoderOutput, EncoderModule, Memory


class Model(nn.Module):
    """Reads a source, if it has an encoder, and puts out a target. Trained end to end."""

    def __init__(self, encoder: EncoderModule | None, decoder: DecoderModule) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    @property
    def max_source_length(self) -> int | None:
        """Source tokens it can read at most, END included; None means any number."""
        return None if self.encoder is None else self.encoder.max_length

    @property
    def max_target_length(self) -> int | None:
        """Target tokens it can put out at most, END included; None means any number."""
        return self.decoder.max_length

    def encode(self, source: Source | None, size: int, packing: Packing | None = None) -> Memory:
        """What the decoder may look at: `size` rows, empty ones if there is no source."""
        if source is not None:
            assert self.encoder is not None, "a model without encoder was given a source"
            return self.encoder(source, packing)
        some = next(self.parameters())
        return Memory(
            states=some.new_zeros(size, 0, 0),
            mask=torch.zeros(size, 0, dtype=torch.bool, device=some.device),
            summary=some.new_zeros(size, 0, 0),
        )

    def forward(self, batch: Batch) -> DecoderOutput:
        """Teacher-forced output for every target position."""
        memory = self.encode(batch.source, batch.size, batch.packing)
        return self.decoder(batch.inputs.values, memory, batch.packing)
