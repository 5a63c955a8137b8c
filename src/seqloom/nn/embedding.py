"""Embeddings, which map token ids to vectors, and readouts, which map feature vectors to logits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqloom.nn.dropout import build_dropout
from seqloom.nn.fast.cross_entropy import linear_cross_entropy_sum
from seqloom.nn.fast.dispatch import can_fuse_loss, on_cpu_without_autocast
from seqloom.nn.fast.fused_functions import linear_cross_entropy
from seqloom.nn.fast.linear import Linear
from seqloom.nn.losses import cross_entropy_sum, exact, smoothed_cross_entropy_sum
from seqloom.nn.observer import observe
from seqloom.nn.positions import PositionIds, Positions
from seqloom.text.vocabulary import SPECIAL_TOKENS

NEGATIVE_INFINITY = float("-inf")


class Lookup(nn.Module):
    """Base class: maps token ids (B, T), or input vectors (B, T, ·), to vectors (B, T, D)."""

    width: int
    """D, the width of the vectors."""
    has_table = False
    """True if each token has a learned vector."""

    def formula(self, token: str) -> str:
        """Formula of the vector of a token. Default: a linear layer."""
        return f"W {token} + b"

    def start_formula(self, token: str) -> str:
        """Formula of the vector that a decoder reads at its first step.

        token: symbol of START in the formula, for example y₀
        """
        return self.formula(token)


@dataclass(frozen=True)
class ReplacedToken:
    """A token that does not use its own vector, but that of another token, or zeros.

    token: the token id
    by:    id of the token whose vector is used; None for a vector of zeros
    """

    token: int
    by: int | None


class LearnedLookup(Lookup):
    """Maps each token to a learned vector.

    vocabulary:   number of tokens
    width:        D, the width of a vector
    noise:        standard deviation of Gaussian noise that is added to the vectors in training. It
                  should be small, so that a vector with noise is still closest to the vector of its
                  own token
    scaled:       if True, weights are initialised with standard deviation 1/√D, and vectors are
                  multiplied by √D after the lookup. This suits an output layer that shares the
                  weights. If False, weights are initialised with standard deviation 1
    word_dropout: probability with which training sets the vector of a token to zero. The other
                  vectors are not rescaled. Default: 0
    replaced:     a token that has another vector instead of its own, see `ReplacedToken`. Default:
                  None; every token has its own vector
    """

    has_table = True

    def __init__(
        self,
        vocabulary: int,
        width: int,
        noise: float,
        scaled: bool,
        word_dropout: float = 0.0,
        replaced: ReplacedToken | None = None,
    ) -> None:
        super().__init__()
        self.width = width
        self.replaced = replaced
        self.noise = noise
        self.word_dropout = word_dropout
        self.scale = math.sqrt(width) if scaled else 1.0
        self.table = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.table.weight, std=1 / self.scale)

    @property
    def weight(self) -> nn.Parameter:
        """The learned vectors of all tokens, from the embedding table: (V, D)"""
        weight = self.table.weight
        assert isinstance(weight, nn.Parameter)
        return weight

    @property
    def is_deterministic(self) -> bool:
        """True if neither noise nor word dropout is applied."""
        return not self.training or (self.noise == 0 and self.word_dropout == 0)

    def forward(self, tokens: Tensor) -> Tensor:
        # With or without `scaled`, vectors start with standard deviation 1. A recurrent network
        # needs a thousand steps to learn to distinguish much smaller vectors.
        vectors = self._vectors(tokens) * self.scale
        if self.training and self.noise > 0:
            vectors = vectors + self.noise * torch.randn_like(vectors)
        if self.training and self.word_dropout > 0:
            kept = torch.rand(tokens.shape, device=tokens.device) >= self.word_dropout
            vectors = vectors * kept.unsqueeze(-1)
        return vectors

    def _vectors(self, tokens: Tensor) -> Tensor:
        if self.replaced is None:
            return self.table(tokens)
        is_replaced = tokens == self.replaced.token
        if self.replaced.by is None:
            return self.table(tokens).masked_fill(is_replaced.unsqueeze(-1), 0.0)
        return self.table(tokens.masked_fill(is_replaced, self.replaced.by))

    def effective_weight(self) -> Tensor:
        """Return the vector of each token, before it is multiplied by the scale: (V, D)

        If `replaced` is set, one token has the vector of another token, or zeros.
        """
        return self._vectors(torch.arange(len(self.weight), device=self.weight.device))

    def formula(self, token: str) -> str:
        return f"E[{token}]" if self.scale == 1 else f"√{self.width} · E[{token}]"

    def start_formula(self, token: str) -> str:
        if self.replaced is None:
            return self.formula(token)
        return "0" if self.replaced.by is None else self.formula(SPECIAL_TOKENS[self.replaced.by])


class OneHotLookup(Lookup):
    """Maps token i to the i-th unit vector. Nothing is learned."""

    anchor: Tensor

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.width = vocabulary
        # The output needs the dtype of the model. A module without parameters has no dtype, but
        # this buffer is converted together with the model.
        self.register_buffer("anchor", torch.zeros(()), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return F.one_hot(tokens, self.width).to(self.anchor.dtype)

    def formula(self, token: str) -> str:
        return f"one-hot({token})"


class VectorLookup(Lookup):
    """Projects sources or targets that are vectors, not token ids, to the width of the network."""

    def __init__(self, input_width: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.projection = nn.Linear(input_width, width)

    def forward(self, vectors: Tensor) -> Tensor:
        """Project input vectors: (…, input_width) -> (…, width)"""
        return self.projection(vectors)


class ConstantLookup(Lookup):
    """Returns the same learned vector for all inputs. A decoder then ignores its previous output.

    The setting `feed_output = false` selects this lookup. The inputs are token ids (B, T), or
    vectors (B, T, ignored + context). Such a vector contains the previous output, which is ignored,
    and context values, which are known in advance. The context values are not ignored: they are
    projected and added to the learned vector.

    width:   D, the width of the vectors
    ignored: width of the previous output; 0 if the inputs are token ids. Default: 0
    context: number of context values in an input vector. Default: 0
    """

    def __init__(self, width: int, ignored: int = 0, context: int = 0) -> None:
        super().__init__()
        self.width = width
        self.ignored = ignored
        self.vector = nn.Parameter(torch.randn(width))
        self.projection = nn.Linear(context, width, bias=False) if context else None

    def forward(self, inputs: Tensor) -> Tensor:
        shape = inputs.shape[:-1] if self.ignored else inputs.shape
        constant = self.vector.expand(*shape, -1)
        if self.projection is None:
            return constant
        return constant + self.projection(inputs[..., self.ignored :])

    def formula(self, token: str) -> str:
        if self.projection is not None:
            return super().formula(token)
        return f"a learned vector that does not depend on {token}"


class Embedder(nn.Module):
    """Computes the input vectors of a network from token vectors and position vectors.

    Position vectors are added or appended to the token vectors.

    width:  output width. If the resulting vectors have another width, a linear layer projects them
            to `width`. None: no projection
    locked: use one dropout mask per sequence (`LockedDropout`). Default: False
    """

    def __init__(
        self,
        lookup: Lookup,
        positions: Positions,
        width: int | None,
        dropout: float,
        locked: bool = False,
    ) -> None:
        super().__init__()
        self.lookup = lookup
        self.positions = positions
        self.dropout = build_dropout(dropout, locked)
        joined_width = positions.output_width(lookup.width)
        self.width = joined_width if width is None else width
        self.projection = (
            nn.Identity() if self.width == joined_width else nn.Linear(joined_width, self.width)
        )

    @property
    def is_function_of_token(self) -> bool:
        """True if an input vector depends only on its token, not on positions or random numbers.

        Always False if the lookup is not a `LearnedLookup`.
        """
        return (
            type(self.lookup) is LearnedLookup
            and self.lookup.is_deterministic
            and type(self.positions) is Positions
            and not (self.training and self.dropout.p > 0)
        )

    def unsupported_by_ctranslate2(self, name: str) -> list[str]:
        """List the reasons why CTranslate2 cannot run this layer. The list is empty if it can.

        name: the recipe section that contains it, such as "model.encoder"
        """
        reasons = []
        if not self.lookup.has_table:
            reasons.append(f"{name}.embedding: one-hot embeddings are not supported")
        if self.positions.is_appended:
            reasons.append(
                f"{name}.positions: appended positions are not supported, only added ones"
            )
        elif not isinstance(self.projection, nn.Identity):
            reasons.append(
                f"{name}.embedding.width: an embedding width that differs from the model width is not "
                "supported"
            )
        return reasons

    def forward(self, tokens: Tensor, position_ids: PositionIds = 0) -> Tensor:
        """Compute the input vectors of tokens: (B, T) -> (B, T, width)"""
        vectors = observe(self, "vector", self.lookup(tokens))
        joined = self.positions(vectors, position_ids)
        return observe(self, "input", self.dropout(self.projection(joined)))

    def step(self, tokens: Tensor, row: Tensor | None) -> Tensor:
        """Compute the input vectors (R, width) of the tokens (R,) at one position.

        row: (1, P) position vector of this position, a row of the table that `positions.tabulate`
             returns; None if there is no table
        """
        vectors = observe(self, "vector", self.lookup(tokens))
        joined = vectors if row is None else self.positions.join_row(vectors, row)
        return observe(self, "input", self.dropout(self.projection(joined)))


class Readout(nn.Module):
    """Maps features to the logits of the next token: W f + b.

    If the features are a concatenation f = [s; a; …], this equals W_s s + W_a a + … + b with one
    matrix for each part.

    width:      width of the features
    vocabulary: V, number of logits
    hidden:     width of a tanh layer before the output layer. Default: None, no such layer
    tied:       embedding weight (V, D) that the output layer uses as W. Default: None, W is not
                shared
    excluded:   number of tokens with probability 0. Their ids are 0 to excluded - 1. Default: 0
    """

    def __init__(
        self,
        width: int,
        vocabulary: int,
        hidden: int | None = None,
        tied: nn.Parameter | None = None,
        excluded: int = 0,
    ) -> None:
        super().__init__()
        self.excluded = excluded
        self.hidden_layer = (
            nn.Identity() if hidden is None else nn.Sequential(Linear(width, hidden), nn.Tanh())
        )
        self.output = Linear(width if hidden is None else hidden, vocabulary)
        for part in self.hidden_layer.modules():
            if isinstance(part, nn.Linear):
                nn.init.xavier_uniform_(part.weight, nn.init.calculate_gain("tanh"))
        if tied is None:
            nn.init.normal_(self.output.weight, std=1 / math.sqrt(self.output.in_features))
        else:
            self.output.weight = tied
        nn.init.zeros_(self.output.bias)

    def forward(self, features: Tensor) -> Tensor:
        """Compute logits from features: (…, D) -> (…, V)"""
        hidden = self.hidden_layer(observe(self, "features", features))
        logits: Tensor = self.output(observe(self, "hidden layer", hidden))
        if not self.excluded:
            return logits
        tokens = torch.arange(logits.shape[-1], device=logits.device)
        return logits.masked_fill(tokens < self.excluded, NEGATIVE_INFINITY)

    def loss(self, features: Tensor, targets: Tensor, smoothing: float, padding: int) -> Tensor:
        """Return the cross-entropy with label smoothing, summed over all real targets.

        (B, T, D), (B, T) -> ()

        The definition is `losses.smoothed_cross_entropy_sum`. Smoothing gives no probability to the
        first `self.excluded` tokens.
        """
        if on_cpu_without_autocast(features):
            # Drop padding before the output layer, the widest layer of a model.
            real = (targets.flatten() != padding).nonzero().squeeze(1)  # (N,)
            hidden = self.hidden_layer(features.flatten(0, 1).index_select(0, real))
            weight: Tensor = self.output.weight
            bias: Tensor = self.output.bias
            # Backward through a slice copies the gradient, which is as large as the weight.
            if self.excluded:
                weight, bias = weight[self.excluded :], bias[self.excluded :]
            real_targets = targets.flatten()[real] - self.excluded
            return linear_cross_entropy_sum(hidden, weight, bias, real_targets, smoothing)
        # On a GPU, padding is not dropped: the host would need the number of real positions, and to
        # copy it from the GPU the host would wait for all work in progress.
        hidden = self.hidden_layer(features.flatten(0, 1))
        if can_fuse_loss(hidden):
            return linear_cross_entropy(
                hidden,
                self.output.weight,
                self.output.bias,
                targets.flatten(),
                smoothing,
                padding,
                self.excluded,
            )
        possible = self.output(hidden)[:, self.excluded :]
        # Padding may become a negative id, which the loss ignores.
        shifted = targets.flatten() - self.excluded
        return cross_entropy_sum(possible, shifted, smoothing, padding - self.excluded)


class LabelReadout(Readout):
    """A readout for labels whose number is known in advance.

    The last entry of each feature vector is an end flag. It is 1 if all labels of the source are
    before this position, otherwise 0. If the flag is 1, only END is possible. If it is 0, END is
    impossible. So p(END) is 1 or 0: END adds nothing to the loss and takes no probability from the
    labels.

    width:      width of the features, without the end flag
    end:        id of END
    impossible: ids of other tokens that are never predicted, because they are not labels
    """

    def __init__(
        self, width: int, vocabulary: int, hidden: int | None, end: int, impossible: Sequence[int]
    ) -> None:
        super().__init__(width, vocabulary, hidden, tied=None)
        self.end = end
        self.impossible = tuple(impossible)

    def forward(self, features: Tensor) -> Tensor:
        """Compute logits from features: (…, D + 1) -> (…, V)

        The last feature is the end flag. If it is 1, only END is possible, otherwise only labels.
        """
        logits = super().forward(features[..., :-1])
        ends = features[..., -1:] > 0.5  # (…, 1)
        tokens = torch.arange(logits.shape[-1], device=logits.device)  # (V,)
        impossible = ends != (tokens == self.end)  # (…, V)
        for token in self.impossible:
            impossible = impossible | (tokens == token)
        return logits.masked_fill(impossible, NEGATIVE_INFINITY)

    def loss(self, features: Tensor, targets: Tensor, smoothing: float, padding: int) -> Tensor:
        """`Readout.loss` of features with an end flag, which decides which tokens are possible.

        (B, T, D + 1), (B, T) -> ()
        """
        log_probabilities = exact(self(features)).log_softmax(dim=-1)  # (B, T, V)
        return smoothed_cross_entropy_sum(log_probabilities, targets, smoothing, padding)
