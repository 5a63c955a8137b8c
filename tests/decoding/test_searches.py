"""What holds for every search, over decoders that remember all they have put out."""

import itertools
import math
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from toy_decoders import AttentiveDecoder, EchoDecoder, random_memory, take

from seqloom.core.errors import DataError
from seqloom.decoding.beam import Beam
from seqloom.decoding.exhaustive import Exhaustive
from seqloom.decoding.forced import force
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.rules import Rules
from seqloom.decoding.sample import Sample
from seqloom.decoding.search import Request, Search, Stepper
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN

EVERY_DECODER: list[Callable[[int, int], Stepper]] = [EchoDecoder, AttentiveDecoder]
each_decoder = pytest.mark.parametrize("make", EVERY_DECODER)
seeds = st.integers(0, 10**6)
few = settings(max_examples=15, deadline=None)


def every_search(rules: Rules, seed: int = 0) -> list[Search]:
    """Each search, and each of its manners."""
    return [
        Greedy(rules=rules),
        Beam(1, rules=rules),
        Beam(3, rules=rules),
        Beam(4, finished=2, length_exponent=0.0, rules=rules),
        Beam(50, rules=rules),
        Sample(seed=seed, rules=rules),
        Sample(temperature=2.0, top_k=3, top_p=0.8, samples=4, seed=seed, rules=rules),
        Exhaustive(rules=rules),
    ]


def close(left: Hypothesis, right: Hypothesis) -> bool:
    """The same tokens, and the same numbers up to rounding."""
    if left.attention is not None and right.attention is not None:
        torch.testing.assert_close(left.attention, right.attention, rtol=1e-9, atol=1e-9)
    return (
        (left.tokens, left.finished) == (right.tokens, right.finished)
        and left.score == pytest.approx(right.score, abs=1e-9)
        and left.log_probabilities == pytest.approx(right.log_probabilities, abs=1e-9)
    )


def assert_same(
    left: Sequence[Sequence[Hypothesis]], right: Sequence[Sequence[Hypothesis]]
) -> None:
    for ours, theirs in zip(left, right, strict=True):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert close(one, other), (one, other)


@each_decoder
@few
@given(seed=seeds, words=st.integers(1, 5), length=st.integers(1, 7))
def test_a_beam_of_one_is_greedy(
    make: Callable[[int, int], Stepper], seed: int, words: int, length: int
) -> None:
    decoder, memory = make(seed, words), random_memory(seed, [3, 1, 4, 2])
    request = Request([length, 2, length, 1], prefixes=[[], [4], [], []], keep_attention=all_of_it)
    for rules in [Rules(), Rules(min_length=2, no_repeat_ngram=1)]:
        greedy = Greedy(rules=rules)(decoder, memory, request)
        assert_same(Beam(1, rules=rules)(decoder, memory, request), greedy)


@each_decoder
@few
@given(
    seed=seeds,
    words=st.integers(1, 3),
    length=st.integers(1, 4),
    exponent=st.sampled_from([0.0, 0.6, 1.0]),
)
def test_a_beam_as_wide_as_the_tree_finds_the_exhaustive_n_best(
    make: Callable[[int, int], Stepper], seed: int, words: int, length: int, exponent: float
) -> None:
    decoder, memory = make(seed, words), random_memory(seed, [3, 1])
    request = Request([length, max(1, length - 1)], n_best=9)
    exhaustive = Exhaustive(length_exponent=exponent)(decoder, memory, request)
    wide = Beam((words + 1) ** (length + 1), length_exponent=exponent)
    assert_same(wide(decoder, memory, request), exhaustive)


@each_decoder
@few
@given(seed=seeds, words=st.integers(1, 3), length=st.integers(1, 4))
def test_exhaustive_search_finds_what_trying_everything_finds(
    make: Callable[[int, int], Stepper], seed: int, words: int, length: int
) -> None:
    decoder, memory = make(seed, words), random_memory(seed, [3])
    outputs = [
        output
        for size in range(length)
        for output in itertools.product(range(4, 4 + words), repeat=size)
    ]
    scored = [force(decoder, memory, [output])[0] for output in outputs]
    best = sorted(scored, key=lambda hypothesis: -hypothesis.score)[:5]
    found = Exhaustive()(decoder, memory, Request([length], n_best=5))[0]
    assert_same([found[: len(best)]], [best])
    assert all(not hypothesis.finished for hypothesis in found[len(best) :])


