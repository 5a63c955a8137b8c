"""One optimiser step; the only place where a loss is divided."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from seqloom.core.errors import TrainingError
from seqloom.core.sequences import Batch
from seqloom.training.distributed import World

LossOf = Callable[[Batch], Tensor]

ADVICE = (
    "Lower training.optimizer.learning_rate, lengthen the warm-up, or set training.clip; "
    "the last checkpoint is untouched"
)


@dataclass(frozen=True)
class StepResult:
    loss: Tensor
    """() the mean per target of all ranks' parts, smoothing and R-Drop's penalty included."""
    targets: int
    norm: Tensor
    """() of the gradient, before clipping."""


def accumulate(
    model: nn.Module, batches: Sequence[Batch], loss_of: LossOf, world: World
) -> tuple[Tensor, int]:
    """Add up the gradient of the mean loss per target, over all batches on all ranks.

    loss_of returns a *sum* over targets. Summing first and dividing once means that neither the
    number of batches nor the number of ranks can change the gradient.
    """
    targets = round(world.total(sum(batch.num_targets for batch in batches)))
    total = torch.zeros((), device=world.device)
    for batch in batches:
        loss = loss_of(batch) / targets
        loss.backward()
        total += loss.detach()
    world.add_up(total)
    world.add_gradients(model.parameters())
    return total, targets


def train_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[Batch],
    loss_of: LossOf,
    clip: float | None,
    world: World,
) -> StepResult:
    optimizer.zero_grad(set_to_none=True)
    loss, targets = accumulate(model, batches, loss_of, world)
    limit = float("inf") if clip is None else clip
    norm = nn.utils.clip_grad_norm_(model.parameters(), limit)
    result = StepResult(loss, targets, norm)
    if world.device.type == "cpu":  # elsewhere a look at the number would make the GPU wait
        refuse_non_finite(model, result)
    optimizer.step()
    return result


def refuse_non_finite(model: nn.Module, result: StepResult) -> None:
    """Stop before a number that is none reaches the weights."""
    if torch.isfinite(result.loss) and torch.isfinite(result.norm):
        return
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    culprit = first_non_finite(gradients) or "none: only the loss"
    raise TrainingError(
        f"the loss is {float(result.loss)} and the gradient's norm {float(result.norm)}; first "
        f"gradient that is not a number: {culprit}. {ADVICE}"
    )


def refuse_non_finite_weights(model: nn.Module) -> None:
    """Stop before a weight that is no number is measured or saved."""
    if culprit := first_non_finite(dict(model.named_parameters())):
        raise TrainingError(f"the weight '{culprit}' is not a number any more. {ADVICE}")


def first_non_finite(tensors: Mapping[str, Tensor | None]) -> str | None:
    """The name of the first tensor with an infinity or a NaN in it."""
    for name, tensor in tensors.items():
        if tensor is not None and not torch.isfinite(tensor).all():
            return name
    return None
