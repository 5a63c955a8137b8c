"""Compiled greedy and beam search for one source, for low latency on a CPU.

A step for one source consists of about a hundred small operations, and calling them from Python
takes longer than computing them. `captured.py` defines a step as a function on tensors. This module
compiles that function with torch.compile, once per decoder and search. The compiled step works for
all source and output lengths. Compilation takes half a minute and needs a C++ compiler. Batches of
several sources use the plain search, because most of their time is spent in matrix products.
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
from seqloom.decoding.fast.captured import ProgramShape, SearchProgram, can_run_static
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import SearchRequest, StepDecoder
from seqloom.models.interface import DecoderModule, Memory

CompiledAdvance = Callable[[SearchProgram], None]
"""The compiled version of `SearchProgram._advance`."""
WeightVersions = tuple[tuple[int, int], ...]
"""Address and version counter of each weight.

Compiled code contains copies of the weights. A step is compiled again if these values change."""

REQUIRED_TORCH = (2, 9)
"""Minimum version of torch. Version 2.8 added the option guard_filter_fn of torch.compile, version
2.9 the inductor setting max_autotune_report_choices_stats."""
EXAMPLE_LENGTH = 48
"""Length of source and output of the example with which a step is compiled.

The compiled code works for all lengths. It is fastest for lengths near this value."""
MIN_LENGTH = 2
"""Minimum length of source and output of a program.

