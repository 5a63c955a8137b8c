"""Static and captured searches, the choice between search versions, and top-k."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import count
from unittest.mock import Mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.decoding.beam import Beam
from seqloom.decoding.exhaustive import Exhaustive
from seqloom.decoding.fast import captured
from seqloom.decoding.fast.captured import (
    CapturedSearch,
    ProgramShape,
    round_down,
    round_up,
    round_up_length,
)
from seqloom.decoding.fast.compiled import CompiledSearch
from seqloom.decoding.fast.select import select_fastest
from seqloom.decoding.fast.top_k import top_k
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.rules import Rules
from seqloom.decoding.sampling import Sampling
from seqloom.decoding.search import ExcludedTokens, SearchRequest, StepDecoder
from seqloom.models.interface import Memory
from seqloom.text.vocabulary import END, UNKNOWN
from support.toy_decoders import AttentiveDecoder, EchoDecoder, random_memory, select_sources

BuildDecoder = Callable[[int, int], StepDecoder]
DECODERS: list[BuildDecoder] = [EchoDecoder, AttentiveDecoder]
each_decoder = pytest.mark.parametrize("build_decoder", DECODERS)


def assert_same(
    results: Sequence[Sequence[Hypothesis]], expected: Sequence[Sequence[Hypothesis]]
) -> None:
    for hypotheses, expected_hypotheses in zip(results, expected, strict=True):
        for first, second in zip(hypotheses, expected_hypotheses, strict=True):
            assert first.tokens == second.tokens
            assert first.finished == second.finished
            assert first.log_probabilities == pytest.approx(second.log_probabilities, abs=1e-9)
            assert first.score == pytest.approx(second.score, abs=1e-9)


@each_decoder
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    words=st.integers(1, 6),
    rules=st.builds(
        Rules,
        min_length=st.integers(0, 5),
        no_repeat_ngram=st.integers(0, 3),
        allow_unknown=st.booleans(),
    ),
    search=st.sampled_from(
        [
            Greedy(),
            Greedy(length_penalty=0.5),
            Beam(1),
            Beam(2, finished=1),
            Beam(3, length_penalty=0.0),
            Beam(5),
            Beam(12, finished=4, length_penalty=0.6),
            Greedy(length_counts_end=True),
            Beam(4, length_penalty=0.8, length_counts_end=True),
            Beam(3, stopping="estimate", extra_candidate=True, rank_unfinished=True),
            Beam(4, finished=2, length_penalty=0.6, stopping="estimate", length_counts_end=True),
            Beam(3, stopping="bound", rank_unfinished=True),
            Beam(1, stopping="estimate", extra_candidate=True),
        ]
    ),
    has_prefixes=st.booleans(),
)
def test_captured_search_equals_plain_search(
    build_decoder: BuildDecoder,
    seed: int,
    words: int,
    rules: Rules,
    search: Greedy | Beam,
    has_prefixes: bool,
) -> None:
    decoder, memory = build_decoder(seed, words), random_memory(seed, [3, 1, 4, 2, 2])
    prefixes = [[], [4], [UNKNOWN, 4, 4], [], [4, 4]] if has_prefixes else None
    request = SearchRequest([7, 2, 20, 3 if has_prefixes else 1, 11], prefixes, n_best=3)
    search = type(search)(**{**vars(search), "rules": rules})
    assert_same(CapturedSearch(search)(decoder, memory, request), search(decoder, memory, request))


@each_decoder
def test_one_program_serves_batches_of_different_sizes(build_decoder: BuildDecoder) -> None:
    """Neither the values of an earlier batch nor the padding change the result."""
    decoder, memory = build_decoder(3, 5), random_memory(3, [3, 1, 4, 2, 2, 4, 3])
    for search in (Greedy(), Beam(3)):
        static = CapturedSearch(search)
        for sources in ([0, 1, 2, 3, 4, 5, 6], [6, 2, 4, 0, 1], [5, 5, 1, 3, 0, 2]):
            batch = select_sources(memory, sources)
            request = SearchRequest([5 + source for source in sources], n_best=2)
            assert_same(static(decoder, batch, request), search(decoder, batch, request))


@each_decoder
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    words=st.integers(1, 6),
    search=st.sampled_from(
        [
            Greedy(),
            Greedy(rules=Rules(min_length=3, no_repeat_ngram=2)),
            Beam(2, finished=1),
            Beam(3, rules=Rules(min_length=2, no_repeat_ngram=2)),
            Beam(4, finished=2, length_penalty=0.6, stopping="estimate", length_counts_end=True),
            Beam(3, stopping="bound", rank_unfinished=True),
        ]
    ),
    has_prefixes=st.booleans(),
    lengths=st.lists(st.integers(1, 20), min_size=2, max_size=9),
)
def test_sources_that_continue_in_smaller_batches_have_the_results_of_the_plain_search(
    build_decoder: BuildDecoder,
    seed: int,
    words: int,
    search: Greedy | Beam,
    has_prefixes: bool,
    lengths: list[int],
) -> None:
    decoder = build_decoder(seed, words)
    memory = random_memory(seed, [1 + index % 4 for index in range(len(lengths))])
    prefixes = [[4, UNKNOWN, 4][: index % 4] for index in range(len(lengths))]
    lengths = [
        max(length, len(prefix) + 1) for length, prefix in zip(lengths, prefixes, strict=True)
    ]
    request = SearchRequest(lengths, prefixes if has_prefixes else None, n_best=3)
    with any_smaller_batch():
        hypotheses = CapturedSearch(search)(decoder, memory, request)
    assert_same(hypotheses, search(decoder, memory, request))


@contextmanager
def any_smaller_batch() -> Iterator[None]:
    """Let searches continue in a smaller batch whenever a source is done."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(captured, "SMALLER_BATCHES", range(1, 200))
        patch.setattr(captured, "SMALLER_SHARE", 0.99)
        yield


