"""The switches of attention: how queries meet keys, what is picked, what is read."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from seqloom.config.section import Section


class DotScoreConfig(Section):
    """q · k, divided by 1, √d or d."""

    kind: Literal["dot"] = "dot"
    scale: Literal["one", "sqrt", "width"] = "sqrt"
    """What the product is divided by: 1, √d or d."""


class BilinearScoreConfig(Section):
    """h^T W s: one learned matrix between key and query (linear multiplicative)."""

    kind: Literal["bilinear"] = "bilinear"


class AdditiveScoreConfig(Section):
    """v · tanh(Wq q + Wk k): a network with one hidden layer (Bahdanau et al. 2015)."""

    kind: Literal["additive"] = "additive"
    width: int = Field(128, gt=0)
    """Units of the hidden layer, per head."""


class RbfScoreConfig(Section):
    """exp(-γ‖q - k‖²), the radial basis function, before normalising."""

    kind: Literal["rbf"] = "rbf"
    gamma: float = Field(1.0, gt=0)


ScoreConfig = Annotated[
    DotScoreConfig | BilinearScoreConfig | AdditiveScoreConfig | RbfScoreConfig,
    Field(discriminator="kind"),
]


def heads_problems(width: int, heads: int) -> list[str]:
    """Why a width cannot be shared out evenly; empty if it can."""
    if width % heads == 0:
        return []
    near = max(width // heads, 1) * heads
    return [
        f"width {width} cannot be split into {heads} heads; "
        f"make width a multiple of {heads}, for example {near}"
    ]


class AttentionConfig(Section):
    kind: Literal["attention"] = "attention"
    score: ScoreConfig = BilinearScoreConfig()
    projection: Literal["none", "linear", "sigmoid", "tanh"] = "none"
    """What keys and queries are: the states themselves, W h, or a nonlinearity of W h + b."""
    values: Literal["states", "learned"] = "states"
    """What is averaged: the states themselves, or a learned map of them."""
    selection: Literal["softmax", "argmax", "nearest"] = "softmax"
    """softmax mixes all values; argmax takes the best score's, nearest the closest key's alone."""
    heads: int = Field(1, ge=1)
    width: int | None = Field(None, gt=0)
    """Width of projected keys, queries and learned values, all heads together. Left out: the
    width of the decoder (or, in an encoder, of the encoder)."""
    merge: bool = False
    """A last linear map over the heads' contexts, side by side."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on the weights. Slow on CPUs: more than the products beside it."""

    def split_widths(self, query_width: int, key_width: int) -> list[int]:
        """Every width that is shared out among the heads when such states meet."""
        inner = self.width or query_width
        compared = (query_width, key_width) if self.projection == "none" else (inner,)
        read = key_width if self.values == "states" else inner
        return sorted({*compared, read})

    @property
    def compares_states_directly(self) -> bool:
        """Query and key meet as they are, so they must be of the same width."""
        direct = self.score.kind in ("dot", "rbf") or self.selection == "nearest"
        return direct and self.projection == "none"

    @model_validator(mode="after")
    def _possible(self) -> Self:
        problems: list[str] = []
        if self.width is not None:
            problems += heads_problems(self.width, self.heads)
        if self.selection == "nearest" and self.score.kind not in ("dot", "rbf"):
            problems.append(
                f"selection 'nearest' measures the distance between query and key, but with score "
                f"'{self.score.kind}' the two do not live in one space; use score 'dot' or 'rbf'"
            )
        if problems:
            raise ValueError("\n".join(problems))
        return self


class NoAttentionConfig(Section):
    """The decoder sees the source only through the state handed over: the bottleneck."""

    kind: Literal["none"] = "none"


TRANSFORMER_ATTENTION = AttentionConfig(
    score=DotScoreConfig(), projection="linear", values="learned", heads=8, merge=True
)
