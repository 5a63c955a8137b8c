"""Beam search as the lecture defines it."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_decoders import EchoDecoder, TableDecoder, random_memory

from seqloom.decoding.beam import Beam
from seqloom.decoding.candidates import Candidates, judge
from seqloom.decoding.exhaustive import Exhaustive
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.search import Request, log_softmax
from seqloom.text.vocabulary import END

A, B, C = 4, 5, 6
NOTHING = float("-inf")


def says(**shares: float) -> list[float]:
    """A distribution over PAD, START, END, UNKNOWN, a, b, c."""
    return [0.0, 0.0, shares.get("end", 0.0), 0.0, *(shares.get(word, 0.0) for word in "abc")]


def test_a_beam_mends_what_greedy_search_spoils() -> None:
    """The likelier first word leads to the less likely sentence."""
    table = {
        (): says(a=0.6, b=0.4),
        (A,): says(a=0.5, c=0.5 - 1e-3, end=1e-3),
        (B,): says(end=0.9, a=0.1),
    }
    decoder = TableDecoder(table, other=says(end=0.4, a=0.35, b=0.25))
    memory = random_memory(0, [1])
    [[greedy]] = Greedy(length_exponent=0)(decoder, memory, Request([5]))
    [[beam]] = Beam(2, length_exponent=0)(decoder, memory, Request([5]))
    assert greedy.tokens == (A, A)
    assert beam.tokens == (B,)
    assert beam.score == pytest.approx(math.log(0.4 * 0.9))


def test_of_the_best_candidates_those_with_end_are_saved_and_the_best_others_go_on() -> None:
    """Two hypotheses; END is first and third of the candidates, so that only one END is saved."""
    totals = torch.tensor([[-1.0, -1.5]], dtype=torch.float64)
    allowed = torch.tensor(
        [[NOTHING] * 2 + [-0.1, NOTHING, -3.0, -4.0], [NOTHING] * 2 + [-1.0, NOTHING, -0.2, -5.0]],
        dtype=torch.float64,
    )
    verdict = judge(Candidates.of(totals, allowed, 2), 2)
    assert verdict.ended.tolist() == [[True, False]]
    assert verdict.leaders.parents.tolist() == [[0, 1]]
    assert verdict.leaders.own.tolist() == [pytest.approx([-0.1, -0.2])]
    assert verdict.going.tokens.tolist() == [[A, A]]
    assert verdict.going.parents.tolist() == [[1, 0]]
    assert verdict.going.totals.tolist() == [pytest.approx([-1.7, -4.0])]
    assert verdict.going.own.tolist() == [pytest.approx([-0.2, -3.0])]


def test_what_has_ended_is_not_expanded() -> None:
    decoder, memory = EchoDecoder(4, words=4), random_memory(4, [2, 3, 1])
    for finished in [1, 3, 9]:
        Beam(3, finished)(decoder, memory, Request([9, 9, 9]))
        assert not any(END in tokens for tokens in decoder.fed)


def test_a_beam_stops_when_enough_is_finished() -> None:
    """END is always the likeliest: one hypothesis ends at every step."""
    decoder = TableDecoder({}, other=says(end=0.5, a=0.3, b=0.2))
    memory = random_memory(0, [1])
    for finished in [1, 2, 4]:
        [found] = Beam(2, finished)(decoder, memory, Request([9], n_best=20))
        complete = [one for one in found if one.finished]
        assert sorted(len(one.tokens) for one in complete) == list(range(finished))
        assert all(not one.finished for one in found[len(complete) :])


def test_sources_that_are_done_leave_the_batch() -> None:
    decoder, memory = EchoDecoder(4, words=4), random_memory(4, [2, 3, 1, 2])
    Beam(3, finished=99)(decoder, memory, Request([1, 2, 3, 3]))
    assert decoder.steps == [4, 3 * 3, 3 * 2]


def test_greedy_search_gives_back_most_of_the_batch_too() -> None:
    decoder, memory = EchoDecoder(4, words=4), random_memory(4, [2] * 4)
    Greedy()(decoder, memory, Request([1, 1, 4, 4]))
    assert decoder.steps[1] == 2


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.integers(5, 40))
def test_a_beam_may_be_wider_than_the_vocabulary(seed: int, width: int) -> None:
    decoder, memory = EchoDecoder(seed, words=1), random_memory(seed, [2, 1])
    request = Request([4, 3], n_best=3)
    wide, whole = Beam(width)(decoder, memory, request), Exhaustive()(decoder, memory, request)
    assert [[one.tokens for one in found] for found in wide] == [
        [one.tokens for one in found] for found in whole
    ]


def test_by_total_probability_a_beam_of_any_width_prefers_short_outputs() -> None:
    """Saying more never makes an output likelier, so a whole tree without norm finds the short."""
    decoder = TableDecoder({(): says(end=0.2, a=0.8)}, other=says(a=0.79, end=0.21))
    memory = random_memory(0, [1])
    [[plain]] = Beam(9, 99, length_exponent=0)(decoder, memory, Request([8]))
    [[normed]] = Beam(9, 99, length_exponent=1)(decoder, memory, Request([8]))
    assert len(plain.tokens) < len(normed.tokens)


def test_half_precision_logits_become_single_precision_log_probabilities() -> None:
    logits = torch.randn(3, 9)
    assert log_softmax(logits.bfloat16()).dtype == torch.float32
    assert log_softmax(logits.double()).dtype == torch.float64
    torch.testing.assert_close(log_softmax(logits).exp().sum(dim=1), torch.ones(3))
