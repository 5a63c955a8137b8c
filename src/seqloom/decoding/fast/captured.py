"""Greedy and beam search as CUDA graphs.

A GPU computes a step faster than Python can launch its operations one by one. Therefore one step of
the decoder and the search is a function on tensors with fixed shapes and addresses. The function
never waits for the device. It is captured once per shape as a CUDA graph, and the graph is replayed
for every step of every batch of that shape. The host checks every few steps which sources are done.
When few sources of a large batch are left, they continue in a smaller batch, so that the search does
not compute finished rows until the longest output is complete.

`static_search.py` contains the searches; this module prepares, captures and replays their steps. On
a CPU, which has no CUDA graphs, the same functions are called directly. The results equal those of
the plain searches.
"""

import copy
import inspect
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from threading import Lock
from weakref import WeakKeyDictionary, ref

import numpy as np
import torch
from torch import Tensor, nn

from seqloom.decoding.beam import Beam
from seqloom.decoding.fast.static_search import Array, SearchPart, build_static_search
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import SearchRequest, StepDecoder
from seqloom.models.interface import DecoderModule, Memory, StaticDecoder

CHECK_INTERVAL = 8
"""On a GPU, the host checks once in this number of steps which sources are done."""
LARGE_BATCH = 64
"""A batch with at least this many sources is large. If the longest source of a large batch has n
tokens, the host makes its first check after n steps, or after CHECK_INTERVAL steps if n is less."""
SMALLER_BATCHES = (256, 1024)
"""Numbers of rows of the smaller batches in which the last sources of a large batch continue. There
are few of them, because each one is captured as a graph of its own."""
SMALLER_SHARE = 0.25
"""A smaller batch has at most this share of the sources of the batch that it continues."""
MAX_PROGRAMS = 32
"""Maximum number of cached programs per decoder. If there are more, the program that was not used
for the longest time is dropped."""
PROGRAM_MEMORY = 0.4
"""Maximum memory of the cached programs of a decoder, as a share of the memory of the GPU. If they
use more, the program that was not used for the longest time is dropped."""


def next_power(size: int) -> int:
    """Round up to a power of two, which is at least 32."""
    return max(32, 1 << (size - 1).bit_length())


def round_up(size: int) -> int:
    """Round up to one of 1, 2, 3, 4, 6, 8, 12, 16, ...

    This limits the number of different shapes. The result is less than 1.5 times `size`.
    """
    power = 1
    while power < size:
        power *= 2
    return power * 3 // 4 if power >= 4 and size <= power * 3 // 4 else power


def round_down(size: int) -> int:
    """Round down to one of 1, 2, 3, 4, 6, 8, 12, 16, ..."""
    power = 1 << (size.bit_length() - 1)
    return power * 3 // 2 if size >= power * 3 // 2 else power


