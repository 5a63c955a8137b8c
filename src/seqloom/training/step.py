"""One optimiser step: forward, loss, backward, clip, update.

Loss functions return sums over targets. The step divides these sums by the number of targets.
The module fast/cuda_graphs.py has the same step for CUDA graphs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from seqloom.core.batch import Batch
from seqloom.core.errors import TrainingError
from seqloom.training.distributed import World
from seqloom.training.fine_tuning.freezing import trainable_parameters
from seqloom.training.parallel.gradients import SINGLE_PROCESS, GradientSum, LossFunction

ADVICE = (
    "Lower training.optimizer.learning_rate, lengthen the warm-up, or set training.clip; "
    "the last checkpoint is unchanged"
)


@dataclass(frozen=True)
class StepResult:
    """The result of one step.

    loss:    mean loss per target over all ranks, including label smoothing and R-Drop; a scalar
    targets: number of targets on all ranks
    norm:    gradient norm before clipping; a scalar
    """

    loss: Tensor
    targets: int
    norm: Tensor


@dataclass(frozen=True)
class SeededBatch:
    """A batch, or a part of a batch that was split to save memory.

    seed: seed of torch's random numbers for the forward pass. If None, torch is not seeded. Only
          the first part of a split batch has a seed
    """

    batch: Batch
    seed: int | None = None

    def seed_torch(self) -> None:
        """Seed torch with `seed`. Do nothing if `seed` is None."""
        if self.seed is not None:
            torch.manual_seed(self.seed)


class StepOutOfMemory(torch.OutOfMemoryError):
    """Raised on every rank if a step runs out of memory on any rank. The weights are unchanged.

    is_own: True on a rank that ran out of memory
    """

    def __init__(self, message: str | None) -> None:
        super().__init__(message or "another rank ran out of memory")
        self.is_own = message is not None


def train_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[SeededBatch],
    compute_loss: LossFunction,
    clip: float | None,
    world: World,
    gradients: GradientSum = SINGLE_PROCESS,
) -> StepResult:
    """Update the weights once, by the gradient of the mean loss per target.

    The loss of each batch is divided by the number of targets in all batches on all ranks. The
    gradient therefore does not depend on how examples are distributed over batches and ranks.

    gradients: computes gradients and adds them up over ranks. The default is for a single rank
    """
    optimizer.zero_grad(set_to_none=True)
    total = torch.zeros((), device=world.device)
    wait_for_targets = world.start_sum(sum(each.batch.num_targets for each in batches))
    loss_of = gradients.begin(compute_loss)
    out_of_memory = None
    try:
        moved = [replace(each, batch=each.batch.to(world.device)) for each in batches]
        for number, each in enumerate(moved, 1):
            each.seed_torch()
            with gradients.summing(is_last=number == len(moved)):
                # The number of targets on all ranks is needed only after the forward pass. No variable
                # keeps the loss, because after an error in the backward pass it would keep its graph.
                total += gradients.backward(loss_of(each.batch) / wait_for_targets())
    except torch.OutOfMemoryError as error:
        # Keep only the message, because the traceback references tensors.
        out_of_memory = str(error)
    if out_of_memory is not None:
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()
        gradients.abandon()
    if world.any(out_of_memory is not None):
        gradients.reset()
        raise StepOutOfMemory(out_of_memory)
    world.all_reduce_(total)
    norm = clip_gradients(trainable_parameters(model), clip)
    result = StepResult(total, wait_for_targets(), norm)
    if world.device.type == "cpu":  # on a GPU, reading the value would wait for the device
        check_step_is_finite(model, result)
    optimizer.step()
    return result


def clip_gradients(parameters: list[nn.Parameter], clip: float | None) -> Tensor:
    """Scale gradients to a norm of at most `clip`. Returns the norm before scaling."""
    norm = nn.utils.clip_grad_norm_(parameters, float("inf") if clip is None else clip)
    # The norm of sharded gradients (torch.distributed.tensor.DTensor) is sharded, too.
    return norm.full_tensor() if hasattr(norm, "full_tensor") else norm


def check_step_is_finite(model: nn.Module, result: StepResult) -> None:
    """Raise a TrainingError if the loss or the gradient norm is infinite or NaN."""
    if torch.isfinite(result.loss) and torch.isfinite(result.norm):
        return
    gradients = {
        name: parameter.grad
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }
    name = first_non_finite(gradients) or "none, only the loss"
    # A replayed CUDA graph leaves no gradients.
    first = f"; first non-finite gradient: {name}" if gradients else ""
    raise TrainingError(
        f"the loss is {float(result.loss)} and the gradient norm {float(result.norm)}{first}. {ADVICE}"
    )


def check_weights_are_finite(model: nn.Module) -> None:
    """Raise a TrainingError if a weight is infinite or NaN."""
    if name := first_non_finite(dict(model.named_parameters())):
        raise TrainingError(f"the weight '{name}' is not finite. {ADVICE}")


def first_non_finite(tensors: Mapping[str, Tensor | None]) -> str | None:
    """Return the name of the first tensor that contains an infinity or a NaN.

    Returns None if all values are finite. Of a sharded tensor, only the part on this rank is read.
    """
    for name, tensor in tensors.items():
        if tensor is None:
            continue
        local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
        if not torch.isfinite(local).all():
            return name
    return None
