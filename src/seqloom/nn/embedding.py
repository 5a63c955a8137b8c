"""Token ids to vectors, and feature vectors to scores over the vocabulary."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqloom.nn.dropout import build_dropout
from seqloom.nn.linear import Linear
from seqloom.nn.losses import cross_entropy_sum, linear_cross_entropy_sum
from seqloom.nn.positions import Place, Positions


class Lookup(nn.Module):
    """Ids to vectors: (B, T) -> (B, T, D)."""

    width: int


class LearnedLookup(Lookup):
    """A learned vector for each token, in training with a little noise on top.

    Noise on the vectors is the augmentation that text allows: it moves a word a little without
    making it another word. Word dropout takes whole words away: their vectors are zero, those of
    the others what they always are.
    """

    def __init__(
        self, vocabulary: int, width: int, noise: float, small: bool, word_dropout: float = 0.0
    ) -> None:
        """small: entries begin with size 1/√width, as an output layer that shares them needs, and
        are multiplied by √width on the way in; otherwise they begin with size 1."""
        super().__init__()
        self.width = width
        self.noise = noise
        self.word_dropout = word_dropout
        self.scale = math.sqrt(width) if small else 1.0
        self.table = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.table.weight, std=1 / self.scale)

    @property
    def weight(self) -> nn.Parameter:
        """(V, D)"""
        weight = self.table.weight
        assert isinstance(weight, nn.Parameter)
        return weight

    def forward(self, tokens: Tensor) -> Tensor:
        # Either way the vectors are of size 1 at first: much smaller ones, and a recurrent network
        # spends its first thousand steps on finding out that they differ at all.
        vectors = self.table(tokens) * self.scale
        if self.training and self.noise > 0:
            vectors = vectors + self.noise * torch.randn_like(vectors)
        if self.training and self.word_dropout > 0:
            stays = torch.rand(tokens.shape, device=tokens.device) >= self.word_dropout
            vectors = vectors * stays.unsqueeze(-1)
        return vectors


class OneHotLookup(Lookup):
    """Token i is the i-th unit vector; nothing is learned."""

    anchor: Tensor

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.width = vocabulary
        # Carries the model's device and precision, which a module without weights would not know.
        self.register_buffer("anchor", torch.zeros(()), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return F.one_hot(tokens, self.width).to(self.anchor.dtype)


class VectorLookup(Lookup):
    """Vectors are what they are; a linear map brings them to the width of the network."""

    def __init__(self, numbers: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.map = nn.Linear(numbers, width)

    def forward(self, vectors: Tensor) -> Tensor:
        """(…, D) -> (…, width)"""
        return self.map(vectors)


class Embedder(nn.Module):
    """Tokens and their positions as the vectors a network reads."""

    def __init__(
        self,
        lookup: Lookup,
        positions: Positions,
        width: int | None,
        dropout: float,
        locked: bool = False,
    ) -> None:
        """width None: as wide as lookup and positions make it; else a linear map brings it there."""
        super().__init__()
        self.lookup = lookup
        self.positions = positions
        self.dropout = build_dropout(dropout, locked)
        found = positions.widened(lookup.width)
        self.width = found if width is None else width
        self.fit = nn.Identity() if self.width == found else nn.Linear(found, self.width)

    def forward(self, tokens: Tensor, place: Place = 0) -> Tensor:
        """(B, T) -> (B, T, width)"""
        return self.dropout(self.fit(self.positions(self.lookup(tokens), place)))

    def step(self, tokens: Tensor, row: Tensor | None) -> Tensor:
        """(R,) all at one position, whose row of `positions.tabulate` is (1, P) -> (R, width)"""
        vectors = self.lookup(tokens)
        placed = vectors if row is None else self.positions.join_row(vectors, row)
        return self.dropout(self.fit(placed))


class Readout(nn.Module):
    """Features to unnormalised scores of the next token: softmax(W_out s + W_att a + …).

    The sum of maps of state, context and so on is one map of all of them side by side. With
    `hidden`, a tanh layer comes first; with `tied`, the last matrix is the embedding's.
    """

    def __init__(
        self, width: int, vocabulary: int, hidden: int | None, tied: nn.Parameter | None
    ) -> None:
        super().__init__()
        self.bend = (
            nn.Identity() if hidden is None else nn.Sequential(Linear(width, hidden), nn.Tanh())
        )
        self.output = Linear(width if hidden is None else hidden, vocabulary)
        for part in self.bend.modules():
            if isinstance(part, nn.Linear):
                nn.init.xavier_uniform_(part.weight, nn.init.calculate_gain("tanh"))
        if tied is None:
            nn.init.normal_(self.output.weight, std=1 / math.sqrt(self.output.in_features))
        else:
            self.output.weight = tied
        nn.init.zeros_(self.output.bias)

    def forward(self, features: Tensor) -> Tensor:
        """(…, D) -> (…, V)"""
        return self.output(self.bend(features))

    def compile_loss(self) -> None:
        self.loss = torch.compile(self.loss, dynamic=False)  # type: ignore[method-assign]

    def loss(self, features: Tensor, targets: Tensor, smoothing: float, padding: int) -> Tensor:
        """Σ -log p(target) over the targets that are not padding: (B, T, D), (B, T) -> ()"""
        if features.device.type == "cpu" and not torch.is_autocast_enabled("cpu"):
            # Padding is left out before the widest layer of all.
            real = (targets.flatten() != padding).nonzero().squeeze(1)  # (N,)
            hidden = self.bend(features.flatten(0, 1).index_select(0, real))
            weight, bias = self.output.weight, self.output.bias
            return linear_cross_entropy_sum(
                hidden, weight, bias, targets.flatten()[real], smoothing
            )
        # On a GPU it is carried along: to ask how much there is would make the GPU wait.
        logits = self(features).flatten(0, 1)
        return cross_entropy_sum(logits, targets.flatten(), smoothing, padding)