@pytest.mark.parametrize("width", [1, 3])
def test_finished_sources_are_not_computed_until_the_longest_output_is_complete(
    width: int,
) -> None:
    rules = Rules(min_length=9)  # every output is as long as its limit
    search = Greedy(rules=rules) if width == 1 else Beam(width, rules=rules)
    decoder, memory = EchoDecoder(3, 5), random_memory(3, [2] * 8)
    request = SearchRequest([1, 1, 1, 1, 2, 2, 9, 9])
    CapturedSearch(search)(decoder, memory, request)
    assert set(decoder.row_counts) == {8 * width}
    decoder.row_counts.clear()
    with any_smaller_batch():
        CapturedSearch(search)(decoder, memory, request)
    assert decoder.row_counts == [width * count for count in (8, 4, *[2] * 7)]


@pytest.mark.parametrize("smaller", [False, True])
@pytest.mark.parametrize("width", [1, 3])
def test_finished_sources_are_reported_at_once_with_the_returned_hypotheses(
    width: int, smaller: bool
) -> None:
    rules = Rules(min_length=9)  # every output is as long as its limit
    search = Greedy(rules=rules) if width == 1 else Beam(width, rules=rules)
    decoder, memory = EchoDecoder(3, 5), random_memory(3, [2] * 5)
    steps: dict[int, int] = {}
    reported: dict[int, list[Hypothesis]] = {}

    def on_finished(source: int, hypotheses: list[Hypothesis]) -> None:
        assert source not in reported
        steps[source], reported[source] = len(decoder.row_counts), hypotheses

    request = SearchRequest([3, 1, 9, 2, 3], n_best=2, on_finished=on_finished)
    with any_smaller_batch() if smaller else nullcontext():
        results = CapturedSearch(search)(decoder, memory, request)
    assert steps == {0: 3, 1: 1, 2: 9, 3: 2, 4: 3}
    assert all(results[source] is hypotheses for source, hypotheses in reported.items())
    assert_same(results, search(decoder, memory, replace(request, on_finished=None)))


@pytest.mark.parametrize(
    ("width", "sources", "unfinished", "expected"),
    [
        (1, 1024, 3, 256),  # at most a quarter of the sources
        (1, 1024, 257, None),
        (1, 4096, 256, 256),
        (1, 4096, 257, 1024),
        (1, 4096, 1025, None),
        (1, 512, 1, None),
        (2, 512, 128, 128),
        (2, 512, 129, None),
        (2, 2048, 129, 512),
        (5, 1024, 51, 51),
        (5, 1024, 52, 204),
        (5, 1024, 205, None),
        (300, 64, 1, 3),
    ],
)
def test_the_smallest_batch_that_has_room_is_chosen(
    width: int, sources: int, unfinished: int, expected: int | None
) -> None:
    search = Greedy() if width == 1 else Beam(width)
    decoder, memory = EchoDecoder(3, 5), random_memory(3, [5] * sources)
    program = CapturedSearch(search).program(decoder, memory, SearchRequest([40] * sources))
    smaller = program.smaller(unfinished)
    if expected is None:
        assert smaller is None
    else:
        assert smaller is not None
        assert smaller.shape.sources == expected
        # The same one for sources and outputs of other lengths.
        assert (smaller.shape.source_length, smaller.shape.max_steps) == (32, 64)


