"""Training losses other than cross-entropy: R-Drop and minimum risk training.

`Objective` selects the loss, and `TokenTask.loss` computes it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seqloom.config.schema.training import MinimumRiskConfig
from seqloom.core.batch import Batch, Padded
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.sampling import Sampling
from seqloom.decoding.search import SearchRequest, log_softmax
from seqloom.models.interface import Memory
from seqloom.models.seq2seq import Model
from seqloom.nn.fast import fused_functions
from seqloom.nn.fast.dispatch import can_fuse_loss
from seqloom.nn.losses import exact, smoothed_cross_entropy_sum
from seqloom.text.vocabulary import END, PAD, START


@dataclass(frozen=True)
class Objective:
    """The options of the loss. Default: the negative log-likelihood of the targets.

    smoothing:    ε of label smoothing; 0 disables it
    r_drop:       weight of the divergence between the outputs of two forward passes with different
                  dropout masks (R-Drop); 0 disables it
    minimum_risk: settings of minimum risk training; None disables it
    target_share: used only if the targets are vectors, not tokens. Probability, at each position,
                  that the decoder reads the previous target instead of its own prediction. 1 is
                  teacher forcing, 0 is free running. None: the task decides
    """

    smoothing: float = 0.0
    r_drop: float = 0.0
    minimum_risk: MinimumRiskConfig | None = None
    target_share: float | None = None


LIKELIHOOD = Objective()
"""The negative log-likelihood of the targets, without other terms."""


def symmetric_divergence(first: Tensor, second: Tensor, targets: Tensor) -> Tensor:
    """Σ KL(p‖q) + KL(q‖p) over all positions of the targets (B, T) except padding -> ()

    p and q are the output distributions of the first and the second forward pass. Both
    divergences are computed together:

        Σ_v p (log p - log q) + q (log q - log p) = Σ_v (p - q) (log p - log q)

    first, second: (B, T, V) log p and log q; -inf in both for an impossible token, which adds nothing
    """
    difference = (first - second).masked_fill_(first == float("-inf"), 0.0)
    divergence = ((first.exp() - second.exp()) * difference).sum(-1)  # (B, T)
    return (divergence * (targets != PAD)).sum()


def r_drop_loss(model: Model, batch: Batch, smoothing: float, weight: float) -> Tensor:
    """Compute the R-Drop loss (Liang et al. 2021) -> ()

        Σ ½ (CE₁ + CE₂) + ¼ weight (KL(p₁‖p₂) + KL(p₂‖p₁))

    The sum is over the targets. The model makes two forward passes with different dropout masks.
    p₁ and p₂ are their output distributions, CE₁ and CE₂ their cross-entropies with label smoothing
    (`smoothed_cross_entropy_sum`). `weight` is α in the paper. The loss is half of the paper's loss,
    so that the first term is comparable to the loss of one pass.

    Padded positions are not removed: their loss is multiplied by zero. A CUDA graph needs this,
    because its tensor shapes may depend only on the shape of the batch.
    """
    # The loss ignores PAD. Set every position beyond the length of its row to PAD.
    targets = batch.targets.values.masked_fill(~batch.targets.mask, PAD)
    first_logits, second_logits = model(batch).logits(), model(batch).logits()  # (B, T, V)
    if can_fuse_loss(first_logits):
        return fused_functions.r_drop(first_logits, second_logits, targets, smoothing, weight, PAD)
    first, second = (exact(each).log_softmax(dim=-1) for each in (first_logits, second_logits))
    cross_entropy = sum(
        smoothed_cross_entropy_sum(each, targets, smoothing, PAD) for each in (first, second)
    )
    return cross_entropy / 2 + weight / 4 * symmetric_divergence(first, second, targets)


Ids = Sequence[int]
Reward = Callable[[Sequence[Ids], Ids], Sequence[float]]
"""A function (outputs for one source, reference of this source) -> reward of each output, 0 to 1"""
MAX_LENGTH_FACTOR = 1.5
"""Maximum length of a sample, as a multiple of the length of the longest target in the batch."""


@dataclass(frozen=True)
class Samples:
    """K sampled outputs for each source. The outputs for one source are adjacent rows.

    inputs:  (B · K, T) START y1 … y(T-1)
    targets: (B · K, T) y1 … yT. The last token is END, unless the sample reached the length limit
    rewards: (B, K)     reward of each output, 0 to 1
    """

    inputs: Tensor
    targets: Padded
    rewards: Tensor

    @property
    def advantages(self) -> Tensor:
        """(B, K) reward of each sample minus the mean reward of the other samples of its source"""
        count = self.rewards.shape[1]
        others = (self.rewards.sum(dim=1, keepdim=True) - self.rewards) / (count - 1)
        return self.rewards - others


def minimum_risk_loss(model: Model, batch: Batch, reward: Reward, samples: int) -> Tensor:
    """Compute the loss of minimum risk training -> ()

    Maximum likelihood trains a model only on references and treats all wrong tokens as equally
    wrong. Minimum risk training samples K outputs per source and scores them. It raises the
    probability of an output whose reward is above the mean reward of the other samples, and lowers
    it otherwise (Shen et al. 2016, Rennie et al. 2017):

        loss of a source = -1/K Σ_k (r_k - mean of the other rewards) log p(y_k)

    y_k is the k-th sample and r_k is its reward. The expected gradient of this loss is the
    gradient of the negative expected reward.

    The returned tensor has the gradient of this formula, summed over the sources. Its value is
    (1 - mean reward) times the number of targets, so that training reports 1 - mean reward.
    """
    assert batch.packing is None, "sampling needs one pair per row"
    memory = model.encode(batch.source, batch.size)
    sampled = score_samples(draw_samples(model, memory, batch, samples), batch, reward)
    loss = policy_gradient_loss(model, memory, sampled)
    return loss - loss.detach() + (1 - sampled.rewards.mean()) * batch.num_targets


@torch.no_grad()
def draw_samples(
    model: Model, memory: Memory, batch: Batch, samples: int
) -> list[list[Hypothesis]]:
    """Return `samples` sampled outputs for each source. The decoder runs without dropout."""
    was_training = model.decoder.training
    model.decoder.eval()
    try:
        limit = int(MAX_LENGTH_FACTOR * batch.targets.values.shape[1])
        if model.max_target_length is not None:
            limit = min(limit, model.max_target_length)
        # Every training step seeds torch's generator, so the samples of a step are reproducible.
        search = Sampling(samples=samples, seed=int(torch.randint(2**62, ())))
        return search(model.decoder, memory, SearchRequest([limit] * batch.size, n_best=samples))
    finally:
        model.decoder.train(was_training)


def score_samples(
    hypotheses: Sequence[Sequence[Hypothesis]], batch: Batch, reward: Reward
) -> Samples:
    """Compute the reward of each sampled output, and convert the outputs to tensors."""
    device = batch.targets.values.device
    references = zip(batch.targets.values.tolist(), batch.targets.lengths.tolist(), strict=True)
    rewards = [
        reward(
            [output.tokens for output in outputs], [token for token in row[:length] if token != END]
        )
        for outputs, (row, length) in zip(hypotheses, references, strict=True)
    ]
    rows = [
        [*output.tokens, *([END] if output.finished else [])]
        for outputs in hypotheses
        for output in outputs
    ]
    width = max(1, max(map(len, rows)))
    values = torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows])
    targets = Padded(values, torch.tensor([len(row) for row in rows])).to(device)
    starts = torch.full_like(targets.values[:, :1], START)
    inputs = torch.cat([starts, targets.values[:, :-1]], dim=1)
    return Samples(inputs, targets, torch.tensor(rewards, device=device))


def policy_gradient_loss(model: Model, memory: Memory, samples: Samples) -> Tensor:
    """Return -1/K Σ advantage · log p(sample) -> ()

    The sum is over all samples of all sources. K is the number of samples per source. The advantage
    of a sample is its reward minus the mean reward of the other samples of its source.
    """
    count = samples.rewards.shape[1]
    logits = model.decoder(samples.inputs, memory.repeated(count)).logits()  # (B · K, T, V)
    log_p = log_softmax(logits).gather(-1, samples.targets.values.unsqueeze(-1)).squeeze(-1)
    total = torch.where(samples.targets.mask, log_p, 0.0).sum(dim=1)  # (B · K,)
    return -(samples.advantages.flatten() * total).sum() / count
