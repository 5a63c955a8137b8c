"""Settings of the decoder that predicts labels."""

from typing import Literal

from pydantic import Field

from seqloom.config.schema.section import Section


class LabelsDecoderConfig(Section):
    """Predicts one label for the whole source, or exactly one for each source position."""

    kind: Literal["labels"] = "labels"
    pooling: Literal["none", "last", "mean"] = "none"
    """States that a label is predicted from. "none": one label for each source position, from
    the state there (sequence labelling). One label for the whole source (classification): "last",
    from the encoder's last state; "mean", from the mean of its states. Default: "none"."""
    previous: bool = False
    """Also read the previous label. Decoding then searches for the best sequence of labels.
    Default: false."""
    embedding: int = Field(32, gt=0)
    """Width of the embedding of the previous label. Default: 32."""
    hidden: int | None = Field(None, gt=0)
    """Width of a tanh layer before the output layer. Default: no such layer."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on the encoder's states. Default: 0.0."""

    @property
    def labels_each_position(self) -> bool:
        """True if there is one label for each source position."""
        return self.pooling == "none"