@pytest.mark.parametrize("width", [2, 3, 5, 10])
def test_a_smaller_batch_can_continue_in_the_smallest_one(width: int) -> None:
    decoder, memory = EchoDecoder(3, 5), random_memory(3, [5] * 2048)
    program = CapturedSearch(Beam(width)).program(decoder, memory, SearchRequest([40] * 2048))
    smaller = program.smaller(1024 // width)
    assert smaller is not None
    smallest = smaller.smaller(256 // width)
    assert smallest is not None
    assert smallest.shape.sources == 256 // width


def test_without_memory_for_a_smaller_batch_the_search_continues_in_its_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoder, memory = EchoDecoder(3, 5), random_memory(3, [2] * 6)
    request, build = SearchRequest([1, 2, 3, 4, 5, 6]), captured.SearchProgram

    attempts = []

    def build_only_large(decoder: StepDecoder, shape: ProgramShape, memory: Memory) -> object:
        if shape.sources < 6:
            attempts.append(shape)
            raise torch.OutOfMemoryError
        return build(decoder, shape, memory)

    monkeypatch.setattr(captured, "SearchProgram", build_only_large)
    with any_smaller_batch():
        hypotheses = CapturedSearch(Beam(3))(decoder, memory, request)
    assert_same(hypotheses, Beam(3)(decoder, memory, request))
    assert len(attempts) == 1, "each attempt takes time"


class FakeStreams:
    """Replaces the streams and captures of torch.cuda.

    active, most_active: number of captures at the moment, and its maximum
    modes, streams, devices: the arguments of captures, and the GPUs that were the current one
    waits: the pairs of streams of which the first one waited for the second one
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.active, self.most_active = 0, 0
        self.modes: set[str] = set()
        self.streams: set[object] = set()
        self.devices: set[object] = set()
        self.waits: list[tuple[str, str]] = []
        current, warm_up = self.stream("current"), self.stream("warm-up")
        capture = self.stream("capture")
        monkeypatch.setattr(captured, "_streams", lambda device: (warm_up, capture))
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device: current)
        monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
        monkeypatch.setattr(torch.cuda, "CUDAGraph", Mock)
        monkeypatch.setattr(torch.cuda, "device", self.device)
        monkeypatch.setattr(torch.cuda, "graph", self.graph)

    def stream(self, name: str) -> Mock:
        stream = Mock()
        stream.name = name
        stream.wait_stream = lambda other: self.waits.append((name, other.name))
        return stream

    @contextmanager
    def device(self, device: torch.device) -> Iterator[None]:
        self.devices.add(device)
        yield

    @contextmanager
    def graph(
        self,
        graph: object,
        pool: object = None,
        stream: Mock | None = None,
        capture_error_mode: str = "global",
    ) -> Iterator[None]:
        self.modes.add(capture_error_mode)
        self.streams.add(None if stream is None else stream.name)
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        time.sleep(0.02)
        yield
        self.active -= 1


def test_threads_capture_one_after_another_and_may_allocate_memory_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CUDA has no two captures at a time. The runs of a server each have a thread of their own."""
    fake, device = FakeStreams(monkeypatch), torch.device("cuda", 1)
    with ThreadPoolExecutor(3) as pool:
        for _ in pool.map(lambda _: captured.capture_graphs(Mock(), Mock(), device), range(3)):
            pass
    assert fake.modes == {"thread_local"}
    assert fake.most_active == 1
    assert (fake.devices, fake.streams) == ({device}, {"capture"})


def test_the_memory_of_a_failed_capture_is_used_again_only_after_its_last_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = FakeStreams(monkeypatch)
    advance = Mock(side_effect=torch.OutOfMemoryError)
    with pytest.raises(torch.OutOfMemoryError):
        captured.capture_graphs(Mock(), advance, torch.device("cuda"))
    assert fake.waits == [("warm-up", "current"), ("current", "warm-up")]


@pytest.mark.parametrize(
    ("limit", "bytes_each", "kept"), [(3, 0, [2, 3, 4]), (9, 30, [3, 4]), (9, 200, [4])]
)
def test_programs_are_dropped_if_there_are_many_or_they_need_much_memory(
    monkeypatch: pytest.MonkeyPatch, limit: int, bytes_each: int, kept: list[int]
) -> None:
    """The least recently used ones first. The newest one is kept in any case."""
    monkeypatch.setattr(captured, "MAX_PROGRAMS", limit)
    monkeypatch.setattr(captured, "total_bytes", lambda device: 170)  # 40 % are 68
    allocated = count(step=bytes_each)
    monkeypatch.setattr(captured, "allocated_bytes", lambda device: next(allocated))
    decoder = EchoDecoder(3, 5)
    for size in (1, 2, 3, 4):
        CapturedSearch(Greedy())(decoder, random_memory(3, [2] * size), SearchRequest([2] * size))
    programs = captured._PROGRAMS[decoder]
    assert [shape.sources for shape in programs] == kept


def test_captured_search_falls_back_to_the_plain_search_to_return_attention() -> None:
    decoder, memory = AttentiveDecoder(1, 4).eval(), random_memory(1, [3, 2])
    request = SearchRequest([4, 4], keep_attention=lambda attention: attention)
    [hypothesis], _ = CapturedSearch(Beam(2))(decoder, memory, request)
    assert hypothesis.attention is not None


@pytest.mark.parametrize("search", [Greedy(), Beam(3)])
def test_excluded_tokens_stay_excluded(search: Greedy | Beam) -> None:
    decoder, memory = AttentiveDecoder(1, 6).eval(), random_memory(1, [3, 2])
    free = search(decoder, memory, SearchRequest([6, 6]))
    first = [frozenset(best.tokens[:1]) or frozenset([END]) for best, *_ in free]
    excluded = [ExcludedTokens(after_prefix=tokens) for tokens in first]
    request = SearchRequest([6, 6], excluded=excluded)
    outputs = CapturedSearch(search)(decoder, memory, request)
    assert_same(outputs, search(decoder, memory, request))
    assert [best.tokens for best, *_ in outputs] != [best.tokens for best, *_ in free]


def test_greedy_and_beam_search_are_captured_on_a_gpu() -> None:
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    for search in (Greedy(), Beam(3)):
        assert select_fastest(search, cpu) is search
        assert select_fastest(search, gpu) == CapturedSearch(search)
    for other in (Sampling(), Exhaustive()):
        assert select_fastest(other, gpu) is other


def test_greedy_and_beam_search_are_compiled_on_request() -> None:
    for device in (torch.device("cpu"), torch.device("cuda")):
        for search in (Greedy(), Beam(3)):
            assert select_fastest(search, device, compiled=True) == CompiledSearch(search)
        for other in (Sampling(), Exhaustive()):
            assert select_fastest(other, device, compiled=True) is other


@given(st.integers(1, 10**5))
def test_rounded_shapes_are_few_and_not_much_too_large(size: int) -> None:
    assert size <= round_up(size) <= max(size * 3 / 2, size + 1)
    assert size <= round_up_length(size) < size + 32
    assert round_up(round_up(size)) == round_up(size)
    assert round_down(size) <= size < 1.5 * round_down(size) + 0.5
    assert round_up(round_down(size)) == round_down(size)
    assert len({round_up(n) for n in range(1, 4097)}) < 25


@settings(deadline=None)
@given(
    st.integers(1, 4), st.integers(1, 3000), st.integers(1, 9), st.integers(0, 10**6), st.booleans()
)
def test_top_k_equals_sorting(
    rows: int, vocabulary: int, count: int, seed: int, has_forbidden: bool
) -> None:
    generator = torch.Generator().manual_seed(seed)
    ranks = torch.stack([torch.randperm(vocabulary, generator=generator) for _ in range(rows)])
    values = ranks.double()
    if has_forbidden:
        values = values.masked_fill(ranks % 3 == 0, float("-inf"))
    count = min(count, vocabulary)
    best, columns = top_k(values, count)
    assert torch.equal(best, values.sort(dim=1, descending=True).values[:, :count])
    assert torch.equal(values.gather(1, columns), best)
    assert all(len(set(row)) == count for row in columns.tolist())
