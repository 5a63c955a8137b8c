"""Minimum risk: a model learns from outputs of its own, and from how good they are.

Taught by the truth alone, it never sees where its own words lead, and every word that is not the
true one is as wrong as any other. Here K outputs are drawn for each source, judged, and made
likelier or less likely by how much better they are than the others (Shen et al. 2016, Rennie et
al. 2017):

    loss = -1/K Σ_k (r_k - mean of the other r) log p(y_k)

Its gradient is on average that of the expected score, whatever the score counts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seqloom.core.sequences import Batch, Padded
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.sample import Sample
from seqloom.decoding.search import Request, log_softmax
from seqloom.models.interface import Memory
from seqloom.models.seq2seq import Model
from seqloom.text.vocabulary import END, PAD, START

Ids = Sequence[int]
Judge = Callable[[Sequence[Ids], Ids], Sequence[float]]
"""Outputs of one source, its truth -> how good each output is, 0 to 1."""
ROOM = 1.5
"""Outputs may be this many times as long as the longest truth of their batch."""


@dataclass(frozen=True)
class Outputs:
    """What was drawn: K outputs for each source, those of one source together.

    inputs:  (B · K, T) START y1 … yT
    targets: (B · K, T) y1 … yT END; without END where there was no room for it
    rewards: (B, K) how good each is, 0 to 1
    """

    inputs: Tensor
    targets: Padded
    rewards: Tensor

    @property
    def advantages(self) -> Tensor:
        """(B, K) by how much each is better than the mean of the others."""
        count = self.rewards.shape[1]
        others = (self.rewards.sum(dim=1, keepdim=True) - self.rewards) / (count - 1)
        return self.rewards - others


def risk_loss(model: Model, batch: Batch, judge: Judge, samples: int) -> Tensor:
    """The summed loss of a batch: () in value 1 - mean reward for every target, in gradient the
    formula above."""
    assert batch.packing is None, "a search knows one pair a row"
    memory = model.encode(batch.source, batch.size)
    outputs = judged(draw(model, memory, batch, samples), batch, judge)
    loss = surrogate(model, memory, outputs)
    return loss - loss.detach() + (1 - outputs.rewards.mean()) * batch.num_targets


@torch.no_grad()
def draw(model: Model, memory: Memory, batch: Batch, samples: int) -> list[list[Hypothesis]]:
    """Outputs of each source, without dropout."""
    was_training = model.decoder.training
    model.decoder.eval()
    try:
        longest = int(ROOM * batch.targets.values.shape[1])
        room = longest if model.max_target_length is None else min(longest, model.max_target_length)
        # All that is random about a step comes from torch's generator, which its number has set.
        search = Sample(samples=samples, seed=int(torch.randint(2**62, ())))
        return search(model.decoder, memory, Request([room] * batch.size, n_best=samples))
    finally:
        model.decoder.train(was_training)


def judged(drawn: Sequence[Sequence[Hypothesis]], batch: Batch, judge: Judge) -> Outputs:
    """The same in tensors, with their rewards."""
    device = batch.targets.values.device
    truths = zip(batch.targets.values.tolist(), batch.targets.lengths.tolist(), strict=True)
    rewards = [
        judge([one.tokens for one in several], [token for token in row[:length] if token != END])
        for several, (row, length) in zip(drawn, truths, strict=True)
    ]
    rows = [[*one.tokens, *([END] if one.finished else [])] for several in drawn for one in several]
    width = max(1, max(map(len, rows)))
    values = torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows])
    targets = Padded(values, torch.tensor([len(row) for row in rows])).to(device)
    starts = torch.full_like(targets.values[:, :1], START)
    inputs = torch.cat([starts, targets.values[:, :-1]], dim=1)
    return Outputs(inputs, targets, torch.tensor(rewards, device=device))


def surrogate(model: Model, memory: Memory, outputs: Outputs) -> Tensor:
    """-1/K Σ advantage · log p, summed over the sources: () whose gradient is that of the risk."""
    samples = outputs.rewards.shape[1]
    logits = model.decoder(outputs.inputs, memory.repeated(samples)).logits()  # (B · K, T, V)
    logs = log_softmax(logits).gather(-1, outputs.targets.values.unsqueeze(-1)).squeeze(-1)
    total = torch.where(outputs.targets.mask, logs, 0.0).sum(dim=1)  # (B · K,)
    return -(outputs.advantages.flatten() * total).sum() / samples
