"""Greedy and beam search of one source as compiled code, for low latency on a CPU.

A step for one source consists of about a hundred small operations, and calling them from Python
takes longer than computing them. `captured.py` defines a step as a function on tensors. Here
torch.compile compiles that function once per decoder and search, for all lengths, with the weights
repacked for the compiled matrix products. Compilation takes half a minute and needs a C++ compiler.
Batches of several sources use the plain search: there the matrix products dominate.
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
"""`SearchProgram._advance`, compiled."""
WeightVersions = tuple[tuple[int, int], ...]
"""Address and version counter of each weight: compiled code contains copies of the weights."""

REQUIRED_TORCH = (2, 9)
"""torch.compile has the option guard_filter_fn since 2.8, inductor the setting
max_autotune_report_choices_stats since 2.9."""
EXAMPLE_LENGTH = 48
"""Length of source and output in the example that is compiled. The code is fastest near it."""
MIN_LENGTH = 2
"""Shortest source and output of a program: torch.compile specialises dimensions of size 1."""
INDUCTOR_SETTINGS: dict[str, Any] = {
    "freezing": True,  # weights are constants, so that inductor can repack them
    "max_autotune": True,
    "max_autotune_gemm_backends": "CPP,ATEN",
    "cpp_wrapper": True,  # no Python between two operations
    "compile_threads": 1,  # no worker processes that outlive the compilation
    "max_autotune_report_choices_stats": False,
    "autotune_num_choices_displayed": 0,
}


def unsupported_reason() -> str | None:
    """The reason why this version of torch cannot compile a search; None if it can."""
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
    """A compiled step, and the weights it was compiled with."""

    weights: WeightVersions
    advance: CompiledAdvance


_COMPILED_STEPS: (
    "WeakKeyDictionary[StepDecoder, dict[tuple[Greedy | Beam, torch.dtype], CompiledStep]]"
)
_COMPILED_STEPS = WeakKeyDictionary()


@dataclass(frozen=True)
class CompiledSearch:
    """A greedy or beam search that compiles its step for single sources on first use."""

    search: Greedy | Beam

    @torch.inference_mode()
    def __call__(
        self, decoder: StepDecoder, memory: Memory, request: SearchRequest
    ) -> list[list[Hypothesis]]:
        """The same hypotheses as those of `search`."""
        if len(memory.mask) > 1 or not can_run_static(decoder, request):
            return self.search(decoder, memory, request)
        request.check(1)
        advance = self.prepare(decoder, memory)
        program = self._program(decoder, memory, memory.mask.shape[1], request.max_lengths[0])
        program.advance = partial(advance, program)
        # The compiled code always applies prefixes: a second version would cost more to compile.
        return program.run(memory, replace(request, prefixes=request.prefixes or [()]))

    @torch.inference_mode()
    def prepare(self, decoder: StepDecoder, memory: Memory) -> CompiledAdvance:
        """The step for this decoder and memories like this one, compiled if necessary."""
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
        # The dimensions in which two programs of different lengths differ depend on the lengths.
        example = self._started(decoder, memory, EXAMPLE_LENGTH, steps)
        shorter = self._started(decoder, memory, EXAMPLE_LENGTH - 1, steps - 1)
        for tensor, other in zip(tensors_of(example), tensors_of(shorter), strict=True):
            for dimension, sizes in enumerate(zip(tensor.shape, other.shape, strict=True)):
                if sizes[0] != sizes[1]:
                    torch._dynamo.mark_dynamic(tensor, dimension)
        return compile_step(example)

    def _started(
        self, decoder: StepDecoder, memory: Memory, source_length: int, steps: int
    ) -> SearchProgram:
        """A program of these lengths, before its first step."""
        program = self._program(decoder, memory, source_length, steps)
        program.memory.mask.fill_(True)
        program.begin()
        return program


def compile_step(program: SearchProgram) -> CompiledAdvance:
    """Compile the step of a program, for all programs that differ in dynamic dimensions only."""
    original = SearchProgram._advance
    # torch.compile caches by code object. A copy of it separates the steps of different decoders.
    step: CompiledAdvance = FunctionType(
        original.__code__.replace(), original.__globals__, original.__name__
    )
    # `CompiledSearch` chooses the right step, so guards, which check every weight, are not needed.
    options: dict[str, Any] = {"guard_filter_fn": lambda guards: [False] * len(guards)}
    step = torch.compile(step, fullgraph=True, dynamic=False, options=options)
    with (
        torch._dynamo.config.patch(allow_rnn=True),  # the decoders use only the weights of cells
        torch._inductor.config.patch(INDUCTOR_SETTINGS),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        step(program)
    return step


def weight_versions(decoder: StepDecoder) -> WeightVersions:
    """Identifies the current values of a decoder's weights."""
    weights = decoder.parameters() if isinstance(decoder, nn.Module) else ()
    return tuple(
        (weight.data_ptr(), 0 if weight.is_inference() else weight._version) for weight in weights
    )


def tensors_of(value: object) -> Iterator[Tensor]:
    """All tensors of a program except weights, always in the same order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors_of(item)
    elif type(value).__module__.startswith("seqloom.") and not isinstance(value, nn.Module):
        for attribute in vars(value).values():
            yield from tensors_of(attribute)
