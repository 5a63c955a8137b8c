"""How the ranks compute one gradient together.

    GradientSum       one process: the gradient is that of its own batches
    Replicas          every rank has the whole model; DistributedDataParallel (DDP) sums gradients
    sharding.Shards   every rank has a part of each weight; fully sharded data parallel (FSDP)

With `Replicas` and `Shards`, gradients are added up in groups (buckets or layers). Each group is
sent while the backward pass computes the next one.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
import torch.distributed as torch_distributed
from torch import Tensor, nn
from torch._C._distributed_c10d import GradBucket
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from seqloom.core.batch import Batch
from seqloom.models.seq2seq import Model
from seqloom.training.fine_tuning.freezing import trainable_parameters

LossFunction = Callable[[Batch], Tensor]
"""Maps a batch to the sum (not the mean) of the loss over its targets."""


class GradientSum:
    """Computes the gradient of a step: the sum over the batches of the step and over the ranks.

    This base class is for a process that trains alone.

    is_sharded: True if weights, gradients and optimiser state are divided among the ranks
    """

    is_sharded = False

    def begin(self, compute_loss: LossFunction) -> LossFunction:
        """Prepare for a training step. Returns the function that computes the loss of a batch.

        compute_loss: the function, without what is needed to sum its gradients over the ranks
        """
        return compute_loss

    def summing(self, is_last: bool) -> AbstractContextManager[None]:
        """Context manager for the forward and the backward pass of a batch.

        is_last: True for the last batch of the step. Then gradients are also summed over the ranks
        """
        return nullcontext()

    def backward(self, loss: Tensor) -> Tensor:
        """Add the gradient of a loss to the gradients of the step. Returns the loss, detached."""
        loss.backward()
        return loss.detach()

    def shard(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the part of each tensor that this rank stores.

        tensors: whole tensors, such as weights or moments of the optimiser, by name
        """
        return tensors

    def whole(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the whole tensors on rank 0, where `tensors` has the parts that each rank stores."""
        return tensors

    def abandon(self) -> None:
        """Abandon a step that ran out of memory on this rank.

        The other ranks still wait to sum gradients with this rank, so this rank takes part in these
        sums. Raises a TrainingError if this is not possible.
        """

    def reset(self) -> None:
        """Prepare to repeat a step that ran out of memory on a rank. Called on every rank."""


SINGLE_PROCESS = GradientSum()


class LossModule(nn.Module):
    """Wraps a model in a module whose `forward` computes a loss.

    DDP and FSDP run code before and after `forward`, so the whole computation of the loss must take
    place in it.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, compute_loss: Callable[[], Tensor]) -> Tensor:
        return compute_loss()


class Replicas(GradientSum):
    """The whole model on every rank. Gradients are summed by DistributedDataParallel.

    The first step runs without DDP. It shows whether the loss depends on all parameters, which the
    constructor of DDP needs to know.

    may_vary: True if the parameters that the loss depends on may differ from step to step
    """

    def __init__(self, model: nn.Module, may_vary: bool = False) -> None:
        self.module = LossModule(model)
        # Buffers are constants, so they are not sent to other ranks.
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(
            self.module, [name for name, _ in self.module.named_buffers()]
        )
        self.may_vary = may_vary
        self.uses_all: bool | None = None
        """True if the first step used all parameters. None before it."""
        self.ddp: DistributedDataParallel | None = None
        self.reductions: list[torch_distributed.Work] = []
        """The sums of the current step that have been started, one per bucket."""

    def begin(self, compute_loss: LossFunction) -> LossFunction:
        self.reductions.clear()
        if self.ddp is None and self.uses_all is not None:
            self.ddp = DistributedDataParallel(
                self.module,
                gradient_as_bucket_view=True,
                find_unused_parameters=self.may_vary or not self.uses_all,
            )
            self.ddp.register_comm_hook(None, self._sum_bucket)
        return compute_loss if self.ddp is None else partial(self._loss, self.ddp, compute_loss)

    def _loss(self, ddp: DistributedDataParallel, compute: LossFunction, batch: Batch) -> Tensor:
        loss: Tensor = ddp(partial(compute, batch))
        return loss

    def _sum_bucket(self, _: object, bucket: GradBucket) -> torch.futures.Future[Tensor]:
        """Start to sum a bucket of gradients over all ranks.

        Replaces DDP's own function, which would also divide by the number of ranks. This is not
        needed, because the losses are already divided by the number of targets on all ranks.
        """
        work = torch_distributed.all_reduce(bucket.buffer(), async_op=True)
        assert work is not None
        self.reductions.append(work)
        future: torch.futures.Future[Any] = work.get_future()
        return future.then(lambda done: done.value()[0])

    @contextmanager
    def summing(self, is_last: bool) -> Iterator[None]:
        with self.ddp.no_sync() if self.ddp is not None and not is_last else nullcontext():
            yield
        if self.ddp is None and is_last:
            self._sum_without_ddp()

    def _sum_without_ddp(self) -> None:
        """Sum all gradients over the ranks.

        Also set `uses_all`: True if every parameter has a gradient on at least one rank.
        """
        trained = trainable_parameters(self.module)
        used = torch.tensor([each.grad is not None for each in trained], dtype=torch.int32)
        torch_distributed.all_reduce(used)
        self.uses_all = bool(used.all())
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        torch_distributed.all_reduce(flat)
        sums = flat.split([each.numel() for each in trained])
        for parameter, total, is_used in zip(trained, sums, used, strict=True):
            parameter.grad = total.view_as(parameter) if is_used else None

    def abandon(self) -> None:
        if self.ddp is None:
            self._sum_without_ddp()
            return
        # The other ranks sum every bucket. This rank adds zeros to the buckets that it did not reach.
        # DDP itself does this for ranks that have fewer batches than others (`Join`).
        remaining = self.ddp.reducer._get_zeros_like_grad_buckets()[len(self.reductions) :]
        for bucket in remaining:
            self._sum_bucket(None, bucket)
        if remaining and self.ddp.find_unused_parameters:
            self.ddp._match_unused_params_allreduce()
        for work in self.reductions:
            work.wait()

    def reset(self) -> None:
        # DDP cannot be used again after an error in a backward pass.
        if self.ddp is not None:
            self.ddp._remove_autograd_hooks()
        self.ddp = self.uses_all = None


def checkpoint_activations(model: Model) -> None:
    """Save memory: the layers of a stack keep only their inputs for the backward pass.

    The backward pass then computes the other activations again.
    """
    for layer in [layer for part in model.parts for layer in part.layer_stack]:
        layer.forward = partial(checkpoint, layer.forward, use_reentrant=False)
