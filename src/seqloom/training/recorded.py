"""Steps that are recorded once and replayed: the fast path on a GPU.

The plain loop starts every operation by itself, and to start one takes longer than most of them
run. Here a whole step (forward, loss, backward, clip, update) is recorded as one CUDA graph for
each shape of batch, and then only the batch changes. It computes what `step.train_step` computes:
a test takes the same steps both ways.

What a graph reads and writes has to stay where it was when it was recorded: the batch is copied
into tensors of its own, and the learning rate and the number of targets are tensors too.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from seqloom.core.sequences import Batch
from seqloom.models.seq2seq import Model
from seqloom.training.distributed import World
from seqloom.training.step import LossOf, StepResult

WARM_UPS = 3
"""Runs before a recording, in which libraries choose their algorithms and reserve memory."""


def compile_parts(model: Model) -> None:
    """Compile what runs over and over, for recordings alone: elsewhere, where lengths differ from
    one batch to the next, every new shape would be compiled again."""
    torch.compiler.set_stance("force_eager")
    if model.encoder is not None:
        model.encoder.compile_parts()
    model.decoder.compile_parts()


Body = Callable[[Batch], Tensor]
"""Works on a batch and returns the loss."""


@dataclass(frozen=True)
class Recording:
    """A piece of work on a batch, with the places it reads from and writes to."""

    batch: Batch
    loss: Tensor
    replay: Callable[[], object]

    def play(self, batch: Batch) -> None:
        for place, tensor in zip(self.batch.tensors(), batch.tensors(), strict=True):
            place.copy_(tensor, non_blocking=True)
        self.replay()


class Recorder:
    """Takes training steps by replaying recordings, one for each shape of batch it has seen.

    A batch alone is one recording. Several batches for one step, or several ranks, need a
    pause between the gradients and the update, so those are recorded apart.
    """

    def __init__(
        self,
        model: Model,
        optimizer: torch.optim.Optimizer,
        loss_of: LossOf,
        clip: float | None,
        world: World,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.loss_of = loss_of
        self.limit = float("inf") if clip is None else clip
        self.world = world
        self.targets = torch.ones((), device=world.device)
        self.norm = torch.zeros((), device=world.device)
        self._recordings: dict[object, Recording] = {}
        self._update: Callable[[], object] | None = None
        self._gradients: list[Tensor] | None = None
        self.seconds = 0.0
        """Spent on recording, compilation included."""
        on_gpu = world.device.type == "cuda"
        self._pool = torch.cuda.graph_pool_handle() if on_gpu else None
        # One stream for all warm-ups: memory that was used on a stream is used again only there.
        self._aside = torch.cuda.Stream(world.device) if on_gpu else None

    def step(self, batches: Sequence[Batch]) -> StepResult:
        """One optimiser step over batches that may still lie in ordinary memory."""
        own = sum(batch.num_targets for batch in batches)
        if len(batches) == 1 and self.world.size == 1:
            self.targets.fill_(own)
            recording = self._recording(batches[0], self._whole)
            recording.play(batches[0])
            return StepResult(recording.loss, own, self.norm)
        targets = round(self.world.total(own))
        self.targets.fill_(targets)
        self._clear_gradients()
        total = torch.zeros_like(self.targets)
        for batch in batches:
            recording = self._recording(batch, self._add_gradient)
            recording.play(batch)
            total += recording.loss
        self.world.add_up(total)
        self.world.add_gradients(self.model.parameters())
        if self._update is None:
            self._update = self._record(self._change_weights)
        self._update()
        return StepResult(total, targets, self.norm)

    def _whole(self, batch: Batch) -> Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self._add_gradient(batch)
        self._change_weights()
        return loss

    def _add_gradient(self, batch: Batch) -> Tensor:
        loss = self.loss_of(batch) / self.targets
        loss.backward()
        return loss.detach()

    def _change_weights(self) -> None:
        self.norm.copy_(nn.utils.clip_grad_norm_(self.model.parameters(), self.limit))
        self.optimizer.step()

    def _clear_gradients(self) -> None:
        """Begin with gradients of zero that stay where they are."""
        if self._gradients is None:
            self._gradients = [torch.zeros_like(each) for each in self.model.parameters()]
        for parameter, gradient in zip(self.model.parameters(), self._gradients, strict=True):
            parameter.grad = gradient
        torch._foreach_zero_(self._gradients)

    def _recording(self, batch: Batch, body: Body) -> Recording:
        key = (body.__name__, *(tensor.shape for tensor in batch.tensors()))
        if key not in self._recordings:
            place = batch.map(lambda tensor: tensor.to(self.world.device, copy=True))
            loss = torch.zeros((), device=self.world.device)
            self._recordings[key] = Recording(
                place, loss, self._record(lambda: loss.copy_(body(place)))
            )
        return self._recordings[key]

    def _record(self, work: Callable[[], object]) -> Callable[[], object]:
        """Work that can be done again and again. Off the GPU it is simply done each time."""
        side = self._aside
        if side is None:
            return work
        began = time.monotonic()
        graph = torch.cuda.CUDAGraph()
        with self._unchanged(), torch.compiler.set_stance("default"):
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(WARM_UPS):
                    work()
            # Only this thread is being recorded: another makes the next batches ready meanwhile.
            with torch.cuda.graph(graph, self._pool, side, capture_error_mode="thread_local"):
                work()
            torch.cuda.current_stream().wait_stream(side)
        self.seconds += time.monotonic() - began
        return graph.replay

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """To record is not to train: afterwards all is as it was before the first warm-up."""
        tensors = self._changed()
        before = [tensor.detach().clone() for tensor in tensors]
        random = torch.cuda.get_rng_state(self.world.device)
        try:
            yield
        finally:
            known = {id(tensor) for tensor in tensors}
            with torch.no_grad():
                for tensor, value in zip(tensors, before, strict=True):
                    tensor.copy_(value)
                for tensor in self._changed():
                    if id(tensor) not in known:  # a moment of an optimiser that had none yet
                        tensor.zero_()
            torch.cuda.set_rng_state(random, self.world.device)
            if self._gradients is None:
                self.optimizer.zero_grad(set_to_none=True)  # they lie in a graph's own memory

    def _changed(self) -> list[Tensor]:
        """All that a step changes: weights, kept gradients, moments."""
        moments = [
            value
            for state in self.optimizer.state.values()
            for value in state.values()
            if isinstance(value, Tensor)
        ]
        return [*self.model.parameters(), *(self._gradients or ()), *moments]
