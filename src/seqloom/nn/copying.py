"""A copy mechanism: the next token is generated from the vocabulary or copied from the source.

    p(y) = g · softmax(W f)_y + (1 - g) · Σ_s a_s [x_s = y]    (See et al. 2017)

f is the feature vector that the readout maps to logits, and x_s is the source token at position s.
The pointer a holds the weights of a separate attention layer with one head. The gate g is computed
from f and from the mean of the pointer's keys, weighted with a. Tokens are compared by their ids,
so source and target must share a vocabulary.

The decoder's cross-attention is not used as the pointer, for two reasons. A pointer has to select
one position, but the heads of cross-attention collect information from many positions. And the
fused kernels of cross-attention do not return weights.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqloom.nn.fast.linear import Linear
from seqloom.nn.losses import exact
from seqloom.nn.observer import observe


@dataclass(frozen=True)
class Copyable:
    """The source tokens that can be copied.

    keys:   (B, S, D) keys of the attention that selects the position to copy
    tokens: (B, S)    token ids
    mask:   (B, 1, S) or (B, T, S), True where a position may be copied
    """

    keys: Tensor
    tokens: Tensor
    mask: Tensor

    def select(self, rows: Tensor) -> "Copyable":
        """Return a new `Copyable` that contains only the sources with these indices."""
        parts = (self.keys, self.tokens, self.mask)
        return Copyable(*(part.index_select(0, rows) for part in parts))


@dataclass(frozen=True)
class CopyMixture:
    """The weights that combine generating and copying at each target position.

    log_generate: (…, 1) log g, where g is the probability of generating from the vocabulary
    log_copy:     (…, 1) log (1 - g), for the probability of copying from the source
    pointer:      (…, S) probability of each source position, if a token is copied
    """

    log_generate: Tensor
    log_copy: Tensor
    pointer: Tensor


class Copying(nn.Module):
    """The copy mechanism: generates the next token or copies it from the source.

    p(y) = g · softmax(logits)_y + (1 - g) · Σ_s a_s [x_s = y]

    x_s is the source token at position s. The gate g is the probability of generating. The pointer
    a is an attention distribution over the source positions.

    features:  width of the input vectors of the readout, which computes the logits
    key_width: width of the encoder states
    width:     width of the queries and keys of the pointer's attention
    """

    def __init__(self, features: int, key_width: int, width: int) -> None:
        super().__init__()
        self.to_query = Linear(features, width)
        # No bias: it would add the same value to all scores of a query, which does not change their
        # softmax.
        self.to_key = nn.Linear(key_width, width, bias=False)
        self.gate = Linear(features + width, 1)
        for part in (self.to_query, self.to_key, self.gate):
            nn.init.xavier_uniform_(part.weight)
        for biased in (self.to_query, self.gate):
            nn.init.zeros_(biased.bias)
        self.scale = 1 / math.sqrt(width)

    def prepare(self, states: Tensor, tokens: Tensor, mask: Tensor) -> Copyable:
        """Compute the keys of the attention that selects the position to copy.

        states: (B, S, D) encoder states
        tokens: (B, S)    source token ids
        mask:   (B, 1, S) or (B, T, S), True where a position may be copied
        """
        return Copyable(self.to_key(states), tokens, mask)

    def mixture(self, features: Tensor, source: Copyable) -> CopyMixture:
        """Compute the gate and the pointer at each target position.

        The gate is the probability that the token is generated, not copied. The pointer is the
        distribution over the source positions from which a copied token is taken.

        features: (B, T, F) input features of the readout, of width F
        """
        queries = observe(self, "query", self.to_query(features))  # (B, T, D)
        keys = observe(self, "keys", source.keys)
        scores = observe(self, "scores", queries @ keys.transpose(1, 2) * self.scale)  # (B, T, S)
        pointer = exact(scores).masked_fill(~source.mask, float("-inf")).softmax(dim=-1)
        pointer = observe(self, "pointer", pointer)
        selected = pointer.to(keys.dtype) @ keys  # (B, T, D)
        gate = exact(self.gate(torch.cat((features, selected), dim=-1)))  # (B, T, 1)
        log_generate = observe(self, "gate", F.logsigmoid(gate))
        return CopyMixture(log_generate, F.logsigmoid(-gate), pointer)

    def mix(self, logits: Tensor, features: Tensor, source: Copyable) -> Tensor:
        """Return the log-probability of every token, generated or copied: (B, T, V)

        logits:   (B, T, V) logits of generating each token
        features: (B, T, F) input features of the readout, of width F
        """
        mixture = self.mixture(features, source)
        tokens = source.tokens.unsqueeze(1).expand_as(mixture.pointer)
        generated = exact(logits).log_softmax(dim=-1)
        copied = torch.zeros_like(generated).scatter_add(
            -1, tokens, mixture.pointer.to(generated.dtype)
        )
        return torch.logaddexp(mixture.log_generate + generated, mixture.log_copy + _log(copied))

    def loss(
        self, logits: Tensor, features: Tensor, source: Copyable, targets: Tensor, smoothing: float
    ) -> Tensor:
        """Return -log p(target), with label smoothing: (B, T)

        logits:   (B, T, V) logits of generating each token
        features: (B, T, F) input features of the readout, of width F
        targets:  (B, T)
        """
        mixture = self.mixture(features, source)
        # The loss adds up probabilities, which needs float32.
        with torch.autocast(logits.device.type, enabled=False):
            return copying_loss(exact(logits), targets, mixture, source, smoothing)

    def step(self, logits: Tensor, features: Tensor, source: Copyable) -> Tensor:
        """Return the log-probability of every token at one position of R hypotheses: (R, V)

        The K = R / B hypotheses of a source are treated like K target positions of this source. So
        they share the keys of the source.

        logits:   (R, V) logits of generating each token
        features: (R, F) input features of the readout, of width F
        """
        shape = (len(source.keys), -1)  # (B, K)
        grouped = logits.unflatten(0, shape), features.unflatten(0, shape)
        return self.mix(grouped[0], grouped[1], source).flatten(0, 1)


def copying_loss(
    logits: Tensor, targets: Tensor, mixture: CopyMixture, source: Copyable, smoothing: float
) -> Tensor:
    """Return `losses.smoothed_cross_entropy_sum` of `Copying.mix`, before the sum over positions.

    (B, T, V), (B, T) -> (B, T)

    All V tokens are possible. The function creates no (B, T, V) tensor of copy probabilities, because
    only the tokens of the source, at most S, can be copied. For all other tokens
    p(y) = g · softmax(logits)_y.
    """
    # log(g · softmax(W f)) = logits - normaliser
    normaliser = logits.logsumexp(dim=-1, keepdim=True) - mixture.log_generate  # (B, T, 1)
    target = targets.unsqueeze(-1)
    matches = (source.tokens.unsqueeze(1) == target) * mixture.pointer  # (B, T, S)
    copied = mixture.log_copy + _log(matches.sum(-1, keepdim=True))
    log_target = torch.logaddexp(logits.gather(-1, target) - normaliser, copied).squeeze(-1)
    if not smoothing:
        return -log_target
    mean = (logits.mean(-1, keepdim=True) - normaliser).squeeze(-1)
    mean = mean + _copy_gain(logits, normaliser, mixture, source) / logits.shape[-1]
    return -(1 - smoothing) * log_target - smoothing * mean


def _copy_gain(
    logits: Tensor, normaliser: Tensor, mixture: CopyMixture, source: Copyable
) -> Tensor:
    """Return by how much copying increases the sum of log p(v) over the vocabulary: (B, T)

    Without copying, p(v) would be g · softmax(logits)_v, where g is the probability of generating.
    Copying increases p(v) only for tokens v of the source. The code therefore sums the increase of
    log p(v) over the source positions. If a token occurs n times, each position has the weight 1/n.

    normaliser: (B, T, 1), with logits - normaliser = log(g · softmax(logits))
    """
    pointer = mixture.pointer
    same = (source.tokens.unsqueeze(1) == source.tokens.unsqueeze(2)).to(pointer.dtype)  # (B, S, S)
    visible = source.mask.expand_as(pointer).to(pointer.dtype)
    counts = (visible @ same).clamp(min=1)
    copied = mixture.log_copy + _log(pointer @ same)
    tokens = source.tokens.unsqueeze(1).expand_as(pointer)
    generated = logits.gather(-1, tokens) - normaliser
    return ((torch.logaddexp(generated, copied) - generated) * visible / counts).sum(-1)


def _log(probability: Tensor) -> Tensor:
    """Return the logarithm, with a finite value and gradient even for a probability of zero."""
    return probability.clamp(min=torch.finfo(probability.dtype).tiny).log()
