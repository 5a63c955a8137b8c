"""Training steps as CUDA graphs: captured once per batch shape, then replayed.

Launching an operation from Python takes longer than most operations run on a GPU. A CUDA graph of
a whole step (forward, loss, backward, clip, update) needs a single launch. The result equals that
of `step.train_step`; a test compares the two.

A graph always reads and writes the same memory. The batch is therefore copied into fixed tensors,
and the learning rate and the number of targets are tensors, too.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from seqloom.core.batch import Batch
from seqloom.models.compile import compile_model
from seqloom.models.seq2seq import Model
from seqloom.training.distributed import World
from seqloom.training.fine_tuning.freezing import trainable_parameters
from seqloom.training.parallel.gradients import LossFunction
from seqloom.training.step import (
    SeededBatch,
    StepOutOfMemory,
    StepResult,
    clip_gradients,
)

SWITCH_SECONDS = 0.0005
"""Number of seconds that a Python thread may run while another thread waits for the interpreter."""
WARM_UPS = 3
"""Number of times that a function runs before it is captured. In these runs, libraries choose
algorithms and allocate workspaces."""


@dataclass(frozen=True)
class Capture:
    """A CUDA graph, captured from a function that takes a batch and returns its loss.

    batch:  the tensors that the graph reads. `run` copies each new batch into them
    loss:   the tensor to which the graph writes the loss
    replay: runs the graph
    """

    batch: Batch
    loss: Tensor
    replay: Callable[[], object]

    def run(self, batch: Batch) -> None:
        """Copy a batch into the input tensors of the graph and replay the graph."""
        self.batch.copy_from(batch)
        self.replay()


class CapturedSteps:
    """Runs training steps by replaying CUDA graphs, which are captured for each batch shape.

    A step with a single batch in a single process is captured as one graph. A step with several
    batches or on several ranks sums the gradients before it updates the weights. Therefore one
    graph computes the gradients of a batch, and a second graph updates the weights. All gradients
    are in one block of memory, so that a single operation sums them over the ranks.

    compiles_layers: True to compile the layers of the model. Only captured steps run the compiled
                     layers. All other code runs the layers uncompiled, because its inputs vary in
                     length and torch would compile the layers again for every new shape. Default:
                     False

    The object changes settings of the process. `close` restores them.
    """

    def __init__(
        self,
        model: Model,
        optimizer: torch.optim.Optimizer,
        compute_loss: LossFunction,
        clip: float | None,
        world: World,
        compiles_layers: bool = False,
    ) -> None:
        self.model = model
        self.trained = trainable_parameters(model)
        self.optimizer = optimizer
        self.compute_loss = compute_loss
        self.clip = clip
        self.world = world
        self.targets = torch.ones((), device=world.device)
        self.norm = torch.zeros((), device=world.device)
        self._captures: dict[object, Capture] = {}
        self._replay_update: Callable[[], object] | None = None
        self._flat: Tensor | None = None
        self._gradients: list[Tensor] | None = None
        self.seconds = 0.0
        """Time spent on captures, compilation included."""
        self._compiles_layers = compiles_layers
        if compiles_layers:
            torch.compiler.set_stance("force_eager")
            compile_model(model)
        on_gpu = world.device.type == "cuda"
        self._switch_seconds = sys.getswitchinterval()
        if on_gpu:
            # Other threads plan and prepare batches. By default they keep this thread waiting for 5 ms
            # whenever it needs the interpreter, and a step takes about 20 ms.
            sys.setswitchinterval(SWITCH_SECONDS)
        self._pool = torch.cuda.graph_pool_handle() if on_gpu else None
        # All warm-ups use one stream, because the allocator reuses memory only within a stream.
        self._stream = torch.cuda.Stream(world.device) if on_gpu else None

    def close(self) -> None:
        """Restore the settings of the process. No steps may follow."""
        sys.setswitchinterval(self._switch_seconds)
        if self._compiles_layers:
            torch.compiler.set_stance("default")

    def step(self, batches: Sequence[SeededBatch]) -> StepResult:
        """Take one optimiser step. The batches may be in host or device memory."""
        targets = sum(each.batch.num_targets for each in batches)
        if len(batches) == 1 and not self.world.has_group:
            self.targets.fill_(targets)
            batches[0].seed_torch()
            capture = self._capture_for(batches[0].batch, self._full_step)
            capture.run(batches[0].batch)
            return StepResult(capture.loss, targets, self.norm)
        targets = self.world.sum(targets)
        self.targets.fill_(targets)
        self._zero_gradients()
        total = torch.zeros_like(self.targets)
        out_of_memory = None
        try:
            for each in batches:
                each.seed_torch()
                capture = self._capture_for(each.batch, self._add_gradient)
                capture.run(each.batch)
                total += capture.loss
        except torch.OutOfMemoryError as error:
            # Keep only the message, because the traceback references tensors.
            out_of_memory = str(error)
        if self.world.any(out_of_memory is not None):
            raise StepOutOfMemory(out_of_memory)
        self.world.all_reduce_(total)
        assert self._flat is not None
        self.world.all_reduce_(self._flat)
        if self._replay_update is None:
            self._replay_update = self._capture(self._update)
        self._replay_update()
        return StepResult(total, targets, self.norm)

    def _full_step(self, batch: Batch) -> Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self._add_gradient(batch)
        self._update()
        return loss

    def _add_gradient(self, batch: Batch) -> Tensor:
        loss = self.compute_loss(batch) / self.targets
        loss.backward()
        return loss.detach()

    def _update(self) -> None:
        self.norm.copy_(clip_gradients(self.trained, self.clip))
        self.optimizer.step()

    def _zero_gradients(self) -> None:
        """Give every trained parameter a fixed gradient tensor, and set all of them to zero.

        The gradient tensors are views of one flat tensor.
        """
        if self._flat is None or self._gradients is None:
            sizes = [each.numel() for each in self.trained]
            self._flat = self.trained[0].new_zeros(sum(sizes))
            self._gradients = [
                part.view_as(parameter)
                for part, parameter in zip(self._flat.split(sizes), self.trained, strict=True)
            ]
        for parameter, gradient in zip(self.trained, self._gradients, strict=True):
            parameter.grad = gradient
        self._flat.zero_()

    def _capture_for(self, batch: Batch, function: Callable[[Batch], Tensor]) -> Capture:
        """Return the `Capture` of `function` for batches of this shape. If there is none yet,
        capture the function."""
        key = (function.__name__, *(tensor.shape for tensor in batch.tensors()))
        if key not in self._captures:
            fixed = batch.in_one_block(device=self.world.device)
            loss = torch.zeros((), device=self.world.device)
            self._captures[key] = Capture(
                fixed, loss, self._capture(lambda: loss.copy_(function(fixed)))
            )
        return self._captures[key]

    def _capture(self, function: Callable[[], object]) -> Callable[[], object]:
        """Capture a function as a graph. Returns a function that replays the graph.

        Without a GPU, nothing is captured and `function` itself is returned.
        """
        stream = self._stream
        if stream is None:
            return function
        start = time.monotonic()
        graph = torch.cuda.CUDAGraph()
        with self._restored(), torch.compiler.set_stance("default"):
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(WARM_UPS):
                    function()
            # Capture this thread only, because another thread prefetches batches at the same time.
            with torch.cuda.graph(graph, self._pool, stream, capture_error_mode="thread_local"):
                function()
            torch.cuda.current_stream().wait_stream(stream)
        self.seconds += time.monotonic() - start
        return graph.replay

    @contextmanager
    def _restored(self) -> Iterator[None]:
        """Context manager that undoes the effects of the training steps inside it.

        At the end, it resets weights, optimiser state, gradients and random state to their values
        at the start. Capturing a graph needs this, because it first runs the step as a warm-up.
        """
        tensors = self._updated_tensors()
        before = [tensor.detach().clone() for tensor in tensors]
        random = torch.cuda.get_rng_state(self.world.device)
        try:
            yield
        finally:
            known = {id(tensor) for tensor in tensors}
            with torch.no_grad():
                for tensor, value in zip(tensors, before, strict=True):
                    tensor.copy_(value)
                for tensor in self._updated_tensors():
                    if id(tensor) not in known:  # created by the warm-up
                        tensor.zero_()
            torch.cuda.set_rng_state(random, self.world.device)
            if self._gradients is None:
                # The gradients are in the graph's memory pool.
                self.optimizer.zero_grad(set_to_none=True)

    def _updated_tensors(self) -> list[Tensor]:
        """Return all tensors that a step overwrites.

        These are the weights, the gradients (if allocated) and the optimiser state.
        """
        moments = [
            value
            for state in self.optimizer.state.values()
            for value in state.values()
            if isinstance(value, Tensor)
        ]
        return [*self.trained, *(self._gradients or ()), *moments]
