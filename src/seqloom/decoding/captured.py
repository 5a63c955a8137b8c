"""Greedy and beam search with every tensor in its place, for machines that wait for no one.

A GPU computes a step faster than Python can ask for it. So a step of the search, model and all,
is written as a function that reads and writes tensors of fixed shape in fixed places and asks
nothing of the host: it can be recorded once as a CUDA graph and replayed for every step of every
batch of that shape. The host looks in every few steps to see whether all is done.

`tables.py` has the searches in this form; here is what prepares, records and replays them. On a
CPU the same functions are called instead of replayed, and find what the plain searches find.
"""

import copy
import inspect
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor, nn

from seqloom.decoding.beam import Beam
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import Request, Search, Stepper
from seqloom.decoding.tables import tables_for
from seqloom.models.interface import DecoderModule, Memory, StaticDecoder

STRIDE = 8
"""Steps between two looks of the host, where it would have to wait."""
KEPT = 8
"""Programs kept for one decoder, the latest used."""


def round_up(size: int) -> int:
    """To the next of 1, 2, 3, 4, 6, 8, 12, 16, …: few shapes, and at most a third too large."""
    power = 1
    while power < size:
        power *= 2
    return power * 3 // 4 if power >= 4 and size <= power * 3 // 4 else power


def round_up_length(length: int) -> int:
    """To a multiple of 8, beyond 64 of 32."""
    step = 8 if length <= 64 else 32
    return -(-length // step) * step


@dataclass(frozen=True)
class Shape:
    """All that a program is made for; what is rounded up is padded."""

    search: Greedy | Beam
    sources: int
    source_length: int
    capacity: int
    forced: bool
    precision: torch.dtype
    places: tuple[int, ...]
    """Where the decoder's weights lie: a recording knows them by their place."""


class Program:
    """One search over one decoder, in one shape: `begin` once a batch, `advance` once a step."""

    @torch.inference_mode()
    def __init__(self, decoder: Stepper, shape: Shape, memory: Memory) -> None:
        self.shape = shape
        # Programs live as long as their decoder: one that held it would keep it alive for ever.
        self._live, self._copy = ref(decoder), in_precision(decoder, shape.precision)
        self.memory = like_shape(memory, shape)
        wide = torch.float64 if shape.precision == torch.float64 else torch.float32
        self.tables = tables_for(
            shape.search, shape.sources, shape.capacity, wide, self.memory.mask.device
        )
        self.forced = shape.forced
        self.stride = STRIDE if memory.mask.is_cuda else 1
        if memory.mask.is_cuda:
            self.begin, self.advance = record(self._begin, self._advance, self.memory.mask.device)
        else:
            self.begin, self.advance = self._begin, self._advance

    @property
    def _decoder(self) -> StaticDecoder:
        decoder = self._copy or self._live()
        assert isinstance(decoder, StaticDecoder)
        return decoder

    def _begin(self) -> None:
        """Before the first step, with the weights and the memory of now."""
        live = self._live()
        if self._copy is not None and isinstance(live, nn.Module):
            torch._foreach_copy_(list(self._copy.parameters()), list(live.parameters()))
        self.tables.clear()
        state = self._decoder.start_static(self.memory, self.shape.capacity)
        self._state = state.select(self.tables.sources)

    def _advance(self) -> None:
        """One more token for every hypothesis."""
        step = self._decoder.step(self.tables.last, self._state)
        parents = self.tables.enter(step.logits, self.forced)
        state = step.state if parents is None else step.state.select(parents)
        assert isinstance(self._state.position, Tensor)
        self._state.moving.copy_(state.moving)
        self._state.position.copy_(state.position)  # type: ignore[arg-type]  # a tensor, too

    def tensors(self) -> list[Tensor]:
        """All that a step leaves to the next."""
        own = [one for one in vars(self.tables).values() if isinstance(one, Tensor)]
        moving = [one for one in vars(self._state.moving).values() if isinstance(one, Tensor)]
        return [*own, *moving, *([p] if isinstance(p := self._state.position, Tensor) else [])]

    def run(self, memory: Memory, request: Request) -> list[list[Hypothesis]]:
        """Search one batch, at most of this program's shape."""
        fill(self.memory, memory)
        self.tables.ask(request)
        self.begin()
        steps = max(request.max_lengths)
        for step in range(1, steps + 1):
            self.advance()
            if step % self.stride == 0 and step < steps and self.tables.all_done():
                break
        return self.tables.read(request)


def stays_put(decoder: Stepper, request: Request) -> bool:
    """Can every step of this search be the same function of the same tensors?

    Attention and notes grow with every step, and dropout is drawn anew.
    """
    static = isinstance(decoder, StaticDecoder)
    draws = isinstance(decoder, nn.Module) and decoder.training
    watched = request.keep_attention is not None or request.recorder is not None
    return static and not (draws or watched)


def like_shape(memory: Memory, shape: Shape) -> Memory:
    """Room for a memory of this shape, in this precision."""

    def room(tensor: Tensor, *size: int) -> Tensor:
        dtype = shape.precision if tensor.is_floating_point() else tensor.dtype
        return torch.zeros(size, dtype=dtype, device=tensor.device)

    sources, length = shape.sources, shape.source_length
    return Memory(
        states=room(memory.states, sources, length, memory.states.shape[2]),
        mask=room(memory.mask, sources, length),
        summary=room(memory.summary, sources, *memory.summary.shape[1:]),
        tokens=None if memory.tokens is None else room(memory.tokens, sources, length),
    )


def fill(room: Memory, memory: Memory) -> None:
    """Put a memory where there is room for at least as many sources and positions.

    What is left over repeats the first source, so that every row has something to look at.
    """
    size, length = memory.mask.shape
    room.mask.zero_()
    pairs = [(room.states, memory.states), (room.mask, memory.mask)]
    if room.tokens is not None and memory.tokens is not None:
        pairs.append((room.tokens, memory.tokens))
    for places, values in pairs:
        places[:size, :length] = values
        places[size:, :length] = values[:1]
    room.summary[:size] = memory.summary
    room.summary[size:] = memory.summary[:1]


def in_precision(decoder: Stepper, precision: torch.dtype) -> DecoderModule | None:
    """A copy of the decoder with weights in this precision; None if it is so itself."""
    if not isinstance(decoder, DecoderModule):
        return None
    if all(one.dtype == precision for one in decoder.parameters()):
        return None
    copied = copy.deepcopy(decoder).requires_grad_(False).to(precision)
    for part in copied.modules():
        # A method that was compiled for the original would go on to use the original's weights.
        for name in [name for name, it in vars(part).items() if inspect.isroutine(it)]:
            delattr(part, name)
    return copied


def record(
    begin: Callable[[], None], advance: Callable[[], None], device: torch.device
) -> tuple[Callable[[], None], Callable[[], None]]:
    """Both as CUDA graphs, in one pool of memory."""
    aside = _aside(device)
    aside.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(aside):  # kernels are compiled and libraries set up by a first run
        for _ in range(2):
            begin()
            advance()
    torch.cuda.current_stream(device).wait_stream(aside)
    first, further = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        begin()
    with torch.cuda.graph(further, pool=first.pool()):
        advance()
    return first.replay, further.replay


@cache
def _aside(device: torch.device) -> torch.cuda.Stream:
    """For first runs, the same one always: memory used on a stream is used again only there."""
    return torch.cuda.Stream(device)


_PROGRAMS: "WeakKeyDictionary[Stepper, OrderedDict[Shape, Program]]" = WeakKeyDictionary()


@dataclass(frozen=True)
class Captured:
    """A greedy or beam search, run by programs that are kept as long as their decoder lives.

    precision: of the decoder's weights and states; None: as they are
    """

    search: Greedy | Beam
    precision: torch.dtype | None = None

    @torch.inference_mode()
    def __call__(
        self, decoder: Stepper, memory: Memory, request: Request
    ) -> list[list[Hypothesis]]:
        """What the search itself would find."""
        if not stays_put(decoder, request):
            return self.search(decoder, memory, request)
        request.check(memory.mask.shape[0])
        with torch.autocast(memory.mask.device.type, enabled=False):
            return self.program(decoder, memory, request).run(memory, request)

    def program(self, decoder: Stepper, memory: Memory, request: Request) -> Program:
        """The program for this shape: one that was kept, or a new one."""
        size, length = memory.mask.shape
        weights = list(decoder.parameters()) if isinstance(decoder, nn.Module) else []
        shape = Shape(
            search=self.search,
            sources=round_up(size),
            source_length=round_up_length(length),
            capacity=round_up(max(16, *request.max_lengths)),
            forced=any(request.prefixes or ()),
            precision=self.precision or memory.states.dtype,
            places=tuple(weight.data_ptr() for weight in weights),
        )
        programs = _PROGRAMS.setdefault(decoder, OrderedDict())
        if shape not in programs:
            while len(programs) >= KEPT:
                programs.popitem(last=False)
            programs[shape] = Program(decoder, shape, memory)
        programs.move_to_end(shape)
        return programs[shape]


def fastest(search: Search, device: torch.device, precision: torch.dtype | None = None) -> Search:
    """The form of a search that suits a device: recorded where it can be, else as it is."""
    if device.type == "cuda" and isinstance(search, Greedy | Beam):
        return Captured(search, precision)
    return search
