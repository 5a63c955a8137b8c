"""Settings of attention: how queries and keys are scored, and which values are averaged."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from seqloom.config.extensions.section import ExtensionConfig
from seqloom.config.extensions.unions import ByKind
from seqloom.config.schema.section import PartConfig, Section, names_of_kinds
from seqloom.extensions.registry import FORM, Point


class ScoreConfig(PartConfig):
    """Settings of an attention score, which compares queries and keys."""

    extension_point: ClassVar[Point] = "score"
    facts: ClassVar[tuple[str, ...]] = ("compares_directly", "is_positional")
    compares_directly: ClassVar[bool] = False
    """True if the score applies no learned matrix to queries and keys. Both are then vectors of the
    same space and have the same width."""
    is_positional: ClassVar[bool] = False
    """True if the score depends only on positions, not on queries and keys."""


class DotScoreConfig(ScoreConfig):
    """Dot product: score(q, k) = q · k, divided by 1, √d or d. d is the width of a head."""

    builds: ClassVar[str] = "seqloom.nn.attention:DotScore"
    compares_directly: ClassVar[bool] = True
    kind: Literal["dot"] = "dot"
    scale: Literal["one", "sqrt", "width"] = "sqrt"
    """Divisor of the dot product: "one" is 1, "sqrt" is √d, "width" is d, where d is the width of a
    head. Default: "sqrt"."""


class BilinearScoreConfig(ScoreConfig):
    """Bilinear: score(q, k) = k^T W q with a learned matrix W (linear multiplicative attention)."""

    builds: ClassVar[str] = "seqloom.nn.attention:BilinearScore"
    kind: Literal["bilinear"] = "bilinear"


class AdditiveScoreConfig(ScoreConfig):
    """Additive: score(q, k) = v · tanh(Wq q + Wk k), one hidden layer (Bahdanau et al. 2015)."""

    builds: ClassVar[str] = "seqloom.nn.attention:AdditiveScore"
    kind: Literal["additive"] = "additive"
    width: int = Field(128, gt=0)
    """Number of units of the hidden layer, per head. Default: 128."""


class RbfScoreConfig(ScoreConfig):
    """Radial basis function: score(q, k) = -γ‖q - k‖². The softmax of these scores is proportional
    to exp(-γ‖q - k‖²)."""

    builds: ClassVar[str] = "seqloom.nn.attention:RbfScore"
    compares_directly: ClassVar[bool] = True
    kind: Literal["rbf"] = "rbf"
    gamma: float = Field(1.0, gt=0)
    """The factor γ of the squared distance. Larger values make attention more local. Default:
    1.0."""


class FixedScoreConfig(ScoreConfig):
    """Fixed weights: score = w[s], where w has one learned number for each source position s. The
    scores are the same at every decoder step. They do not depend on the values of queries and keys.
    Transformers do not support these scores."""

    builds: ClassVar[str] = "seqloom.nn.attention:FixedScore"
    is_positional: ClassVar[bool] = True
    kind: Literal["fixed"] = "fixed"
    max_length: int = Field(256, gt=0)
    """Number of source positions. Longer sources are not possible. Default: 256."""


class PositionScoreConfig(ScoreConfig):
    """Weights by position: score = w[t, s], where w has one learned number for each pair of decoder
    step t and source position s. The scores do not depend on the values of queries and keys.
    Transformers do not support these scores."""

    builds: ClassVar[str] = "seqloom.nn.attention:PositionScore"
    is_positional: ClassVar[bool] = True
    kind: Literal["position"] = "position"
    max_source_length: int = Field(256, gt=0)
    """Number of source positions. Longer sources are not possible. Default: 256."""
    max_target_length: int = Field(256, gt=0)
    """Number of decoder steps. Longer outputs are not possible. In the self-attention of an encoder:
    number of source positions that attend. Default: 256."""


class ScoreExtensionConfig(ExtensionConfig, ScoreConfig):
    """A score outside seqloom: a subclass of `seqloom.nn.AttentionScore`."""

    builds: ClassVar[str] = FORM
    extension_point: ClassVar[Point] = "score"


def heads_problems(width: int, heads: int) -> list[str]:
    """Return a list of one error message if `width` is not a multiple of `heads`, else []."""
    if width % heads == 0:
        return []
    nearest = max(width // heads, 1) * heads
    return [
        f"width {width} cannot be split into {heads} heads; "
        f"make width a multiple of {heads}, for example {nearest}"
    ]


class AttentionConfig(Section):
    """Attention over a sequence of states."""

    kind: Literal["attention"] = "attention"
    score: Annotated[ScoreConfig, ByKind()] = BilinearScoreConfig()
    """How a query and a key are compared. Default: kind "bilinear"; "dot" in a Transformer."""
    projection: Literal["none", "linear", "sigmoid", "tanh"] = "none"
    """How keys and queries are computed from states h: "none" uses h itself, "linear" uses W h,
    "sigmoid" and "tanh" apply that function to W h + b. Default: "none"; "linear" in a
    Transformer."""
    projection_layers: int = Field(1, ge=1)
    """Number of layers that compute keys, and of layers that compute queries. Each layer is W x + b,
    followed by the function of `projection`. More than 1 requires projection "sigmoid" or "tanh".
    Default: 1."""
    values: Literal["states", "learned"] = "states"
    """The vectors that attention averages: "states" uses the states themselves, "learned" applies a
    learned linear map to them. Default: "states"; "learned" in a Transformer."""
    selection: Literal["softmax", "argmax", "nearest", "exact"] = "softmax"
    """How weights are computed from scores: "softmax" mixes all values, "argmax" takes the value
    with the best score, "nearest" the value whose key is closest to the query, "exact" the value
    whose key equals the query, or zeros if there is no such key. Keys and queries get a gradient only
    from "softmax". Default: "softmax"."""
    tolerance: float = Field(0.0, ge=0, allow_inf_nan=False)
    """Largest difference of two numbers that count as equal, for selection "exact". 0.0 means equal
    numbers. Default: 0.0."""
    heads: int = Field(1, ge=1)
    """Number of attention heads. Must divide the width. Default: 1; 8 in a Transformer."""
    width: int | None = Field(None, gt=0)
    """Total width of all heads, for projected queries and keys and for learned values. Default: the
    width of the encoder or decoder that contains this attention."""
    output_projection: bool = False
    """Apply a linear map to the concatenated contexts of all heads. Default: false; true in a
    Transformer."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on the attention weights. Slow on CPUs, where dropout takes longer than the matrix
    products of attention. Default: 0.0."""

    def head_widths(self, query_width: int, key_width: int) -> list[int]:
        """Return all widths that must be multiples of `heads`.

        query_width: width of the states that queries are computed from
        key_width:   width of the states that keys and values are computed from
        """
        inner = self.width or query_width
        compared = (query_width, key_width) if self.projection == "none" else (inner,)
        read = key_width if self.values == "states" else inner
        return sorted({*compared, read})

    @property
    def compares_states_directly(self) -> bool:
        """True if no learned matrix is applied to the states before they are compared.

        Then decoder states and encoder states must have the same width.
        """
        direct = self.score.compares_directly or self.selection in ("nearest", "exact")
        return direct and self.projection == "none"

    def cross_problems(self, query_width: int, key_width: int) -> list[str]:
        """Return why a decoder with states of width `query_width` cannot attend to encoder states of
        width `key_width`."""
        problems = []
        if self.compares_states_directly and key_width != query_width:
            problems.append(
                f"decoder.attention compares encoder states of width {key_width} with decoder states "
                f"of width {query_width} directly; make the widths equal, set "
                "attention.projection = 'linear', or use score 'bilinear' or 'additive'"
            )
        for width in self.head_widths(query_width, key_width):
            problems += [
                f"decoder.attention: {problem}" for problem in heads_problems(width, self.heads)
            ]
        return problems

    def width_problems(self, name: str, states_width: int) -> list[str]:
        """Return a list of one error message if self-attention changes the width of the states.

        Otherwise the list is empty.

        name:         name of the recipe section with these settings, for the message
        states_width: the width of the states
        """
        width = self.width or states_width
        if self.values == "states" or self.output_projection or width == states_width:
            return []
        return [
            f"{name} returns vectors of width {width}, which cannot replace states of width "
            f"{states_width}; set {name}.output_projection = true, or remove {name}.width"
        ]

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems: list[str] = []
        if self.width is not None:
            problems += heads_problems(self.width, self.heads)
        if self.selection in ("nearest", "exact") and not self.score.compares_directly:
            problems.append(
                f"selection '{self.selection}' measures the distance between query and key, but with "
                f"score '{self.score.kind}' they are in different spaces; use score "
                f"{names_of_kinds(ScoreConfig, 'compares_directly')}"
            )
        if self.tolerance and self.selection != "exact":
            problems.append(
                f"tolerance applies to selection 'exact' only, but selection is '{self.selection}'; "
                "set selection = 'exact', or remove tolerance"
            )
        if self.projection_layers > 1 and self.projection not in ("sigmoid", "tanh"):
            problems.append(
                f"projection_layers = {self.projection_layers} needs projection 'sigmoid' or 'tanh', "
                f"not '{self.projection}': several layers without such a function are one linear map"
            )
        if self.score.is_positional and self.projection != "none":
            problems.append(
                f"score '{self.score.kind}' depends only on positions, so projected queries and keys "
                f"would not be used; set projection = 'none', not '{self.projection}'"
            )
        if problems:
            raise ValueError("\n".join(problems))
        return self


class NoAttentionConfig(Section):
    """No attention: the decoder reads the source only through its initial state and, if `summary`
    is set, through the encoder's last state."""

    kind: Literal["none"] = "none"


TRANSFORMER_ATTENTION = AttentionConfig(
    score=DotScoreConfig(), projection="linear", values="learned", heads=8, output_projection=True
)
"""The default attention of a Transformer."""
