"""Settings of encoders and decoders: what seqloom asks of each kind, and the kinds that are neither
recurrent networks nor Transformers."""

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from seqloom.config.extensions.section import ExtensionConfig
from seqloom.config.schema.attention import AttentionConfig
from seqloom.config.schema.section import PartConfig
from seqloom.extensions.registry import FORM, Point

GROUPS = 8
"""Number of groups in group normalisation. The number of channels of each stage must be a multiple
of this number."""


@dataclass(frozen=True)
class LastStates:
    """The last states of a recurrent encoder: the cell, the number of layers and the width of each."""

    cell: str
    layers: int
    width: int

    def __str__(self) -> str:
        return f"{self.layers} x {self.width} ({self.cell})"


class EncoderConfig(PartConfig):
    """Settings of an encoder."""

    extension_point: ClassVar[Point] = "encoder"
    facts: ClassVar[tuple[str, ...]] = ("supports_packing",)
    reads: ClassVar[Literal["sequences", "images", "any", "nothing"]] = "sequences"
    """The sources that the encoder reads. "nothing": there is no encoder."""
    supports_packing: ClassVar[bool] = False
    """True if a row of a batch may contain several sources. A recurrent network would carry its
    state from one source into the next."""

    @property
    def state_width(self) -> int:
        """Width of an encoder state, the encoder's output vector at one position."""
        raise NotImplementedError

    @property
    def last_states(self) -> LastStates | None:
        """The last states of a recurrent encoder; None for other encoders."""
        return None

    @property
    def summary_width(self) -> int:
        """Width of a vector in `Memory.summary`: a last state, or the mean of all states."""
        return self.state_width

    @property
    def summary_layers(self) -> int:
        """Number of vectors in `Memory.summary`."""
        return 1

    @property
    def shared_width(self) -> int | None:
        """Width of the embedding that the decoder can share; None if there is none."""
        return None

    @property
    def compiled_width(self) -> int:
        """Sum of the widths of all layers that torch.compile makes faster."""
        return 0

    @property
    def layer_shape(self) -> dict[str, object]:
        """The settings that are equal in encoder and decoder in the formats of other toolkits."""
        return {}

    def marian_problems(self) -> list[str]:
        """Return why the Marian format cannot express the encoder."""
        return [f"model.encoder.kind: '{self.kind}' is not possible; train a 'transformer'"]

    def tie_problems(self) -> list[str]:
        """Return why the decoder cannot share the embedding (`tie = "all"`)."""
        return [f"tie: the encoder '{self.kind}' is outside seqloom; use tie = 'output'"]

    def vocabulary_problems(self, tokens: int) -> list[str]:
        """Return why the encoder cannot read a vocabulary of this size."""
        return []

    def image_problems(self, size: int) -> list[str]:
        """Return why the encoder cannot read images of this size."""
        return []


class NoEncoderConfig(EncoderConfig):
    """No encoder: the model is a language model."""

    builds: ClassVar[str] = ""
    reads: ClassVar[Literal["sequences", "images", "any", "nothing"]] = "nothing"
    supports_packing: ClassVar[bool] = True
    kind: Literal["none"] = "none"

    @property
    def state_width(self) -> int:
        return 0

    def tie_problems(self) -> list[str]:
        return ["tie: there is no encoder; use tie = 'output'"]


class EncoderExtensionConfig(ExtensionConfig, EncoderConfig):
    """An encoder outside seqloom: a subclass of `seqloom.models.EncoderModule`. Its setting `width`
    is the width of its states."""

    builds: ClassVar[str] = FORM
    extension_point: ClassVar[Point] = "encoder"
    reads: ClassVar[Literal["sequences", "images", "any", "nothing"]] = "any"
    required_settings: ClassVar[tuple[str, ...]] = ("width",)

    @property
    def state_width(self) -> int:
        return int(self.part_settings["width"])


class ImageEncoderConfig(EncoderConfig):
    """Settings of an image encoder: augmentation of training images, in addition to random crops."""

    reads: ClassVar[Literal["sequences", "images", "any", "nothing"]] = "images"
    mirror: bool = True
    """Mirror training images at random. Set it to false if captions say "left" or "right".
    Default: true."""
    crop_scale: float = Field(1.0, gt=0, le=1)
    """Minimum side of a random crop, as a share of the image's side. Crops are scaled to task.size.
    1.0 switches scaling off, and crops are then always of size task.size; 0.6 helps with few
    images. Default: 1.0."""
    color_jitter: float = Field(0.0, ge=0, lt=1)
    """Largest relative change of brightness and contrast. 0.0 switches this off. Default: 0.0."""

    def tie_problems(self) -> list[str]:
        return ["tie: images have no embedding to share; use tie = 'output'"]


class ConvolutionEncoderConfig(ImageEncoderConfig):
    """A residual convolutional network that turns an image into a grid of vectors. Each stage
    halves the height and width of the grid."""

    builds: ClassVar[str] = "seqloom.models.build:build_convolution_encoder"
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


