"""Several models as one: at every step the mean of their probabilities.

    p(y_t | y_<t, x) = 1/n Σ_i p_i(y_t | y_<t, x)

The members may be of any kind, recurrent networks beside Transformers, if they read and write the
same ids. Search does not know: an ensemble is a Model like any other.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from seqloom.core.batch import Packing, Source
from seqloom.models.interface import (
    DecoderModule,
    DecoderOutput,
    EncoderModule,
    Memory,
    Rows,
    State,
    Step,
)
from seqloom.models.seq2seq import Model
from seqloom.nn.embedding import Readout
from seqloom.nn.losses import cross_entropy_sum
from seqloom.nn.stack import stack


@dataclass(frozen=True)
class EnsembleMemory(Memory):
    """What each member's encoder hands over; the fields of a Memory are the first member's."""

    members: tuple[Memory, ...] = ()

    @classmethod
    def of(cls, members: Sequence[Memory]) -> "EnsembleMemory":
        first = members[0]
        return cls(first.states, first.mask, first.summary, first.tokens, tuple(members))

    def only(self, source: int) -> "EnsembleMemory":
        return EnsembleMemory.of([member.only(source) for member in self.members])


class EnsembleEncoder(EncoderModule):
    """Every member reads the source for itself."""

    def __init__(self, members: Sequence[EncoderModule]) -> None:
        super().__init__()
        self.members = stack(list(members))
        self.max_length = _shortest(members)

    def forward(self, source: Source, packing: Packing | None = None) -> EnsembleMemory:
        assert packing is None, "an ensemble is asked, not trained"
        return EnsembleMemory.of([member(source) for member in self.members])


class Passage(Readout):
    """A readout for features that are log-probabilities already."""

    def __init__(self) -> None:
        nn.Module.__init__(self)  # there is nothing to learn

    def forward(self, features: Tensor) -> Tensor:
        return features

    def loss(self, features: Tensor, targets: Tensor, smoothing: float, padding: int) -> Tensor:
        return cross_entropy_sum(features.flatten(0, 1), targets.flatten(), smoothing, padding)


@dataclass(frozen=True)
class MemberRows:
    """The states of all members, in the order of the members."""

    members: tuple[Rows, ...]

    def select(self, rows: Tensor) -> "MemberRows":
        return MemberRows(tuple(member.select(rows) for member in self.members))


class EnsembleDecoder(DecoderModule):
    """Every member takes its own step; their probabilities are averaged, never their logits.

    Attention is the mean over the members that attend, each one's layers and heads averaged
    first, because members may differ in both: (R, 1, 1, S).
    """

    def __init__(self, members: Sequence[DecoderModule]) -> None:
        super().__init__()
        self.members = stack(list(members))
        self.max_length = _shortest(members)
        self.readout = Passage()

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        states = [
            member.start(own, max_steps, need_attention=need_attention)
            for member, own in zip(self.members, self._memories(memory), strict=True)
        ]
        fixed = MemberRows(tuple(one.fixed for one in states))
        moving = MemberRows(tuple(one.moving for one in states))
        return State(fixed, moving, 0, need_attention)

    def step(self, tokens: Tensor, state: State) -> Step:
        parts = zip(self.members, state.fixed.members, state.moving.members, strict=True)
        steps = [
            member.step(tokens, replace(state, fixed=fixed, moving=moving))
            for member, fixed, moving in parts
        ]
        looks = [one.attention.mean((1, 2)) for one in steps if one.attention is not None]
        after = state.after(MemberRows(tuple(one.state.moving for one in steps)))
        return Step(
            logits=mean_log_probability([one.logits for one in steps]),
            state=after,
            attention=torch.stack(looks).mean(0)[:, None, None] if looks else None,
        )

    def forward(
        self, tokens: Tensor, memory: Memory, packing: Packing | None = None
    ) -> DecoderOutput:
        """Its features are (B, T, V) log-probabilities, which `readout` leaves as they are."""
        assert packing is None, "an ensemble is asked, not trained"
        answers = [
            member(tokens, own).logits()
            for member, own in zip(self.members, self._memories(memory), strict=True)
        ]
        return DecoderOutput(mean_log_probability(answers), self.readout)

    def _memories(self, memory: Memory) -> Sequence[Memory]:
        """Each member's own; without a source all have the same, which is empty."""
        if isinstance(memory, EnsembleMemory):
            return memory.members
        assert memory.mask.shape[1] == 0, "one member's memory cannot stand for all"
        return [memory] * len(self.members)


def mean_log_probability(logits: Sequence[Tensor]) -> Tensor:
    """log 1/n Σ_i softmax(logits_i): n times (…, V) -> (…, V), in float32 at least.

    By logsumexp, so that no probability is lost by being too small to be written down.
    """
    wide = [one.float() if one.dtype in (torch.bfloat16, torch.float16) else one for one in logits]
    logs = torch.stack([one.log_softmax(dim=-1) for one in wide])
    return logs.logsumexp(dim=0) - math.log(len(wide))


def _shortest(members: Sequence[EncoderModule] | Sequence[DecoderModule]) -> int | None:
    """An ensemble reaches as far as its shortest member."""
    return min((one.max_length for one in members if one.max_length is not None), default=None)


def ensemble(models: Sequence[Model]) -> Model:
    """One model of several that read and write the same ids."""
    encoders = [one.encoder for one in models if one.encoder is not None]
    assert len(encoders) in (0, len(models)), "members with a source and without one"
    encoder = EnsembleEncoder(encoders) if encoders else None
    return Model(encoder, EnsembleDecoder([one.decoder for one in models])).eval()
