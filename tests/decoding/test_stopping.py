"""Beam search with the settings of transformers: stopping, extra_candidate, rank_unfinished."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.config.schema.decoding import BeamConfig
from seqloom.config.schema.names import StoppingRule
from seqloom.decoding.beam import Beam
from seqloom.decoding.build import build_search
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import SearchRequest
from seqloom.text.vocabulary import UNKNOWN
from support.toy_decoders import EchoDecoder, TableDecoder, random_memory

A, B = UNKNOWN + 1, UNKNOWN + 2
REQUEST = SearchRequest([9, 4, 7])
TRANSFORMERS = Beam(3, length_counts_end=True, extra_candidate=True, rank_unfinished=True)
beams = st.builds(
    replace,
    st.just(TRANSFORMERS),
    width=st.integers(2, 5),
    length_penalty=st.sampled_from([0.0, 0.6, 1.0, 1.4]),
    length_counts_end=st.booleans(),
    extra_candidate=st.booleans(),
)
few_examples = settings(max_examples=25, deadline=None)


def distribution(end: float = 0.0, a: float = 0.0, b: float = 0.0, c: float = 0.0) -> list[float]:
    """Probabilities of PAD, START, END, UNKNOWN, a, b, c."""
    return [0.0, 0.0, end, 0.0, a, b, c]


def best_outputs(beam: Beam, seed: int) -> list[Hypothesis]:
    decoder, memory = EchoDecoder(seed, words=5), random_memory(seed, [3, 1, 2])
    return [best for [best] in beam(decoder, memory, REQUEST)]


@few_examples
@given(beam=beams, seed=st.integers(0, 10**6))
def test_the_rule_bound_never_misses_a_better_output(beam: Beam, seed: int) -> None:
    until_the_limit = replace(beam, finished=10**3)
    expected = best_outputs(until_the_limit, seed)
    found = best_outputs(replace(beam, stopping="bound"), seed)
    assert [best.tokens for best in found] == [best.tokens for best in expected]


@few_examples
@given(beam=beams, seed=st.integers(0, 10**6))
def test_a_rule_that_stops_later_never_finds_a_worse_output(beam: Beam, seed: int) -> None:
    rules: list[StoppingRule] = ["count", "estimate", "bound"]
    by_rule = [best_outputs(replace(beam, stopping=rule), seed) for rule in rules]
    for count, estimate, bound in zip(*by_rule, strict=True):
        assert count.score <= estimate.score + 1e-6
        assert estimate.score <= bound.score + 1e-6


def test_the_rule_estimate_continues_while_an_active_hypothesis_has_a_better_score() -> None:
    """A bad hypothesis ends first. The best output is longer."""
    table = {
        (): distribution(end=0.02, a=0.9, b=0.08),
        (A,): distribution(end=0.1, a=0.9),
    }
    decoder = TableDecoder(table, default=distribution(end=0.99, a=0.01))
    memory, request = random_memory(0, [1]), SearchRequest([6])
    beam = Beam(2, finished=1, length_counts_end=True)
    [[at_once]] = beam(decoder, memory, request)
    [[later]] = replace(beam, stopping="estimate")(decoder, memory, request)
    assert at_once.tokens == (A,)
    assert later.tokens == (A, A)
    assert later.score == pytest.approx(math.log(0.9 * 0.9 * 0.99) / 3)


def test_the_rule_bound_continues_while_a_longer_output_can_be_better() -> None:
    """At length 1, the finished hypothesis has the best score. A longer output has a better one."""
    table = {
        (): distribution(end=0.5, a=0.4, b=0.1),
        (A,): distribution(a=0.98, b=0.02),
    }
    decoder = TableDecoder(table, default=distribution(end=0.98, a=0.02))
    memory, request = random_memory(0, [1]), SearchRequest([6])
    beam = Beam(2, finished=1, length_counts_end=True)
    [[estimate]] = replace(beam, stopping="estimate")(decoder, memory, request)
    [[bound]] = replace(beam, stopping="bound")(decoder, memory, request)
    assert estimate.tokens == ()
    assert bound.tokens == (A, A)


def test_an_extra_candidate_keeps_the_beam_full() -> None:
    """END is one of the two best first tokens."""
    decoder = TableDecoder({}, default=distribution(end=0.5, a=0.3, b=0.2))
    memory, request = random_memory(0, [1]), SearchRequest([1], n_best=5)
    [without] = Beam(2)(decoder, memory, request)
    [with_extra] = Beam(2, extra_candidate=True)(decoder, memory, request)
    assert {best.tokens for best in without} == {(), (A,)}
    assert {best.tokens for best in with_extra} == {(), (A,), (B,)}


def test_unfinished_hypotheses_are_ranked_by_score_on_request() -> None:
    """The unfinished hypothesis is much more probable than the finished one."""
    decoder = TableDecoder({}, default=distribution(end=0.1, a=0.9))
    memory, request = random_memory(0, [1]), SearchRequest([4])
    [[finished]] = Beam(2, finished=9)(decoder, memory, request)
    [[unfinished]] = Beam(2, finished=9, rank_unfinished=True)(decoder, memory, request)
    assert finished.finished
    assert unfinished.tokens == (A, A, A, A)


def test_unfinished_hypotheses_below_the_length_limit_come_last() -> None:
    decoder = TableDecoder({}, default=distribution(end=0.1, a=0.9))
    request = SearchRequest([9], n_best=9)
    [[first, *others]] = Beam(2, finished=1, rank_unfinished=True)(
        decoder, random_memory(0, [1]), request
    )
    assert first.finished
    assert any(not other.finished and other.score > first.score for other in others)


@few_examples
@given(seed=st.integers(0, 10**6), stopping=st.sampled_from(["count", "estimate", "bound"]))
def test_a_beam_of_width_one_is_greedy_with_every_rule(seed: int, stopping: StoppingRule) -> None:
    decoder, memory = EchoDecoder(seed, words=5), random_memory(seed, [3, 1, 2])
    beam = replace(TRANSFORMERS, width=1, stopping=stopping)
    greedy = Greedy(length_counts_end=True)
    assert beam(decoder, memory, REQUEST) == greedy(decoder, memory, REQUEST)


def test_settings_of_the_recipe_reach_the_search() -> None:
    config = BeamConfig(width=3, stopping="bound", extra_candidate=True, rank_unfinished=True)
    assert build_search(config) == Beam(
        3, stopping="bound", extra_candidate=True, rank_unfinished=True
    )
