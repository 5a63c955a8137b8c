"""Model: an optional encoder and a decoder."""

import torch
from torch import nn

from seqloom.core.batch import Batch, Packing, Source
from seqloom.models.interface import (
    DecoderModule,
    DecoderOutput,
    EncoderModule,
    Limits,
    Memory,
    ModelPart,
)


class Model(nn.Module):
    """Maps a source to a target. Without an encoder it is a language model."""

    def __init__(self, encoder: EncoderModule | None, decoder: DecoderModule) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    @property
    def parts(self) -> list[ModelPart]:
        """The encoder, if there is one, and the decoder."""
        return [self.decoder] if self.encoder is None else [self.encoder, self.decoder]

    @property
    def source_limits(self) -> Limits:
        """Limits of the source length in tokens, as a dictionary {name of the setting: limit}."""
        limits = _full_names("decoder", self.decoder.source_limits)
        if self.encoder is not None:
            limits |= _full_names("encoder", self.encoder.source_limits)
        return limits

    @property
    def target_limits(self) -> Limits:
        """Limits of the target length in tokens, as a dictionary {name of the setting: limit}."""
        return _full_names("decoder", self.decoder.target_limits)

    @property
    def max_source_length(self) -> int | None:
        """Maximum number of source tokens, including END; None means unlimited."""
        return min(self.source_limits.values(), default=None)

    @property
    def max_target_length(self) -> int | None:
        """Maximum number of target tokens, including END; None means unlimited."""
        return min(self.target_limits.values(), default=None)

    def encode(self, source: Source | None, size: int, packing: Packing | None = None) -> Memory:
        """Encode the source. Return an encoder output without positions if `source` is None.

        size: batch size of the result if `source` is None, as for a language model
        """
        if source is not None:
            assert self.encoder is not None, "a model without encoder cannot encode a source"
            return self.encoder(source, packing)
        return self._empty_memory(size)

    def _empty_memory(self, size: int) -> Memory:
        parameter = next(self.parameters())
        return Memory(
            states=parameter.new_zeros(size, 0, 0),
            mask=torch.zeros(size, 0, dtype=torch.bool, device=parameter.device),
            summary=parameter.new_zeros(size, 0, 0),
        )

    def forward(self, batch: Batch) -> DecoderOutput:
        """Compute the output at every target position, with teacher forcing."""
        if self.encoder is None:
            memory = self._empty_memory(batch.size)
        else:
            memory = self.encoder(batch.source, batch.packing)
        return self.decoder(batch.inputs.values, memory, batch.packing)


def _full_names(part: str, limits: Limits) -> Limits:
    return {f"model.{part}.{setting}": limit for setting, limit in limits.items()}