class DecoderConfig(PartConfig):
    """Settings of a decoder."""

    extension_point: ClassVar[Point] = "decoder"
    facts: ClassVar[tuple[str, ...]] = ("supports_packing",)
    supports_packing: ClassVar[bool] = False
    """True if a row of a batch may contain several targets."""
    predicts_labels: ClassVar[bool] = False
    """True if the source determines the number of outputs, which are labels."""
    has_embedding: ClassVar[bool] = False
    """True if the settings contain an embedding of the target tokens."""
    no_attention_reason: ClassVar[str] = (
        "its decoder has no attention; train with model.decoder.attention.kind = 'attention'"
    )
    """Why a run with this decoder has no attention weights, if it has none."""

    @property
    def labels_each_position(self) -> bool:
        """True if there is one label for each source position."""
        return False

    @property
    def cross_attention(self) -> AttentionConfig | None:
        """Attention over the encoder's states; None if the settings contain none."""
        return None

    @property
    def copies(self) -> bool:
        """True if the decoder copies source tokens."""
        return False

    @property
    def query_width(self) -> int:
        """Width of the states from which attention computes its queries."""
        raise NotImplementedError

    @property
    def shared_width(self) -> int | None:
        """Width of the embedding that the output layer or the encoder can share."""
        return None

    @property
    def compiled_width(self) -> int:
        """Sum of the widths of all layers that torch.compile makes faster."""
        return 0

    @property
    def layer_shape(self) -> dict[str, object]:
        """The settings that are equal in encoder and decoder in the formats of other toolkits."""
        return {}

    def marian_problems(self) -> list[str]:
        """Return why the Marian format cannot express the decoder."""
        return [f"model.decoder.kind: '{self.kind}' is not possible; train a 'transformer'"]

    def problems_without_encoder(self) -> list[str]:
        """Return why the decoder cannot be a language model."""
        if self.copies:
            return ["decoder.copying: there is no encoder to copy from; set it to false"]
        return []

    def encoder_problems(self, encoder: EncoderConfig) -> list[str]:
        """Return why the decoder does not fit this encoder."""
        attention = self.cross_attention
        if attention is not None:
            return attention.cross_problems(self.query_width, encoder.state_width)
        if self.copies:
            return [
                "decoder.copying: copies the source positions that attention selects, but "
                "attention.kind is 'none'; switch attention on, or set copying = false"
            ]
        return []

    def tie_problems(self) -> list[str]:
        """Return why the output layer cannot share the decoder's embedding."""
        return [f"tie: the decoder '{self.kind}' is outside seqloom; use tie = 'none'"]

    def vocabulary_problems(self, tokens: int) -> list[str]:
        """Return why the decoder cannot write a vocabulary of this size."""
        return []

    def forecast_problems(self) -> list[str]:
        """Return why the decoder cannot predict vectors instead of tokens."""
        return []


class DecoderExtensionConfig(ExtensionConfig, DecoderConfig):
    """A decoder outside seqloom: a subclass of `seqloom.models.DecoderModule`."""

    builds: ClassVar[str] = FORM
    extension_point: ClassVar[Point] = "decoder"
    no_attention_reason: ClassVar[str] = "its decoder returns no attention weights from `step`"


class LabelsDecoderConfig(DecoderConfig):
    """Predicts one label for the whole source, or one label for each source position."""

    builds: ClassVar[str] = "seqloom.models.build:build_label_decoder"
    predicts_labels: ClassVar[bool] = True
    no_attention_reason: ClassVar[str] = (
        "a label decoder predicts each label from one state or from a summary of all; train with "
        "model.decoder.kind = 'recurrent' or 'transformer' to get attention"
    )
    kind: Literal["labels"] = "labels"
    pooling: Literal["none", "last", "mean"] = "none"
    """How encoder states are combined. "none": they are not combined, and each source position has
    a label (sequence labelling). "last" and "mean": the whole source has one label, which is
    predicted from the last state or from the mean of all states (classification). Default:
    "none"."""
    previous: bool = False
    """Let the decoder also read the previous label. Then decoding searches for the best sequence of
    labels. Default: false."""
    embedding: int = Field(32, gt=0)
    """Width of the embedding of the previous label. Default: 32."""
    hidden: int | None = Field(None, gt=0)
    """Width of a tanh layer before the output layer. Default: no such layer."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on the encoder's states. Default: 0.0."""

    @property
    def labels_each_position(self) -> bool:
        return self.pooling == "none"

    def problems_without_encoder(self) -> list[str]:
        return [
            "decoder: there is no encoder whose states could be labelled; set "
            "encoder.kind = 'recurrent' or another encoder"
        ]

    def encoder_problems(self, encoder: EncoderConfig) -> list[str]:
        if self.pooling == "last" and encoder.last_states is None:
            return [
                "decoder.pooling 'last' needs a recurrent encoder: a Transformer has no last state; "
                "use 'mean'"
            ]
        return []

    def tie_problems(self) -> list[str]:
        return ["tie: labels have no embedding to share; use tie = 'none'"]
