"""The decoder that gives labels, and its switches."""

from typing import Literal

from pydantic import Field

from seqloom.config.section import Section


class LabelsDecoderConfig(Section):
    """A label for the whole source, or one for each of its positions, never more and never fewer."""

    kind: Literal["labels"] = "labels"
    reads: Literal["positions", "last", "mean"] = "positions"
    """positions: a label for each source position, from the encoder's state there (many to many,
    in step). One label for the whole source (many to one): last, from the encoder's last state;
    mean, from the mean of its states."""
    previous: bool = False
    """Also read the label that was put out before; then labels are searched for as words are."""
    embedding: int = Field(32, gt=0)
    """Width of the vector for that label."""
    hidden: int | None = Field(None, gt=0)
    """Width of a tanh layer before the labels. Left out: none."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """On what is read."""

    @property
    def one_for_each_position(self) -> bool:
        return self.reads == "positions"
