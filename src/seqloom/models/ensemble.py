"""Ensembles: several models that predict as one, with the mean of their probabilities.

    p(y_t | y_<t, x) = 1/n Σ_i p_i(y_t | y_<t, x)

Members may be of different kinds, such as a recurrent network and a Transformer, if they use the
same token ids. An ensemble is a `Model`, so all search algorithms work with it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from seqloom.core.batch import Packing, Source
from seqloom.core.errors import ConfigError
from seqloom.models.interface import (
    DecoderModule,
    DecoderOutput,
    EncoderModule,
    Limits,
    Memory,
    Rows,
    State,
    Step,
    module_list,
)
from seqloom.models.seq2seq import Model
from seqloom.models.step_description import StepDescription
from seqloom.nn.embedding import Readout
from seqloom.nn.losses import cross_entropy_sum


@dataclass(frozen=True)
class EnsembleMemory(Memory):
    """The encoder outputs of all members.

    The fields inherited from `Memory` hold the encoder output of the first member.
    """

    members: tuple[Memory, ...] = ()

    @classmethod
    def of(cls, members: Sequence[Memory]) -> "EnsembleMemory":
        first = members[0]
        return cls(first.states, first.mask, first.summary, first.tokens, tuple(members))

    def only(self, source: int) -> "EnsembleMemory":
        return EnsembleMemory.of([member.only(source) for member in self.members])


class EnsembleEncoder(EncoderModule):
    """Encodes the source with the encoder of every member."""

    def __init__(self, members: Sequence[EncoderModule]) -> None:
        super().__init__()
        self.members = module_list(list(members))
        self.source_limits = _smallest_limits([member.source_limits for member in members])

    def forward(self, source: Source, packing: Packing | None = None) -> EnsembleMemory:
        assert packing is None, "packing is for training, and ensembles are not trained"
        return EnsembleMemory.of([member(source) for member in self.members])


class IdentityReadout(Readout):
    """The output layer of an ensemble. It returns its input unchanged.

    The input already consists of the ensemble's log-probabilities.
    """

    def __init__(self) -> None:
        nn.Module.__init__(self)  # skips Readout.__init__, which creates parameters

    def forward(self, features: Tensor) -> Tensor:
        return features

    def loss(self, features: Tensor, targets: Tensor, smoothing: float, padding: int) -> Tensor:
        return cross_entropy_sum(features.flatten(0, 1), targets.flatten(), smoothing, padding)


@dataclass(frozen=True)
class MemberRows:
    """`State.fixed` or `State.moving` of an ensemble: the same part of each member's state.

    `State.fixed` is the part of a decoder state that is computed once per source. `State.moving` is
    the part that changes at every step.

    members: `State.fixed` of each member, or `State.moving` of each member
    """

    members: tuple[Rows, ...]

    def select(self, rows: Tensor) -> "MemberRows":
        return MemberRows(tuple(member.select(rows) for member in self.members))


class EnsembleDecoder(DecoderModule):
    """Runs the decoder of every member and averages their probabilities, not their logits.

    `Step.attention` is the mean over the members with attention: (R, 1, 1, S) for R hypotheses and
    S source positions. The weights of each member are first averaged over its layers and heads,
    because the numbers of layers and heads may differ between members.
    """

    is_ensemble = True

    def __init__(self, members: Sequence[DecoderModule]) -> None:
        super().__init__()
        self.members = module_list(list(members))
        self.source_limits = _smallest_limits([member.source_limits for member in members])
        self.target_limits = _smallest_limits([member.target_limits for member in members])
        self.readout = IdentityReadout()

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        states = [
            member.start(member_memory, max_steps, need_attention=need_attention)
            for member, member_memory in zip(self.members, self._memories(memory), strict=True)
        ]
        fixed = MemberRows(tuple(state.fixed for state in states))
        moving = MemberRows(tuple(state.moving for state in states))
        return State(fixed, moving, 0, need_attention)

    def step(self, tokens: Tensor, state: State) -> Step:
        parts = zip(self.members, state.fixed.members, state.moving.members, strict=True)
        steps = [
            member.step(tokens, replace(state, fixed=fixed, moving=moving))
            for member, fixed, moving in parts
        ]
        attention = [step.attention.mean((1, 2)) for step in steps if step.attention is not None]
        after = state.after(MemberRows(tuple(step.state.moving for step in steps)))
        return Step(
            logits=mean_log_probability([step.logits for step in steps]),
            state=after,
            attention=torch.stack(attention).mean(0)[:, None, None] if attention else None,
        )

    def forward(
        self, tokens: Tensor, memory: Memory, packing: Packing | None = None
    ) -> DecoderOutput:
        """Return the ensemble's log-probabilities (B, T, V), as features of a `DecoderOutput`."""
        assert packing is None, "packing is for training, and ensembles are not trained"
        logits = [
            member(tokens, member_memory).logits()
            for member, member_memory in zip(self.members, self._memories(memory), strict=True)
        ]
        return DecoderOutput(mean_log_probability(logits), self.readout)

    def describe_step(self, memory: Memory, description: StepDescription) -> Tensor:
        raise ConfigError(
            "cannot explain an ensemble, because every member computes its own step; "
            "explain each member by itself"
        )

    def _memories(self, memory: Memory) -> Sequence[Memory]:
        """Return the encoder output for the decoder of each member.

        If there is no source, as for a language model, all members get the empty `memory`.
        """
        if isinstance(memory, EnsembleMemory):
            return memory.members
        assert memory.mask.shape[1] == 0, "an ensemble needs the memory of its own encoder"
        return [memory] * len(self.members)


def mean_log_probability(logits: Sequence[Tensor]) -> Tensor:
    """Return log(1/n Σ_i softmax(logits_i)): n tensors (…, V) -> (…, V), in float32 at least.

    The mean is computed with logsumexp, so that small probabilities do not underflow.
    """
    half = (torch.bfloat16, torch.float16)
    exact = [each.float() if each.dtype in half else each for each in logits]
    log_probabilities = torch.stack([each.log_softmax(dim=-1) for each in exact])
    return log_probabilities.logsumexp(dim=0) - math.log(len(exact))


def _smallest_limits(members: Sequence[Limits]) -> Limits:
    """Return the limits of an ensemble: for each setting, the smallest limit of all members.

    A limit is a maximum number of tokens.
    """
    settings = {setting for limits in members for setting in limits}
    return {
        setting: min(limits[setting] for limits in members if setting in limits)
        for setting in sorted(settings)
    }


def build_ensemble(models: Sequence[Model]) -> Model:
    """Combine models that use the same token ids into one model, in evaluation mode."""
    encoders = [model.encoder for model in models if model.encoder is not None]
    assert len(encoders) in (0, len(models)), "either all members have an encoder, or none"
    encoder = EnsembleEncoder(encoders) if encoders else None
    return Model(encoder, EnsembleDecoder([model.decoder for model in models])).eval()
