"""[model]: an encoder, a decoder, and checks that they fit together."""

from typing import Annotated, Literal, Self

from pydantic import model_validator

from seqloom.config.extensions.section import list_extensions
from seqloom.config.extensions.unions import ByKind
from seqloom.config.schema import encoder_decoder, recurrent, transformer
from seqloom.config.schema.encoder_decoder import DecoderConfig, EncoderConfig
from seqloom.config.schema.section import Section

PARTS = (encoder_decoder, recurrent, transformer)
"""The modules that define the kinds of encoders and decoders. Importing a module registers them."""


class ModelConfig(Section):
    """A model: an encoder and a decoder, or a decoder only."""

    encoder: Annotated[EncoderConfig, ByKind()]
    """Encoder of the source."""
    decoder: Annotated[DecoderConfig, ByKind()]
    """Decoder of the target."""
    tie: Literal["none", "output", "all"] = "none"
    """Which matrices are shared: "output" shares the decoder's embedding with the output layer,
    "all" shares the encoder's embedding as well (requires text.shared = true). Saves parameters,
    and helps with little data. Default: "none"."""

    @property
    def has_encoder(self) -> bool:
        """False for a language model."""
        return self.encoder.reads != "nothing"

    @property
    def supports_packing(self) -> bool:
        """True if the model supports packing, which puts several pairs into one row of a batch."""
        return self.encoder.supports_packing and self.decoder.supports_packing

    @property
    def is_static(self) -> bool:
        """True if the model runs the same operations for all batches of one shape."""
        return all(part.is_static for part in list_extensions(self).values())

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.has_encoder:
            problems = self.decoder.encoder_problems(self.encoder)
        else:
            problems = self.decoder.problems_without_encoder()
        if self.tie != "none":
            problems += self._tie_problems()
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _tie_problems(self) -> list[str]:
        problems = self.decoder.tie_problems()
        if self.tie == "output" or not self.decoder.has_embedding:
            return problems
        problems += self.encoder.tie_problems()
        source_width, target_width = self.encoder.shared_width, self.decoder.shared_width
        if None not in (source_width, target_width) and source_width != target_width:
            problems.append(
                f"tie: embeddings of width {source_width} (encoder) and {target_width} "
                "(decoder) cannot be one matrix; set both embedding widths to the same value"
            )
        return problems
