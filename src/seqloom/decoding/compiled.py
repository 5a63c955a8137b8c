"""Greedy and beam search of one source as compiled code: for a CPU, while somebody waits.

A step for one source is a hundred small operations, and to ask for them one after the other takes
longer than to compute them. `captured.py` has a step as a function that reads and writes tensors;
here it is compiled, once for a decoder and a search and then for all lengths, with the weights laid
out as the compiled products read them. That takes half a minute and a C++ compiler. Several sources
together are searched as ever: there it is the products that take the time, and asking does not.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from seqloom.decoding.beam import Beam
from seqloom.decoding.captured import Program, Shape, stays_put
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import Request, Stepper
from seqloom.models.interface import DecoderModule, Memory

Advance = Callable[[Program], None]
Weights = tuple[tuple[int, int], ...]
"""Where each of a decoder's weights lies, and how often it was changed: compiled code has copies."""

USUAL = 48
"""Positions of source and output that code is made with, and serves best."""
LEAST = 2
"""Positions of the smallest program: torch takes what is one for one at all times."""
SETTINGS: dict[str, Any] = {
    "freezing": True,  # weights never change, so that they can be laid out anew
    "max_autotune": True,
    "max_autotune_gemm_backends": "CPP,ATEN",
    "cpp_wrapper": True,  # from one operation to the next without Python
    "compile_threads": 1,  # no processes that stay behind
    "max_autotune_report_choices_stats": False,
    "autotune_num_choices_displayed": 0,
}

_MADE: "WeakKeyDictionary[Stepper, dict[tuple[Greedy | Beam, torch.dtype], Made]]"
_MADE = WeakKeyDictionary()


@dataclass(frozen=True)
class Made:
    """A compiled step, and the weights it was compiled with."""

    weights: Weights
    advance: Advance


@dataclass(frozen=True)
class Compiled:
    """A greedy or beam search whose steps are compiled when they are first asked for."""

    search: Greedy | Beam

    @torch.inference_mode()
    def __call__(
        self, decoder: Stepper, memory: Memory, request: Request
    ) -> list[list[Hypothesis]]:
        """What the search itself would find."""
        if len(memory.mask) > 1 or not stays_put(decoder, request):
            return self.search(decoder, memory, request)
        request.check(1)
        advance = self.prepare(decoder, memory)
        program = self._program(decoder, memory, memory.mask.shape[1], request.max_lengths[0])
        program.advance = partial(advance, program)
        # Compiled code always looks for a beginning: one more to compile would be dearer.
        return program.run(memory, replace(request, prefixes=request.prefixes or [()]))

    @torch.inference_mode()
    def prepare(self, decoder: Stepper, memory: Memory) -> Advance:
        """The step for this decoder and memories like this one, compiled if it was not yet."""
        kept = _MADE.setdefault(decoder, {})
        key, weights = (self.search, memory.states.dtype), weights_of(decoder)
        if key not in kept or kept[key].weights != weights:
            kept[key] = Made(weights, self._compile(decoder, memory))
        return kept[key].advance

    def _program(self, decoder: Stepper, memory: Memory, length: int, capacity: int) -> Program:
        shape = Shape(
            search=self.search,
            sources=1,
            source_length=max(LEAST, length),
            capacity=max(LEAST, capacity),
            forced=True,
            precision=memory.states.dtype,
            places=(),
        )
        return Program(decoder, shape, memory)

    def _compile(self, decoder: Stepper, memory: Memory) -> Advance:
        longest = decoder.max_length if isinstance(decoder, DecoderModule) else None
        steps = USUAL if longest is None else min(USUAL, longest)
        # What two programs of unequal lengths do not agree in is what a length decides.
        one = self._begun(decoder, memory, USUAL, steps)
        other = self._begun(decoder, memory, USUAL - 1, steps - 1)
        for tensor, like in zip(tensors_of(one), tensors_of(other), strict=True):
            for dimension, sizes in enumerate(zip(tensor.shape, like.shape, strict=True)):
                if sizes[0] != sizes[1]:
                    torch._dynamo.mark_dynamic(tensor, dimension)
        return compiled(one)

    def _begun(self, decoder: Stepper, memory: Memory, length: int, steps: int) -> Program:
        """A program of these lengths, before its first step."""
        program = self._program(decoder, memory, length, steps)
        program.memory.mask.fill_(True)
        program.begin()
        return program


def compiled(program: Program) -> Advance:
    """The step of a program, for all that differ from it in what was marked alone."""
    own = Program._advance
    # torch keeps what it compiles with a function's code, for all who share it: a code of its own
    # keeps one decoder's step apart from another's.
    step: Advance = FunctionType(own.__code__.replace(), own.__globals__, own.__name__)
    # Here it is known when a step is the right one; torch would look at every weight each time.
    settings: dict[str, Any] = {"guard_filter_fn": lambda guards: [False] * len(guards)}
    step = torch.compile(step, fullgraph=True, dynamic=False, options=settings)
    with (
        torch._dynamo.config.patch(allow_rnn=True),  # cells whose weights are all we ask for
        torch._inductor.config.patch(SETTINGS),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        step(program)
    return step


def weights_of(decoder: Stepper) -> Weights:
    """Which weights a decoder has now."""
    weights = decoder.parameters() if isinstance(decoder, nn.Module) else ()
    return tuple((one.data_ptr(), 0 if one.is_inference() else one._version) for one in weights)


def tensors_of(thing: object) -> Iterator[Tensor]:
    """Every tensor of a program but weights, always in the same order."""
    if isinstance(thing, Tensor):
        yield thing
    elif isinstance(thing, tuple | list):
        for part in thing:
            yield from tensors_of(part)
    elif type(thing).__module__.startswith("seqloom.") and not isinstance(thing, nn.Module):
        for part in vars(thing).values():
            yield from tensors_of(part)
