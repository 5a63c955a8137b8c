"""Settings of embeddings and position encodings."""

from typing import ClassVar, Literal

from pydantic import Field

from seqloom.config.schema.section import PartConfig


class EmbeddingConfig(PartConfig):
    """Settings of an embedding, which maps each token to a vector."""

    extension_point: ClassVar[str] = "embedding"
    is_learned: ClassVar[bool] = False
    """True if the vectors are learned. An output layer can then share them."""

    @property
    def own_width(self) -> int | None:
        """The width of an embedding, if the settings contain it."""
        return None

    def vector_width(self, network_width: int) -> int | None:
        """Return the width of an embedding. None: it is the size of the vocabulary, which a recipe
        does not contain.

        network_width: width of the network that reads the embeddings, which is the default
        """
        return None

    def tie_problems(self, side: str) -> list[str]:
        """Return why an output layer cannot share the vectors, of the encoder or of the decoder."""
        if self.is_learned:
            return []
        return [f"tie: the {side} has no embedding to share; use embedding 'learned'"]


class LearnedEmbeddingConfig(EmbeddingConfig):
    """A learned vector for each token."""

    builds: ClassVar[str] = "seqloom.nn.embedding:LearnedLookup"
    is_learned: ClassVar[bool] = True
    kind: Literal["learned"] = "learned"
    width: int | None = Field(None, gt=0)
    """Width of an embedding. Default: the width of the network that reads it."""
    noise: float = Field(0.0, ge=0)
    """Standard deviation of the Gaussian noise that training adds to embeddings. Default: 0.0."""
    word_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of tokens whose embedding is set to zero in training (Sennrich and Zhang 2019). Helps
    with little data; 0.1 is common. Default: 0.0."""

    @property
    def own_width(self) -> int | None:
        return self.width

    def vector_width(self, network_width: int) -> int | None:
        return self.width or network_width


class OneHotEmbeddingConfig(EmbeddingConfig):
    """No embedding: token i is the i-th unit vector."""

    builds: ClassVar[str] = "seqloom.nn.embedding:OneHotLookup"
    kind: Literal["one-hot"] = "one-hot"


class PositionsConfig(PartConfig):
    """Settings of a position encoding."""

    extension_point: ClassVar[str] = "positions"
    rotates: ClassVar[bool] = False
    """True if self-attention rotates queries and keys, instead of the network reading positions."""

    def table_width(self, vectors_width: int) -> int:
        """Return the width of the position vectors that are joined to vectors of this width."""
        return vectors_width

    def width_problems(self, vectors_width: int, vectors: str) -> list[str]:
        """Return an error message if the encoding is too wide to be added to vectors, else [].

        vectors: description of the vectors, for the message
        """
        return []


class InputPositionsConfig(PositionsConfig):
    """Settings of a position encoding that is added or appended to the embeddings."""


class NoPositionsConfig(InputPositionsConfig):
    """No position encoding."""

    builds: ClassVar[str] = "seqloom.nn.positions:Positions"
    kind: Literal["none"] = "none"


class OneHotPositionsConfig(InputPositionsConfig):
    """One-hot: position t is encoded as the t-th unit vector."""

    builds: ClassVar[str] = "seqloom.nn.positions:OneHotPositions"
    kind: Literal["one-hot"] = "one-hot"
    max_length: int = Field(256, gt=0)
    """Number of positions. Longer sequences are not possible. Default: 256."""
    join: Literal["add", "append"] = "append"
    """Add the encoding to the embedding, or append it. Default: "append"."""

    def table_width(self, vectors_width: int) -> int:
        return self.max_length if self.join == "append" else vectors_width

    def width_problems(self, vectors_width: int, vectors: str) -> list[str]:
        if self.join == "append" or self.max_length <= vectors_width:
            return []
        return [
            f"positions: one-hot positions up to {self.max_length} cannot be added to {vectors}; use "
            f"join = 'append', or max_length = {vectors_width} or less"
        ]


class SinusoidalPositionsConfig(InputPositionsConfig):
    """Sines and cosines of decreasing frequency (Vaswani et al. 2017)."""

    builds: ClassVar[str] = "seqloom.nn.positions:SinusoidalPositions"
    kind: Literal["sinusoidal"] = "sinusoidal"
    join: Literal["add", "append"] = "add"
    """Add the encoding to the embedding, or append it. Default: "add"."""
    width: int = Field(64, gt=0)
    """Width of the encoding if it is appended. An added encoding is as wide as the embedding.
    Default: 64."""
    frequencies: Literal["lecture", "vaswani", "fairseq"] = "lecture"
    """Frequencies ω_k of an encoding of width d: "lecture" is 10000^(-2k/d) with k from 1, "vaswani"
    the same with k from 0 (Vaswani et al. 2017, Marian), "fairseq" is 10000^(-k/(d/2-1)) with k from
    0 (fairseq, M2M100, NLLB). Default: "lecture"."""
    layout: Literal["interleaved", "halves"] = "interleaved"
    """Order of the entries: "interleaved" puts the sine and the cosine of a frequency side by side,
    "halves" puts all sines before all cosines (Marian, fairseq, M2M100). Default: "interleaved"."""
    offset: int = Field(0, ge=0)
    """Position of the first token. 0 in Marian, 2 in M2M100 and NLLB. Default: 0."""

    def table_width(self, vectors_width: int) -> int:
        return self.width if self.join == "append" else vectors_width


class LearnedPositionsConfig(InputPositionsConfig):
    """A learned vector for each position."""

    builds: ClassVar[str] = "seqloom.nn.positions:LearnedPositions"
    kind: Literal["learned"] = "learned"
    max_length: int = Field(256, gt=0)
    """Number of positions. Longer sequences are not possible. Default: 256."""
    join: Literal["add", "append"] = "add"
    """Add the encoding to the embedding, or append it. Default: "add"."""
    width: int = Field(64, gt=0)
    """Width of the encoding if it is appended. An added encoding is as wide as the embedding.
    Default: 64."""

    def table_width(self, vectors_width: int) -> int:
        return self.width if self.join == "append" else vectors_width


class RotaryPositionsConfig(PositionsConfig):
    """Rotary: the queries and keys of self-attention are rotated by angles that are proportional to
    the position."""

    builds: ClassVar[str] = "seqloom.nn.positions:Positions"
    rotates: ClassVar[bool] = True
    kind: Literal["rotary"] = "rotary"


def position_problems(
    embedding: EmbeddingConfig,
    positions: PositionsConfig,
    network_width: int,
    tokens: int | None = None,
) -> list[str]:
    """Return a list of one error message if the position encoding is too wide, else [].

    An encoding that is added to the embeddings must not be wider than the embeddings.

    network_width: width of the network that reads the embeddings. It is the default width of an
                   embedding
    tokens:        size of the vocabulary, which is the width of one-hot embeddings. Default: None,
                   which means that it is not known yet, and one-hot embeddings are not checked
    """
    width = embedding.vector_width(network_width)
    if width is not None:
        return positions.width_problems(width, f"embeddings of width {width}")
    if tokens is not None:
        vectors = f"one-hot tokens of a vocabulary of {tokens}"
        return positions.width_problems(tokens, vectors)
    return []
