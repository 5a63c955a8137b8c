"""One optimiser step: forward, loss, backward, clip, update.

Loss functions return sums over targets. The step divides these sums by the number of targets.
The module fast/cuda_graphs.py has the same step for CUDA graphs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from seqloom.core.batch import Batch
from seqloom.core.errors import TrainingError
from seqloom.training.distributed import World
from seqloom.training.fine_tuning.freezing import trainable_parameters

LossFunction = Callable[[Batch], Tensor]
"""Maps a batch to the sum (not the mean) of the loss over its targets."""

ADVICE = (
    "Lower training.optimizer.learning_rate, lengthen the warm-up, or set training.clip; "
    "the last checkpoint is unchanged"
)


@dataclass(frozen=True)
class StepResult:
    """The result of one step.

    loss:    () mean loss per target over all ranks, including label smoothing and R-Drop
    targets: number of targets on all ranks
    norm:    () gradient norm before clipping
    """

    loss: Tensor
    targets: int
    norm: Tensor


def train_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[Batch],
    compute_loss: LossFunction,
    clip: float | None,
    world: World,
) -> StepResult:
    """Update the weights once, by the gradient of the mean loss per target.

    The loss of each batch is divided by the number of targets in all batches on all ranks. The
    gradient therefore does not depend on how examples are distributed over batches and ranks.
    """
    optimizer.zero_grad(set_to_none=True)
    targets = round(world.sum(sum(batch.num_targets for batch in batches)))
    total = torch.zeros((), device=world.device)
    for batch in [batch.to(world.device) for batch in batches]:
        loss = compute_loss(batch) / targets
        loss.backward()
        total += loss.detach()
    world.all_reduce_(total)
    trained = trainable_parameters(model)
    world.all_reduce_gradients(trained)
    norm = nn.utils.clip_grad_norm_(trained, float("inf") if clip is None else clip)
    result = StepResult(total, targets, norm)
    if world.device.type == "cpu":  # on a GPU, reading the value would wait for the device
        check_step_is_finite(model, result)
    optimizer.step()
    return result


def check_step_is_finite(model: nn.Module, result: StepResult) -> None:
    """Raise a TrainingError if the loss or the gradient norm is infinite or NaN."""
    if torch.isfinite(result.loss) and torch.isfinite(result.norm):
        return
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    name = first_non_finite(gradients) or "none, only the loss"
    raise TrainingError(
        f"the loss is {float(result.loss)} and the gradient norm {float(result.norm)}; first "
        f"non-finite gradient: {name}. {ADVICE}"
    )


def check_weights_are_finite(model: nn.Module) -> None:
    """Raise a TrainingError if a weight is infinite or NaN."""
    if name := first_non_finite(dict(model.named_parameters())):
        raise TrainingError(f"the weight '{name}' is not finite. {ADVICE}")


def first_non_finite(tensors: Mapping[str, Tensor | None]) -> str | None:
    """Return the name of the first tensor that contains an infinity or a NaN.

    Returns None if all values are finite.
    """
    for name, tensor in tensors.items():
        if tensor is not None and not torch.isfinite(tensor).all():
            return name
    return None