def round_up_length(length: int) -> int:
    """Round up to a multiple of 8, or to a multiple of 32 if `length` is above 64."""
    step = 8 if length <= 64 else 32
    return -(-length // step) * step


@dataclass(frozen=True)
class ProgramShape:
    """The sizes and other properties of a `SearchProgram`, a search with fixed tensor shapes.

    The object is the key of the program in a cache. A smaller batch is padded to these sizes.
    """

    search: Greedy | Beam
    sources: int
    source_length: int
    max_steps: int
    has_prefixes: bool
    precision: torch.dtype
    weight_addresses: tuple[int, ...]
    """Addresses of the decoder's weights. A CUDA graph reads weights from fixed addresses, so a
    program becomes invalid if the weights move to other addresses."""


class SearchProgram:
    """A search with one decoder and fixed tensor shapes.

    `run` calls `begin` once per batch and `advance` once per step. On a GPU, each of these two
    functions replays a CUDA graph.
    """

    @torch.inference_mode()
    def __init__(self, decoder: StepDecoder, shape: ProgramShape, memory: Memory) -> None:
        device = memory.mask.device
        bytes_before = allocated_bytes(device)
        self.shape = shape
        # The cache drops programs when their decoder is deleted. A program therefore holds only a
        # weak reference to the decoder.
        self._decoder_ref, self._copy = ref(decoder), copy_in_precision(decoder, shape.precision)
        self.memory = allocate_memory(memory, shape)
        dtype = torch.float64 if shape.precision == torch.float64 else torch.float32
        self.search = build_static_search(
            shape.search, shape.sources, shape.max_steps, dtype, device
        )
        self.has_prefixes = shape.has_prefixes
        self.check_interval = CHECK_INTERVAL if memory.mask.is_cuda else 1
        self.bytes = allocated_bytes(device) - bytes_before
        """Memory of the program on a GPU."""
        if memory.mask.is_cuda:
            graphs = capture_graphs(self._begin, self._advance, device)
            self.begin, self.advance = (graph.replay for graph in graphs)
            self.bytes += pool_bytes(graphs[0])
        else:
            self.begin, self.advance = self._begin, self._advance

    @property
    def _decoder(self) -> StaticDecoder:
        decoder = self._copy or self._decoder_ref()
        assert isinstance(decoder, StaticDecoder)
        return decoder

    def _begin(self) -> None:
        """Prepare the first step: reset the search and start the decoder with `self.memory`.

        If the program uses a copy of the decoder, first update the weights of the copy.
        """
        original = self._decoder_ref()
        if self._copy is not None and isinstance(original, nn.Module):
            torch._foreach_copy_(list(self._copy.parameters()), list(original.parameters()))
        self.search.reset()
        state = self._decoder.start_static(self.memory, self.shape.max_steps)
        self._state = state.select(self.search.sources)

    def _advance(self) -> None:
        """Extend every hypothesis by one token."""
        step = self._decoder.step(self.search.last_tokens, self._state)
        parents = self.search.update(step.logits, self.has_prefixes)
        state = step.state if parents is None else step.state.select(parents)
        assert isinstance(self._state.position, Tensor)
        self._state.moving.copy_(state.moving)
        self._state.position.copy_(state.position)  # type: ignore[arg-type]  # also a tensor

    def tensors(self) -> list[Tensor]:
        """Return all tensors that carry values from one step to the next."""
        search = [value for value in vars(self.search).values() if isinstance(value, Tensor)]
        moving = [value for value in vars(self._state.moving).values() if isinstance(value, Tensor)]
        position = self._state.position
        return [*search, *moving, *([position] if isinstance(position, Tensor) else [])]

    def smaller(self, sources: int) -> "SearchProgram | None":
        """Return a much smaller program in which this many sources can continue, if there is one.

        Raises an OutOfMemoryError if the GPU has too little memory for it. Smaller programs have
        fewer different lengths than other programs, so that several batches use the same one.
        """
        limit = SMALLER_SHARE * self.shape.sources
        sizes = [rows // self.search.width for rows in SMALLER_BATCHES]
        sizes = [size for size in sizes if sources <= size <= limit]
        decoder = self._decoder_ref()
        if not sizes or decoder is None:
            return None
        shape = replace(
            self.shape,
            sources=min(sizes),
            source_length=next_power(self.shape.source_length),
            max_steps=next_power(self.shape.max_steps),
        )
        return cached_program(decoder, shape, self.memory)

    @torch.inference_mode()
    def load(self, other: "SearchProgram", sources: Array) -> None:
        """Copy these sources from another program, so that this program continues their search.

        sources: indices of at most `self.shape.sources` sources of the other program
        """
        search, device = self.search, self.memory.mask.device
        padded = np.concatenate([sources, np.repeat(sources[:1], search.size - len(sources))])
        chosen = torch.from_numpy(padded).to(device)
        first_rows = chosen.unsqueeze(1) * search.width
        rows = (first_rows + torch.arange(search.width, device=device)).flatten()
        fill_memory(self.memory, other.memory.select(chosen))
        self.begin()
        search.load(other.search, chosen, rows, len(sources))
        self._state.moving.load(other._state.moving, rows)
        assert isinstance(self._state.position, Tensor)
        self._state.position.copy_(other._state.position)  # type: ignore[arg-type]  # also a tensor

    def run(self, memory: Memory, request: SearchRequest) -> list[list[Hypothesis]]:
        """Search for the outputs of one batch, which must not be larger than `self.shape`."""
        started = self.start(memory, request)
        started.finish()
        return started.hypotheses()

    @torch.inference_mode()
    def start(self, memory: Memory, request: SearchRequest) -> "StartedSearch":
        """Start the search for one batch. On a GPU, the host does not wait for the device.

        The search must be finished before the next search of this program is started.
        """
        fill_memory(self.memory, memory)
        self.search.load_request(request)
        self.begin()
        started = StartedSearch(self, request, max(request.max_lengths))
        # In a large batch, at least one output is nearly always as long as the sources.
        is_large = len(request.max_lengths) >= LARGE_BATCH and memory.mask.is_cuda
        length = memory.mask.shape[1]
        started.advance(max(self.check_interval, length if is_large else 0))
        return started


class StartedSearch:
    """A search for one batch that has been started.

    The host can do other work between `start` and `finish`, while the device computes:

        started = program.start(memory, request)
        do_other_work()
        started.finish()
        hypotheses = started.hypotheses()

    After `finish`, the program can start its next search, even before `hypotheses` is called.
    """

    def __init__(self, program: SearchProgram, request: SearchRequest, max_steps: int) -> None:
        self._program, self._request, self._max_steps = program, request, max_steps
        self._steps = 0
        self._sources = np.arange(len(request.max_lengths))
        """Index in the request of each source of the program."""
        self._parts: list[SearchPart] = []
        self._reported: dict[int, list[Hypothesis]] = {}
        """The hypotheses that were passed to `on_finished`, by the index of the source."""
        self._has_memory = True
        """False after the GPU had too little memory for a smaller program."""

    def advance(self, steps: int) -> None:
        """Extend every hypothesis by so many tokens, but not beyond the maximum length."""
        steps = min(steps, self._max_steps - self._steps)
        for _ in range(steps):
            self._program.advance()
        self._steps += steps

    @torch.inference_mode()
    def finish(self) -> None:
        """Compute the remaining steps.

        The host does not wait for the last few steps, unless the request has `on_finished`.
        """
        with torch.autocast(self._program.search.done.device.type, enabled=False):
            while self._steps < self._max_steps:
                unfinished = self._program.search.unfinished(len(self._sources))
                if len(unfinished) == 0:
                    break
                self._report(np.delete(self._sources, unfinished))
                smaller = self._smaller_program(len(unfinished))
                if smaller is not None:
                    self._continue_in(smaller, unfinished)
                self.advance(self._program.check_interval)
        self._report(self._sources)
        self._end_part()

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Return at most n_best hypotheses of each source, best first."""
        assert self._parts, "finish the search first"
        hypotheses = self._program.search.hypotheses(self._parts, self._request)
        return [self._reported.get(source, found) for source, found in enumerate(hypotheses)]

    def _report(self, finished: Array) -> None:
        """Pass the hypotheses of these sources to `on_finished`, unless they were reported before.

        The host waits for the device.
        """
        on_finished = self._request.on_finished
        sources = [source for source in finished.tolist() if source not in self._reported]
        if on_finished is None or not sources:
            return
        parts = [*self._parts, self._newest_part()]
        hypotheses = self._program.search.hypotheses(parts, self._request)
        for source in sources:
            self._reported[source] = hypotheses[source]
            on_finished(source, hypotheses[source])

    def _smaller_program(self, sources: int) -> SearchProgram | None:
        """Return the smaller program for this many sources; None if there is none, or no memory."""
        if self._has_memory:
            try:
                return self._program.smaller(sources)
            except torch.OutOfMemoryError:
                self._has_memory = False
        return None

    def _continue_in(self, program: SearchProgram, sources: Array) -> None:
        """Compute the further steps of these sources of the current program in another program."""
        self._end_part()
        program.load(self._program, sources)
        self._program, self._sources = program, self._sources[sources]

    def _end_part(self) -> None:
        self._parts.append(self._newest_part())

    def _newest_part(self) -> SearchPart:
        """Start to copy the tables of the steps of the current program to the host."""
        first = self._parts[-1].steps if self._parts else 0
        tables = self._program.search.copy_tables(slice(first, self._steps), len(self._sources))
        return SearchPart(self._sources, self._steps, tables)


def can_run_static(decoder: StepDecoder, request: SearchRequest) -> bool:
    """Return True if this search can run as a `SearchProgram`, that is, with fixed tensor shapes.

    The decoder must implement `StaticDecoder`. It must not be in training mode, because random
    dropout masks would make the results differ from those of the plain search. The request must
    not ask for attention weights or for a trace, because both grow with every step. The request
    must not exclude tokens either: a `SearchProgram` does not apply `request.excluded`.
    """
    is_static = isinstance(decoder, StaticDecoder)
    has_dropout = isinstance(decoder, nn.Module) and decoder.training
    is_observed = request.keep_attention is not None or request.tracer is not None
    return is_static and not (has_dropout or is_observed) and request.excluded is None


def allocate_memory(memory: Memory, shape: ProgramShape) -> Memory:
    """Allocate a buffer of zeros for encoder outputs (`Memory`).

    `shape` determines the number of sources, the source length and the precision. `memory`
    determines the device and the width of the vectors.
    """

    def zeros(tensor: Tensor, *size: int) -> Tensor:
        dtype = shape.precision if tensor.is_floating_point() else tensor.dtype
        return torch.zeros(size, dtype=dtype, device=tensor.device)

    sources, length = shape.sources, shape.source_length
    return Memory(
        states=zeros(memory.states, sources, length, memory.states.shape[2]),
        mask=zeros(memory.mask, sources, length),
        summary=zeros(memory.summary, sources, *memory.summary.shape[1:]),
        tokens=None if memory.tokens is None else zeros(memory.tokens, sources, length),
    )


def fill_memory(buffer: Memory, memory: Memory) -> None:
    """Copy an encoder output into `buffer`, which has at least as many sources and positions.

    Unused sources of the buffer get a copy of the first source. If they were empty, attention would
    have no position to attend to.
    """
    size, length = memory.mask.shape
    buffer.mask.zero_()
    pairs = [(buffer.states, memory.states), (buffer.mask, memory.mask)]
    if buffer.tokens is not None and memory.tokens is not None:
        pairs.append((buffer.tokens, memory.tokens))
    for destination, values in pairs:
        destination[:size, :length] = values
        destination[size:, :length] = values[:1]
    buffer.summary[:size] = memory.summary
    buffer.summary[size:] = memory.summary[:1]


def copy_in_precision(decoder: StepDecoder, precision: torch.dtype) -> DecoderModule | None:
    """Copy the decoder and convert its weights to this precision.

    Return None if no copy is needed because all weights have this precision already.
    """
    if not isinstance(decoder, DecoderModule):
        return None
    if all(parameter.dtype == precision for parameter in decoder.parameters()):
        return None
    copied = copy.deepcopy(decoder).requires_grad_(False).to(precision)
    for module in copied.modules():
        # A method that was compiled for the original would still use the original's weights.
        for name in [name for name, value in vars(module).items() if inspect.isroutine(value)]:
            delattr(module, name)
    return copied


def capture_graphs(
    begin: Callable[[], None], advance: Callable[[], None], device: torch.device
) -> tuple[torch.cuda.CUDAGraph, torch.cuda.CUDAGraph]:
    """Capture both functions as CUDA graphs that share a memory pool."""
    warm_up, capture = _streams(device)
    warm_up.wait_stream(torch.cuda.current_stream(device))
    try:
        with torch.cuda.stream(warm_up):  # the first runs compile kernels
            for _ in range(2):
                begin()
                advance()
    finally:
        torch.cuda.current_stream(device).wait_stream(warm_up)
    begin_graph, advance_graph = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    # CUDA can capture only one graph at a time. Other threads, which use other models, may allocate
    # memory in the meantime. In the default mode, this would be an error.
    mode = "thread_local"
    with _capture_lock, torch.cuda.device(device):
        with torch.cuda.graph(begin_graph, stream=capture, capture_error_mode=mode):
            begin()
        pool = begin_graph.pool()
        with torch.cuda.graph(advance_graph, pool, capture, capture_error_mode=mode):
            advance()
    return begin_graph, advance_graph


def pool_bytes(graph: torch.cuda.CUDAGraph) -> int:
    """Return the memory of the pool of a graph: its tensors, and what it needs while it runs."""
    return sum(
        segment["total_size"]
        for segment in torch.cuda.memory_snapshot()
        if tuple(segment["segment_pool_id"]) == tuple(graph.pool())
    )


_capture_lock = Lock()


@cache
def _streams(device: torch.device) -> tuple[torch.cuda.Stream, torch.cuda.Stream]:
    """Return the CUDA streams for the warm-up runs before a capture, and for the capture.

    All captures on a device use the same two streams, because the allocator reuses freed memory only
    within a stream.
    """
    return torch.cuda.Stream(device), torch.cuda.Stream(device)


_PROGRAMS: "WeakKeyDictionary[StepDecoder, OrderedDict[ProgramShape, SearchProgram]]"
_PROGRAMS = WeakKeyDictionary()


def cached_program(decoder: StepDecoder, shape: ProgramShape, memory: Memory) -> SearchProgram:
    """Return the program of this shape. If the cache has none, create it and store it there.

    memory: an encoder output, which determines the device and the width of the program's vectors
    """
    programs = _PROGRAMS.setdefault(decoder, OrderedDict())
    if shape not in programs:
        programs[shape] = SearchProgram(decoder, shape, memory)
        limit = PROGRAM_MEMORY * total_bytes(memory.mask.device)
        while len(programs) > 1 and (
            len(programs) > MAX_PROGRAMS or sum(one.bytes for one in programs.values()) > limit
        ):
            programs.popitem(last=False)
    programs.move_to_end(shape)
    return programs[shape]


def free_gpu_memory() -> None:
    """Drop all cached programs, and return unused memory to the GPU. Without a GPU, only the former.

    Call this after an OutOfMemoryError. Programs whose search is not finished stay until it is.
    """
    _PROGRAMS.clear()
    with _capture_lock:
        torch.cuda.empty_cache()


def allocated_bytes(device: torch.device) -> int:
    """Return the memory of all tensors on a GPU; 0 for a CPU."""
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else 0


def total_bytes(device: torch.device) -> int:
    """Return the memory of a GPU; 0 for a CPU."""
    if device.type != "cuda":
        return 0
    return torch.cuda.get_device_properties(device).total_memory


@dataclass(frozen=True)
class CapturedSearch:
    """A greedy or beam search that runs on tensors of fixed shape.

    For each batch shape, it creates a `SearchProgram`, which runs the search for all batches of
    this shape. The programs of a decoder are cached until the decoder is deleted.

    precision: data type of the decoder's weights and states. Default: None, which means the data
               type of the encoder output.
    """

    search: Greedy | Beam
    precision: torch.dtype | None = None

    @torch.inference_mode()
    def __call__(
        self, decoder: StepDecoder, memory: Memory, request: SearchRequest
    ) -> list[list[Hypothesis]]:
        """Run the search. The hypotheses equal those of the plain version, `self.search`."""
        if not can_run_static(decoder, request):
            return self.search(decoder, memory, request)
        started = self.start(decoder, memory, request)
        started.finish()
        return started.hypotheses()

    @torch.inference_mode()
    def start(self, decoder: StepDecoder, memory: Memory, request: SearchRequest) -> StartedSearch:
        """Start the search. While the device computes, the host can do other work.

        `can_run_static(decoder, request)` must be True. Finish the search before you start the next
        one: batches of the same shape use the same tensors.
        """
        request.check(memory.mask.shape[0])
        with torch.autocast(memory.mask.device.type, enabled=False):
            return self.program(decoder, memory, request).start(memory, request)

    def program(
        self, decoder: StepDecoder, memory: Memory, request: SearchRequest
    ) -> SearchProgram:
        """Return the `SearchProgram` for the shape of this batch."""
        size, length = memory.mask.shape
        weights = list(decoder.parameters()) if isinstance(decoder, nn.Module) else []
        shape = ProgramShape(
            search=self.search,
            sources=round_up(size),
            source_length=round_up_length(length),
            max_steps=round_up(max(16, *request.max_lengths)),
            has_prefixes=any(request.prefixes or ()),
            precision=self.precision or memory.states.dtype,
            weight_addresses=tuple(weight.data_ptr() for weight in weights),
        )
        return cached_program(decoder, shape, memory)