@each_decoder
@few
@given(seed=seeds, width=st.integers(1, 9))
def test_no_search_beats_the_exhaustive_optimum(
    make: Callable[[int, int], Stepper], seed: int, width: int
) -> None:
    decoder, memory = make(seed, 3), random_memory(seed, [3, 2])
    request = Request([4, 3])
    optimum = Exhaustive()(decoder, memory, request)
    for found in [Beam(width)(decoder, memory, request), Greedy()(decoder, memory, request)]:
        for [best], [one] in zip(optimum, found, strict=True):
            assert not one.finished or one.score <= best.score + 1e-12


@each_decoder
@few
@given(seed=seeds, words=st.integers(1, 4))
def test_the_score_of_a_hypothesis_is_the_models_own(
    make: Callable[[int, int], Stepper], seed: int, words: int
) -> None:
    decoder, memory = make(seed, words), random_memory(seed, [3, 1, 2])
    request = Request([5, 3, 4], [[4], [], [UNKNOWN, 4]], n_best=3, keep_attention=all_of_it)
    for search in every_search(Rules(min_length=1), seed):
        exponent = search.length_exponent if isinstance(search, Beam) else 1.0
        for source, found in enumerate(search(decoder, memory, request)):
            assert found
            for one in found:
                [own] = force(decoder, take(memory, [source]), [one.tokens], all_of_it, exponent)
                length = len(one.log_probabilities)
                assert length == len(one.tokens) + one.finished
                assert one.log_probabilities == pytest.approx(own.log_probabilities[:length])
                assert one.score == pytest.approx(
                    sum(own.log_probabilities[:length]) / length**exponent
                )
                if own.attention is not None:
                    assert one.attention is not None
                    torch.testing.assert_close(one.attention, own.attention[:length])


@each_decoder
@few
@given(
    seed=seeds,
    order=st.permutations(range(5)).flatmap(
        lambda order: st.integers(1, 5).map(lambda size: order[:size])
    ),
    padding=st.integers(0, 3),
)
def test_an_output_does_not_depend_on_its_batch(
    make: Callable[[int, int], Stepper], seed: int, order: list[int], padding: int
) -> None:
    decoder, memory = make(seed, 3), random_memory(seed, [3, 1, 4, 2, 5])
    limits, prefixes = [5, 3, 4, 2, 5], [[], [4], [5, 6], [], [UNKNOWN]]
    whole = Request(limits, prefixes, n_best=4, keep_attention=all_of_it)
    part = Request(
        [limits[source] for source in order],
        [prefixes[source] for source in order],
        n_best=4,
        keep_attention=all_of_it,
        indices=order,
    )
    for search in every_search(Rules(), seed):
        together = search(decoder, memory, whole)
        apart = search(decoder, take(memory, order, padding), part)
        assert_same(apart, [together[source] for source in order])


def all_of_it(attention: Tensor) -> Tensor:
    return attention


@each_decoder
@few
@given(
    seed=seeds,
    rules=st.builds(Rules, st.integers(0, 4), st.integers(0, 3), st.booleans()),
    limits=st.lists(st.integers(3, 6), min_size=3, max_size=3),
)
def test_every_search_obeys_every_rule(
    make: Callable[[int, int], Stepper], seed: int, rules: Rules, limits: list[int]
) -> None:
    words, prefixes = 3, [[], [5], [6, 6]]
    decoder, memory = make(seed, words), random_memory(seed, [3, 1, 2])
    request = Request(limits, prefixes, n_best=4)
    size = rules.no_repeat_ngram
    for search in every_search(rules, seed):
        for prefix, limit, found in zip(
            prefixes, limits, search(decoder, memory, request), strict=True
        ):
            for one in found:
                assert one.tokens[: len(prefix)] == tuple(prefix)
                assert not {PAD, START, END} & set(one.tokens)
                assert rules.allow_unknown or UNKNOWN not in one.tokens
                assert len(one.tokens) + one.finished <= limit
                assert one.finished or len(one.tokens) == limit or size or len(found) > 1
                ngrams = list(zip(*(one.tokens[i:] for i in range(size)), strict=False))
                # What a prefix repeats itself is forced; nothing else occurs again.
                excess = len(ngrams) - len(set(ngrams))
                assert excess == (1 if size == 1 and prefix == [6, 6] else 0)
                stuck = size == 1 and len(one.tokens) >= words
                assert not one.finished or stuck or len(one.tokens) >= rules.min_length


