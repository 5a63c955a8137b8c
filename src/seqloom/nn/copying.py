"""Copying: the next token is said in the model's own words, or taken from the source.

    p(y) = g · softmax(W f)_y + (1 - g) · Σ_s a_s [x_s = y]    (See et al. 2017)

f is what the readout sees. The pointer a is a look at the source of its own, with one head; the
gate g is decided by f and by what the pointer points at. The decoder's attention gathers what is
needed to go on, from many places and with many heads, and keeps its fused kernels; a pointer has
to name one place. Tokens are compared by their ids, so source and target must share a vocabulary.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqloom.nn.linear import Linear


@dataclass(frozen=True)
class Copyable:
    """What can be copied, and where.

    keys:   (B, S, D) what a pointer compares with
    tokens: (B, S)    what stands there
    mask:   (B, 1, S) or (B, T, S), True where a position may be copied from
    """

    keys: Tensor
    tokens: Tensor
    mask: Tensor

    def select(self, rows: Tensor) -> "Copyable":
        """Keep the sources of these rows."""
        parts = (self.keys, self.tokens, self.mask)
        return Copyable(*(part.index_select(0, rows) for part in parts))


@dataclass(frozen=True)
class Shares:
    """How likely it is to speak and to copy, and from where: logarithms (…, 1), weights (…, S)."""

    speaks: Tensor
    copies: Tensor
    pointer: Tensor


class Copying(nn.Module):
    """The pointer and the gate."""

    def __init__(self, features: int, key_width: int, width: int) -> None:
        """width: of queries and keys, where features and states of the source meet"""
        super().__init__()
        self.to_query = Linear(features, width)
        self.to_key = nn.Linear(key_width, width, bias=False)  # a bias would move all scores alike
        self.gate = Linear(features + width, 1)
        for part in (self.to_query, self.to_key, self.gate):
            nn.init.xavier_uniform_(part.weight)
        for biased in (self.to_query, self.gate):
            nn.init.zeros_(biased.bias)
        self.scale = 1 / math.sqrt(width)

    def prepare(self, states: Tensor, tokens: Tensor, mask: Tensor) -> Copyable:
        """(B, S, D) states of the source -> what can be copied from it"""
        return Copyable(self.to_key(states), tokens, mask)

    def shares(self, features: Tensor, source: Copyable) -> Shares:
        """features (B, T, F) -> how much is spoken and copied at each position"""
        scores = self.to_query(features) @ source.keys.transpose(1, 2) * self.scale  # (B, T, S)
        pointer = _exact(scores).masked_fill(~source.mask, float("-inf")).softmax(dim=-1)
        read = pointer.to(source.keys.dtype) @ source.keys  # (B, T, D)
        gate = _exact(self.gate(torch.cat((features, read), dim=-1)))  # (B, T, 1)
        return Shares(F.logsigmoid(gate), F.logsigmoid(-gate), pointer)

    def mix(self, logits: Tensor, features: Tensor, source: Copyable) -> Tensor:
        """log p of every token: (B, T, V), (B, T, F) -> (B, T, V), normalised already"""
        shares = self.shares(features, source)
        places = source.tokens.unsqueeze(1).expand_as(shares.pointer)
        spoken = _exact(logits).log_softmax(dim=-1)
        copied = torch.zeros_like(spoken).scatter_add(-1, places, shares.pointer.to(spoken.dtype))
        return torch.logaddexp(shares.speaks + spoken, shares.copies + _log(copied))

    def loss(
        self, logits: Tensor, features: Tensor, source: Copyable, answers: Tensor, smoothing: float
    ) -> Tensor:
        """-log p of the answers, smoothed: (B, T, V), (B, T, F), (B, T) -> (B, T)"""
        shares = self.shares(features, source)
        with torch.autocast(logits.device.type, enabled=False):  # probabilities are added up
            return copying_loss(_exact(logits), answers, shares, source, smoothing)

    def compile_loss(self) -> None:
        self.loss = torch.compile(self.loss, dynamic=False)  # type: ignore[method-assign]

    def step(self, logits: Tensor, features: Tensor, source: Copyable) -> Tensor:
        """The same for one position of R hypotheses: (R, V), (R, F) -> (R, V)

        The K hypotheses of a source are K queries to the same keys, so nothing is copied.
        """
        shape = (len(source.keys), -1)  # (B, K)
        grouped = logits.unflatten(0, shape), features.unflatten(0, shape)
        return self.mix(grouped[0], grouped[1], source).flatten(0, 1)


def copying_loss(
    scores: Tensor, answers: Tensor, shares: Shares, source: Copyable, smoothing: float
) -> Tensor:
    """-log p of the answers, smoothed: (B, T, V), (B, T) -> (B, T)

    What is copied is never spread over the vocabulary: at most S of its tokens stand in the
    source, so that all but these have g · softmax(W f) alone.
    """
    # log g · softmax(W f) is the score of a token less this.
    less = scores.logsumexp(dim=-1, keepdim=True) - shares.speaks  # (B, T, 1)
    answer = answers.unsqueeze(-1)
    found = (source.tokens.unsqueeze(1) == answer) * shares.pointer  # (B, T, S)
    copied = shares.copies + _log(found.sum(-1, keepdim=True))
    own = torch.logaddexp(scores.gather(-1, answer) - less, copied).squeeze(-1)
    if not smoothing:
        return -own
    even = (scores.mean(-1, keepdim=True) - less).squeeze(-1)
    even = even + _gain(scores, less, shares, source) / scores.shape[-1]
    return -(1 - smoothing) * own - smoothing * even


def _gain(scores: Tensor, less: Tensor, shares: Shares, source: Copyable) -> Tensor:
    """Σ log p(v) - log (g · softmax(W f)_v) over the tokens v of the source: (B, T)

    A token that stands there n times is met n times: each time it counts for 1/n.
    """
    pointer = shares.pointer
    same = (source.tokens.unsqueeze(1) == source.tokens.unsqueeze(2)).to(pointer.dtype)  # (B, S, S)
    visible = source.mask.expand_as(pointer).to(pointer.dtype)
    times = (visible @ same).clamp(min=1)
    copied = shares.copies + _log(pointer @ same)
    spoken = scores.gather(-1, source.tokens.unsqueeze(1).expand_as(pointer)) - less
    return ((torch.logaddexp(spoken, copied) - spoken) * visible / times).sum(-1)


def _exact(tensor: Tensor) -> Tensor:
    """In float32 at least: eight bits are too few to add up probabilities."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


def _log(probability: Tensor) -> Tensor:
    """A logarithm that is finite, and so is its gradient: of nothing it is that of next to nothing."""
    return probability.clamp(min=torch.finfo(probability.dtype).tiny).log()
