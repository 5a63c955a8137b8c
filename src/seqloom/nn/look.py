"""A look, laid open: all that happens between a query and what it reads."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Look:
    """Every value on the way from queries to a context, for all heads.

    queries: (B, H, T, Dq)
    keys:    (B, H, S, Dk) as a formula has them, before a score prepares them
    scores:  (B, H, T, S)
    weights: (B, H, T, S)
    values:  (B, H, S, Dv)
    read:    (B, H, T, Dv) what each head has read: weights @ values
    context: (B, T, C)     the heads side by side, merged if they are
    """

    queries: Tensor
    keys: Tensor
    scores: Tensor
    weights: Tensor
    values: Tensor
    read: Tensor
    context: Tensor
