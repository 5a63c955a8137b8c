"""A search in fixed places finds what the plain search finds."""

from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_decoders import AttentiveDecoder, EchoDecoder, random_memory, take

from seqloom.decoding.beam import Beam
from seqloom.decoding.captured import Captured, fastest, round_up, round_up_length
from seqloom.decoding.exhaustive import Exhaustive
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.rules import Rules
from seqloom.decoding.sample import Sample
from seqloom.decoding.search import Request, Stepper
from seqloom.decoding.top import top
from seqloom.text.vocabulary import UNKNOWN

EVERY_DECODER: list[Callable[[int, int], Stepper]] = [EchoDecoder, AttentiveDecoder]
each_decoder = pytest.mark.parametrize("make", EVERY_DECODER)
few = settings(max_examples=25, deadline=None)


def assert_same(
    left: Sequence[Sequence[Hypothesis]], right: Sequence[Sequence[Hypothesis]]
) -> None:
    for ours, theirs in zip(left, right, strict=True):
        assert [one.tokens for one in ours] == [one.tokens for one in theirs]
        assert [one.finished for one in ours] == [one.finished for one in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert one.log_probabilities == pytest.approx(other.log_probabilities, abs=1e-9)
            assert one.score == pytest.approx(other.score, abs=1e-9)


@each_decoder
@few
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
            Greedy(length_exponent=0.5),
            Beam(1),
            Beam(2, finished=1),
            Beam(3, length_exponent=0.0),
            Beam(5),
            Beam(12, finished=4, length_exponent=0.6),
        ]
    ),
    forced=st.booleans(),
)
def test_what_is_recorded_finds_what_the_plain_search_finds(
    make: Callable[[int, int], Stepper],
    seed: int,
    words: int,
    rules: Rules,
    search: Greedy | Beam,
    forced: bool,
) -> None:
    decoder, memory = make(seed, words), random_memory(seed, [3, 1, 4, 2, 2])
    prefixes = [[], [4], [UNKNOWN, 4, 4], [], [4, 4]] if forced else None
    request = Request([7, 2, 20, 1 if not forced else 3, 11], prefixes, n_best=3)
    search = type(search)(**{**vars(search), "rules": rules})
    assert_same(Captured(search)(decoder, memory, request), search(decoder, memory, request))


@each_decoder
def test_one_program_serves_batches_of_unequal_size(make: Callable[[int, int], Stepper]) -> None:
    """What an earlier batch left behind, and what fills the room that is left, changes nothing."""
    decoder, memory = make(3, 5), random_memory(3, [3, 1, 4, 2, 2, 4, 3])
    for search in (Greedy(), Beam(3)):
        captured = Captured(search)
        for chosen in ([0, 1, 2, 3, 4, 5, 6], [6, 2, 4, 0, 1], [5, 5, 1, 3, 0, 2]):
            part, request = take(memory, chosen), Request([5 + i for i in chosen], n_best=2)
            assert_same(captured(decoder, part, request), search(decoder, part, request))


def test_who_asks_for_attention_gets_it_from_the_plain_search() -> None:
    decoder, memory = AttentiveDecoder(1, 4).eval(), random_memory(1, [3, 2])
    [one], _ = Captured(Beam(2))(decoder, memory, Request([4, 4], keep_attention=lambda a: a))
    assert one.attention is not None


def test_only_greedy_and_beam_search_are_recorded_and_only_on_a_gpu() -> None:
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    for search in (Greedy(), Beam(3)):
        assert fastest(search, cpu) is search
        assert fastest(search, gpu) == Captured(search)
    for other in (Sample(), Exhaustive()):
        assert fastest(other, gpu) is other


@given(st.integers(1, 10**5))
def test_shapes_are_few_and_little_too_large(size: int) -> None:
    assert size <= round_up(size) <= max(size * 3 / 2, size + 1)
    assert size <= round_up_length(size) < size + 32
    assert round_up(round_up(size)) == round_up(size)
    assert len({round_up(n) for n in range(1, 4097)}) < 25


@settings(deadline=None)
@given(
    st.integers(1, 4), st.integers(1, 3000), st.integers(1, 9), st.integers(0, 10**6), st.booleans()
)
def test_the_top_is_what_sorting_everything_finds(
    rows: int, vocabulary: int, count: int, seed: int, gaps: bool
) -> None:
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.stack([torch.randperm(vocabulary, generator=generator) for _ in range(rows)])
    values = numbers.double()
    if gaps:
        values = values.masked_fill(numbers % 3 == 0, float("-inf"))
    count = min(count, vocabulary)
    best, places = top(values, count)
    assert torch.equal(best, values.sort(dim=1, descending=True).values[:, :count])
    assert torch.equal(values.gather(1, places), best)
    assert all(len(set(row)) == count for row in places.tolist())
