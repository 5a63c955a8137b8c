"""Settings of Transformer encoders and decoders."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from seqloom.config.extensions.unions import ByKind
from seqloom.config.schema.attention import (
    TRANSFORMER_ATTENTION,
    AttentionConfig,
    ScoreConfig,
    heads_problems,
)
from seqloom.config.schema.embedding import (
    EmbeddingConfig,
    LearnedEmbeddingConfig,
    PositionsConfig,
    SinusoidalPositionsConfig,
    position_problems,
)
from seqloom.config.schema.encoder_decoder import (
    DecoderConfig,
    EncoderConfig,
    ImageEncoderConfig,
)
from seqloom.config.schema.section import Section, names_of_kinds


class LayerStackConfig(Section):
    """Settings of a stack of Transformer layers. The inputs are tokens or image patches."""

    width: int = Field(256, gt=0)
    """Width of the residual stream. Default: 256."""
    layers: int = Field(3, ge=1)
    """Number of layers. Default: 3."""
    feedforward: int = Field(1024, gt=0)
    """Number of hidden units of the feed-forward networks. Default: 1024."""
    activation: Literal["relu", "gelu", "gelu-tanh", "silu"] = "relu"
    """Activation of the feed-forward networks. "gelu-tanh" approximates "gelu" with tanh. "silu" is
    also called swish. Default: "relu"."""
    norm: Literal["pre", "post"] = "pre"
    """Position of the layer norm: "pre" before each sublayer, "post" after its residual sum, as in
    Vaswani et al. 2017. "pre" trains more stably. Default: "pre"."""
    attention: AttentionConfig = TRANSFORMER_ATTENTION
    """Self-attention, and in a decoder also the attention over the encoder's states. Default:
    scaled dot products with 8 heads."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on the embeddings and on the output of each sublayer. Default: 0.1."""
    feedforward_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout inside the feed-forward networks. Slow on CPUs. Default: 0.0."""

    @property
    def state_width(self) -> int:
        """Width of the output vector of one position."""
        return self.width

    @property
    def compiled_width(self) -> int:
        """Sum of the widths of all layers."""
        return self.layers * self.width

    @model_validator(mode="after")
    def _check(self) -> Self:
        if problems := self._problems():
            raise ValueError("\n".join(problems))
        return self

    def _problems(self) -> list[str]:
        problems: list[str] = []
        attention = self.attention
        inner = attention.width or self.width
        for width in attention.head_widths(self.width, self.width):
            problems += heads_problems(width, attention.heads)
        if attention.score.is_positional:
            problems.append(
                f"attention.score '{attention.score.kind}' is for recurrent networks: the attention "
                "settings of a Transformer also apply to its self-attention, which needs scores of "
                f"queries and keys; use score {names_of_kinds(ScoreConfig, 'is_positional', value=False)}"
            )
        value_width = self.width if attention.values == "states" else inner
        if value_width != self.width and not attention.output_projection:
            problems.append(
                f"attention returns vectors of width {value_width}, which cannot be added to a "
                f"residual stream of width {self.width}; set attention.output_projection = true, or remove "
                "attention.width"
            )
        return problems


class TransformerLayersConfig(LayerStackConfig):
    """Settings shared by Transformer encoders and decoders of token sequences."""

    embedding: Annotated[EmbeddingConfig, ByKind()] = LearnedEmbeddingConfig()
    """Embedding of the tokens. Default: kind "learned"."""
    positions: Annotated[PositionsConfig, ByKind()] = SinusoidalPositionsConfig()
    """Position encoding. Default: kind "sinusoidal"."""

    @property
    def shared_width(self) -> int | None:
        """Width of the embedding; None for one-hot embeddings."""
        return self.embedding.vector_width(self.width)

    @property
    def layer_shape(self) -> dict[str, object]:
        """The settings that are equal in encoder and decoder in the formats of other toolkits."""
        heads = self.attention.heads
        return {"width": self.width, "attention.heads": heads, "activation": self.activation}

    def marian_layer_problems(self, name: str) -> list[str]:
        """Return why the Marian format cannot express the layers.

        name: the recipe section with these settings, such as "model.encoder"
        """
        problems = []
        if self.norm != "post":
            problems.append(
                f"{name}.norm: Marian normalises after each sublayer; train with norm = 'post'"
            )
        if self.positions != SinusoidalPositionsConfig(frequencies="vaswani", layout="halves"):
            problems.append(
                f"{name}.positions: train with positions = {{ kind = 'sinusoidal', frequencies = "
                "'vaswani', layout = 'halves' }"
            )
        if not self.embedding.is_learned:
            problems.append(f"{name}.embedding.kind: train with embedding.kind = 'learned'")
        elif self.embedding.own_width not in (None, self.width):
            problems.append(f"{name}.embedding.width: must equal {name}.width; remove it")
        for setting in ("score", "projection", "projection_layers", "values", "selection"):
            if getattr(self.attention, setting) != getattr(TRANSFORMER_ATTENTION, setting):
                problems.append(
                    f"{name}.attention.{setting}: must be the default of Transformers; remove it"
                )
        if self.attention.width not in (None, self.width):
            problems.append(f"{name}.attention.width: must equal {name}.width; remove it")
        if not self.attention.output_projection:
            problems.append(f"{name}.attention.output_projection: must be true")
        return problems

    def vocabulary_problems(self, tokens: int) -> list[str]:
        """Return why a vocabulary of this size is not possible."""
        return position_problems(self.embedding, self.positions, self.width, tokens)

    def _problems(self) -> list[str]:
        problems = position_problems(self.embedding, self.positions, self.width)
        problems += super()._problems()
        attention = self.attention
        inner = attention.width or self.width
        head_width = (self.width if attention.projection == "none" else inner) // attention.heads
        if not problems and self.positions.rotates and head_width % 2:
            problems.append(
                f"rotary positions rotate pairs of numbers, but a head is {head_width} wide; "
                "make width divided by heads even"
            )
        return problems


class TransformerEncoderConfig(TransformerLayersConfig, EncoderConfig):
    """A Transformer encoder (Vaswani et al. 2017)."""

    builds: ClassVar[str] = "seqloom.models.build:build_transformer_encoder"
    supports_packing: ClassVar[bool] = True
    kind: Literal["transformer"] = "transformer"
    remove_residual: int | None = Field(None, ge=1)
    """The layer, counted from 1, whose attention has no residual connection. This makes the
    encoder's output depend less on the word order of the source, and improves translation between
    languages that were never paired in training (Liu et al. 2021). Default: every layer has a
    residual connection."""

    def marian_problems(self) -> list[str]:
        problems = self.marian_layer_problems("model.encoder")
        if self.remove_residual is not None:
            problems.append("model.encoder.remove_residual: is not possible; train without it")
        return problems

    def tie_problems(self) -> list[str]:
        return self.embedding.tie_problems("encoder")

    @model_validator(mode="after")
    def _check_remove_residual(self) -> Self:
        if self.remove_residual is not None and self.remove_residual > self.layers:
            raise ValueError(
                f"remove_residual: there is no layer {self.remove_residual}, because layers = "
                f"{self.layers}; for the middle layer, set remove_residual = {(self.layers + 1) // 2}"
            )
        return self


class PatchEncoderConfig(LayerStackConfig, ImageEncoderConfig):
    """A Transformer over square patches of the image (Dosovitskiy et al. 2021)."""

    builds: ClassVar[str] = "seqloom.models.build:build_patch_encoder"
    kind: Literal["patches"] = "patches"
    patch_size: int = Field(8, ge=1)
    """Side of a patch in pixels. Must divide task.size. Default: 8."""

    def image_problems(self, size: int) -> list[str]:
        if size % self.patch_size == 0:
            return []
        return [
            f"model.encoder.patch_size: {size} pixels cannot be split into patches of "
            f"{self.patch_size}; change one of the two"
        ]


class TransformerDecoderConfig(TransformerLayersConfig, DecoderConfig):
    """A Transformer decoder (Vaswani et al. 2017)."""

    builds: ClassVar[str] = "seqloom.models.build:build_transformer_decoder"
    has_embedding: ClassVar[bool] = True
    supports_packing: ClassVar[bool] = True
    kind: Literal["transformer"] = "transformer"
    copying: bool = False
    """Let the decoder copy source tokens, which helps with names and numbers (See et al. 2017).
    Requires text.shared = true. Default: false."""
    start: Literal["learned", "zero", "end", "padding"] = "learned"
    """What the decoder reads before the first target token: "learned" is the embedding of the start
    token, "zero" a vector of zeros (Marian), "end" the embedding of the end token (M2M100, NLLB),
    "padding" the embedding of the padding token. Default: "learned"."""
    special_outputs: bool = True
    """Give the padding token and the start token a logit, although they are never correct. If false,
    their probability is 0, which an export to the format of Marian requires. Default: true."""

    @property
    def cross_attention(self) -> AttentionConfig:
        return self.attention

    @property
    def copies(self) -> bool:
        return self.copying

    @property
    def query_width(self) -> int:
        return self.width

    def encoder_problems(self, encoder: EncoderConfig) -> list[str]:
        problems = super().encoder_problems(encoder)
        attention, width = self.attention, encoder.state_width
        if attention.values == "states" and not attention.output_projection and width != self.width:
            problems.append(
                f"decoder.attention returns encoder states of width {width}, which cannot be added to "
                f"a residual stream of width {self.width}; set attention.output_projection = true"
            )
        return problems

    def tie_problems(self) -> list[str]:
        if not self.embedding.is_learned:
            return self.embedding.tie_problems("decoder")
        if self.shared_width != self.width:
            return ["tie: decoder.embedding.width must equal decoder.width"]
        return []

    def marian_problems(self) -> list[str]:
        problems = self.marian_layer_problems("model.decoder")
        if self.copying:
            problems.append("model.decoder.copying: is not possible; train with copying = false")
        if self.start != "zero":
            problems.append(
                "model.decoder.start: the decoder must start from zeros; train with start = 'zero'"
            )
        if self.special_outputs:
            problems.append(
                "model.decoder.special_outputs: Marian has no logits for padding and start; train with "
                "special_outputs = false"
            )
        return problems

    def forecast_problems(self) -> list[str]:
        if self.start == "learned" and self.special_outputs:
            return []
        return ["model.decoder: a forecast has no special tokens; remove start and special_outputs"]

    @model_validator(mode="after")
    def _check_start(self) -> Self:
        if self.start != "learned" and not self.embedding.is_learned:
            raise ValueError(
                f"start = '{self.start}' requires a learned embedding, but embedding.kind is "
                f"'{self.embedding.kind}'; use start = 'learned'"
            )
        if self.copying and not self.special_outputs:
            raise ValueError(
                "special_outputs: a decoder that copies needs the logits of all tokens; use "
                "special_outputs = true, or copying = false"
            )
        return self