torch.compile specialises dimensions of size 1, so shorter sources and outputs are padded."""
INDUCTOR_SETTINGS: dict[str, Any] = {
    "freezing": True,  # treat weights as constants, so that inductor can optimise their layout
    "max_autotune": True,
    "max_autotune_gemm_backends": "CPP,ATEN",
    "cpp_wrapper": True,  # no Python between two operations
    "compile_threads": 1,  # no worker processes that outlive the compilation
    "max_autotune_report_choices_stats": False,
    "autotune_num_choices_displayed": 0,
}


def unsupported_reason() -> str | None:
    """Return an error message if this version of torch cannot compile a search, otherwise None."""
    version = torch.__version__
    major, minor = (int(number) for number in version.split(".")[:2])
    if (major, minor) >= REQUIRED_TORCH:
        return None
    required = ".".join(map(str, REQUIRED_TORCH))
    release = version.split("+")[0]
    return (
        f"The compiled engine needs torch {required} or newer; this is {release}. "
        "Use --engine auto."
    )


@dataclass(frozen=True)
class CompiledStep:
    """The step of a search, compiled for one decoder and one data type.

    weights: address and version counter of each weight at the time of compilation. If they change,
             the step must be compiled again
    advance: the compiled function
    """

    weights: WeightVersions
    advance: CompiledAdvance


_COMPILED_STEPS: (
    "WeakKeyDictionary[StepDecoder, dict[tuple[Greedy | Beam, torch.dtype], CompiledStep]]"
)
_COMPILED_STEPS = WeakKeyDictionary()


@dataclass(frozen=True)
class CompiledSearch:
    """A greedy or beam search with a compiled step for batches of one source.

    The step is compiled when it is first used. Larger batches use the plain search.
    """

    search: Greedy | Beam

    @torch.inference_mode()
    def __call__(
        self, decoder: StepDecoder, memory: Memory, request: SearchRequest
    ) -> list[list[Hypothesis]]:
        """Run the search. The hypotheses equal those of the plain version, `self.search`."""
        if len(memory.mask) > 1 or not can_run_static(decoder, request):
            return self.search(decoder, memory, request)
        request.check(1)
        advance = self.prepare(decoder, memory)
        program = self._program(decoder, memory, memory.mask.shape[1], request.max_lengths[0])
        program.advance = partial(advance, program)
        # The compiled code always applies prefixes, so a request without prefixes gets an empty
        # prefix. Compiling a second version without prefixes would take too long.
        return program.run(memory, replace(request, prefixes=request.prefixes or [()]))

    @torch.inference_mode()
    def prepare(self, decoder: StepDecoder, memory: Memory) -> CompiledAdvance:
        """Return the compiled step for this decoder and the data type of the encoder output.

        Compile the step if it has not been compiled yet or the weights have changed.
        """
        steps = _COMPILED_STEPS.setdefault(decoder, {})
        key, weights = (self.search, memory.states.dtype), weight_versions(decoder)
        if key not in steps or steps[key].weights != weights:
            steps[key] = CompiledStep(weights, self._compile(decoder, memory))
        return steps[key].advance

    def _program(
        self, decoder: StepDecoder, memory: Memory, source_length: int, max_steps: int
    ) -> SearchProgram:
        shape = ProgramShape(
            search=self.search,
            sources=1,
            source_length=max(MIN_LENGTH, source_length),
            max_steps=max(MIN_LENGTH, max_steps),
            has_prefixes=True,
            precision=memory.states.dtype,
            weight_addresses=(),
        )
        return SearchProgram(decoder, shape, memory)

    def _compile(self, decoder: StepDecoder, memory: Memory) -> CompiledAdvance:
        max_length = decoder.max_length if isinstance(decoder, DecoderModule) else None
        steps = EXAMPLE_LENGTH if max_length is None else min(EXAMPLE_LENGTH, max_length)
        # These two programs have different source and output lengths. Dimensions in which they
        # differ are dynamic.
        example = self._started(decoder, memory, EXAMPLE_LENGTH, steps)
        shorter = self._started(decoder, memory, EXAMPLE_LENGTH - 1, steps - 1)
        for tensor, shorter_tensor in zip(tensors_of(example), tensors_of(shorter), strict=True):
            shapes = zip(tensor.shape, shorter_tensor.shape, strict=True)
            for dimension, sizes in enumerate(shapes):
                if sizes[0] != sizes[1]:
                    torch._dynamo.mark_dynamic(tensor, dimension)
        return compile_step(example)

    def _started(
        self, decoder: StepDecoder, memory: Memory, source_length: int, steps: int
    ) -> SearchProgram:
        """Create a search with tensors of fixed shapes, and prepare its first step.

        source_length: number of source positions
        steps:         maximum number of output tokens
        """
        program = self._program(decoder, memory, source_length, steps)
        program.memory.mask.fill_(True)
        program.begin()
        return program


def compile_step(program: SearchProgram) -> CompiledAdvance:
    """Compile the step of a search program, which is a search with tensors of fixed shapes.

    The compiled step also works for other programs with the same search and the same decoder. Their
    tensors may have other sizes, but only in the dimensions that the caller has marked with
    `torch._dynamo.mark_dynamic`.
    """
    original = SearchProgram._advance
    # torch.compile caches compiled code by code object. Each compilation uses its own copy of the
    # code object, so that the compiled steps of different decoders do not share a cache entry.
    step: CompiledAdvance = FunctionType(
        original.__code__.replace(), original.__globals__, original.__name__
    )
    # Guards check at every call whether the compiled code fits its inputs and weights. They are
    # not needed, because `CompiledSearch.prepare` selects the right step.
    options: dict[str, Any] = {"guard_filter_fn": lambda guards: [False] * len(guards)}
    step = torch.compile(step, fullgraph=True, dynamic=False, options=options)
    with (
        torch._dynamo.config.patch(allow_rnn=True),  # decoders only read the weights of RNN modules
        torch._inductor.config.patch(INDUCTOR_SETTINGS),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        step(program)
    return step


def weight_versions(decoder: StepDecoder) -> WeightVersions:
    """Return the address and version counter of each weight of a decoder."""
    weights = decoder.parameters() if isinstance(decoder, nn.Module) else ()
    return tuple(
        (weight.data_ptr(), 0 if weight.is_inference() else weight._version) for weight in weights
    )


def tensors_of(value: object) -> Iterator[Tensor]:
    """Yield all tensors in an object and its attributes, in a fixed order. Skip torch modules."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors_of(item)
    elif type(value).__module__.startswith("seqloom.") and not isinstance(value, nn.Module):
        for attribute in vars(value).values():
            yield from tensors_of(attribute)