def test_a_hypothesis_that_may_say_nothing_else_ends() -> None:
    """Two words, each at most once, and no end before the fifth: after two it must end."""
    rules = Rules(min_length=5, no_repeat_ngram=1)
    decoder, memory = EchoDecoder(0, words=2), random_memory(0, [2])
    for search in every_search(rules):
        for one in search(decoder, memory, Request([8]))[0]:
            assert one.finished
            assert sorted(one.tokens) == [4, 5]


@few
@given(seed=seeds)
def test_what_runs_out_of_length_is_flagged_as_unfinished(seed: int) -> None:
    decoder, memory = EchoDecoder(seed, words=3), random_memory(seed, [2, 3])
    for search in every_search(Rules(min_length=9)):
        for found in search(decoder, memory, Request([3, 3], n_best=4)):
            assert found
            for one in found:
                assert not one.finished
                assert len(one.tokens) == len(one.log_probabilities) == 3


@few
@given(seed=seeds, n_best=st.integers(1, 12))
def test_an_n_best_list_is_sorted_and_never_says_the_same_twice(seed: int, n_best: int) -> None:
    decoder, memory = EchoDecoder(seed, words=3), random_memory(seed, [2, 3])
    searches: list[Search] = [Beam(4), Beam(4, finished=2), Exhaustive()]
    for search in searches:
        for found in search(decoder, memory, Request([4, 5], n_best=n_best)):
            keys = [(one.finished, one.score) for one in found]
            assert keys == sorted(keys, reverse=True)
            assert len({(one.tokens, one.finished) for one in found}) == len(found) <= n_best


def test_attention_is_kept_as_asked_and_without_the_padding() -> None:
    decoder, memory = AttentiveDecoder(3, words=4), random_memory(3, [3, 1, 2])
    limits = [6, 4, 5]
    for search in every_search(Rules(min_length=2)):
        if isinstance(search, Exhaustive):
            limits = [3, 3, 3]
        plain = search(decoder, memory, Request(limits))
        whole = search(decoder, memory, Request(limits, keep_attention=all_of_it))
        mean = search(decoder, memory, Request(limits, keep_attention=lambda a: a.mean((1, 2))))
        for source, length in enumerate([3, 1, 2]):
            steps = len(whole[source][0].log_probabilities)
            assert plain[source][0].attention is None
            kept, reduced = whole[source][0].attention, mean[source][0].attention
            assert kept is not None
            assert reduced is not None
            assert kept.shape == (steps, 1, 2, length)
            torch.testing.assert_close(kept.sum(-1), torch.ones_like(kept.sum(-1)))
            torch.testing.assert_close(reduced, kept.mean((1, 2)))


def test_a_model_without_attention_keeps_none() -> None:
    decoder, memory = EchoDecoder(3, words=4), random_memory(3, [3])
    [[one]] = Beam(2)(decoder, memory, Request([3], keep_attention=all_of_it))
    assert one.attention is None


def test_a_prefix_that_leaves_no_room_is_refused_and_all_are_named() -> None:
    decoder, memory = EchoDecoder(0, words=3), random_memory(0, [2, 2, 2])
    request = Request([2, 5, 1], prefixes=[[4, 5], [4], [6]], indices=[10, 11, 12])
    for search in every_search(Rules()):
        with pytest.raises(DataError) as caught:
            search(decoder, memory, request)
        assert "no room for its prefix" in str(caught.value)
        assert "source 10: must begin with 2 tokens and may have 2" in str(caught.value)
        assert "source 12" in str(caught.value)
        assert "source 11" not in str(caught.value)


def test_forcing_a_whole_batch_is_forcing_each_alone() -> None:
    decoder, memory = AttentiveDecoder(5, words=4), random_memory(5, [3, 1, 4, 2])
    targets = [[4, 5, 6, 7], [], [4], [7, 7]]
    together = force(decoder, memory, targets, all_of_it)
    for source, (target, one) in enumerate(zip(targets, together, strict=True)):
        assert one.tokens == tuple(target)
        assert one.finished
        assert one.log_probability == pytest.approx(math.fsum(one.log_probabilities))
        [alone] = force(decoder, take(memory, [source]), [target], all_of_it)
        assert close(one, alone)
