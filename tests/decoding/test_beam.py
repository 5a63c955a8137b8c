"""Beam search as the lecture defines it."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.decoding.beam import Beam, Candidates, select_candidates
from seqloom.decoding.exhaustive import Exhaustive
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.rules import FORBIDDEN, Rules
from seqloom.decoding.search import Search, SearchRequest, log_softmax
from seqloom.text.vocabulary import END, START
from support.toy_decoders import EchoDecoder, TableDecoder, random_memory, select_sources

A, B, C = 4, 5, 6


def distribution(**probabilities: float) -> list[float]:
    """Probabilities of PAD, START, END, UNKNOWN, a, b, c."""
    words = (probabilities.get(word, 0.0) for word in "abc")
    return [0.0, 0.0, probabilities.get("end", 0.0), 0.0, *words]


def test_beam_search_finds_a_better_output_than_greedy_search() -> None:
    """The more probable first word leads to the less probable sentence."""
    table = {
        (): distribution(a=0.6, b=0.4),
        (A,): distribution(a=0.5, c=0.5 - 1e-3, end=1e-3),
        (B,): distribution(end=0.9, a=0.1),
    }
    decoder = TableDecoder(table, default=distribution(end=0.4, a=0.35, b=0.25))
    memory = random_memory(0, [1])
    [[greedy]] = Greedy(length_penalty=0)(decoder, memory, SearchRequest([5]))
    [[beam]] = Beam(2, length_penalty=0)(decoder, memory, SearchRequest([5]))
    assert greedy.tokens == (A, A)
    assert beam.tokens == (B,)
    assert beam.score == pytest.approx(math.log(0.4 * 0.9))


def test_best_candidates_with_end_are_saved_and_best_others_continue() -> None:
    """Two hypotheses; END is the first and third candidate, so that only one END is saved."""
    totals = torch.tensor([[-1.0, -1.5]], dtype=torch.float64)
    log_probabilities = torch.tensor(
        [
            [FORBIDDEN, FORBIDDEN, -0.1, FORBIDDEN, -3.0, -4.0],
            [FORBIDDEN, FORBIDDEN, -1.0, FORBIDDEN, -0.2, -5.0],
        ],
        dtype=torch.float64,
    )
    selection = select_candidates(Candidates.of(totals, *log_probabilities.topk(2, dim=1)), 2)
    assert selection.ended.tolist() == [[True, False]]
    assert selection.best.parents.tolist() == [[0, 1]]
    assert selection.best.log_probabilities.tolist() == [pytest.approx([-0.1, -0.2])]
    assert selection.continuing.tokens.tolist() == [[A, A]]
    assert selection.continuing.parents.tolist() == [[1, 0]]
    assert selection.continuing.totals.tolist() == [pytest.approx([-1.7, -4.0])]
    assert selection.continuing.log_probabilities.tolist() == [pytest.approx([-0.2, -3.0])]


def test_finished_hypotheses_are_not_extended() -> None:
    decoder, memory = EchoDecoder(4, words=4), random_memory(4, [2, 3, 1])
    for finished in [1, 3, 9]:
        Beam(3, finished)(decoder, memory, SearchRequest([9, 9, 9]))
        assert not any(END in tokens for tokens in decoder.inputs)


def test_beam_search_stops_after_the_given_number_of_finished_hypotheses() -> None:
    """END is always the most probable token, so one hypothesis ends at every step."""
    decoder = TableDecoder({}, default=distribution(end=0.5, a=0.3, b=0.2))
    memory = random_memory(0, [1])
    for finished in [1, 2, 4]:
        [hypotheses] = Beam(2, finished)(decoder, memory, SearchRequest([9], n_best=20))
        complete = [hypothesis for hypothesis in hypotheses if hypothesis.finished]
        assert sorted(len(hypothesis.tokens) for hypothesis in complete) == list(range(finished))
        assert not any(hypothesis.finished for hypothesis in hypotheses[len(complete) :])


def test_beam_search_drops_finished_sources_from_the_batch() -> None:
    decoder, memory = EchoDecoder(4, words=4), random_memory(4, [2, 3, 1, 2])
    Beam(3, finished=99)(decoder, memory, SearchRequest([1, 2, 3, 3]))
    assert decoder.row_counts == [4, 3 * 3, 3 * 2]


@pytest.mark.parametrize("search", [Beam(3, finished=99), Greedy(rules=Rules(min_length=9))])
def test_finished_sources_are_reported_at_once(search: Search) -> None:
    decoder, memory = EchoDecoder(4, words=4), random_memory(4, [2, 3, 1, 2])
    steps: dict[int, int] = {}

    def on_finished(source: int, hypotheses: list[Hypothesis]) -> None:
        steps[source] = len(decoder.row_counts)

    search(decoder, memory, SearchRequest([1, 2, 3, 3], on_finished=on_finished))
    assert steps == {0: 1, 1: 2, 2: 3, 3: 3}


def test_a_request_for_some_sources_keeps_their_indices_and_reports_nothing() -> None:
    reported: list[int] = []
    request = SearchRequest([1, 2, 3, 4], on_finished=lambda source, _: reported.append(source))
    part = request.only([3, 1]).only([1])
    Beam(2)(EchoDecoder(4, words=4), random_memory(4, [2]), part)
    assert part.indices == [1]
    assert reported == []


def test_greedy_search_drops_finished_sources_from_the_batch() -> None:
    decoder, memory = EchoDecoder(4, words=4), random_memory(4, [2] * 4)
    Greedy()(decoder, memory, SearchRequest([1, 1, 4, 4]))
    assert decoder.row_counts[1] == 2


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.integers(5, 40))
def test_beam_may_be_wider_than_the_vocabulary(seed: int, width: int) -> None:
    decoder, memory = EchoDecoder(seed, words=1), random_memory(seed, [2, 1])
    request = SearchRequest([4, 3], n_best=3)
    wide, exhaustive = Beam(width)(decoder, memory, request), Exhaustive()(decoder, memory, request)
    assert [[hypothesis.tokens for hypothesis in hypotheses] for hypotheses in wide] == [
        [hypothesis.tokens for hypothesis in hypotheses] for hypotheses in exhaustive
    ]


def test_without_length_normalisation_beam_search_prefers_short_outputs() -> None:
    """Additional tokens never raise log p."""
    decoder = TableDecoder(
        {(): distribution(end=0.2, a=0.8)}, default=distribution(a=0.79, end=0.21)
    )
    memory = random_memory(0, [1])
    [[by_total]] = Beam(9, 99, length_penalty=0)(decoder, memory, SearchRequest([8]))
    [[by_mean]] = Beam(9, 99, length_penalty=1)(decoder, memory, SearchRequest([8]))
    assert len(by_total.tokens) < len(by_mean.tokens)


def test_log_softmax_of_half_precision_logits_is_in_single_precision() -> None:
    logits = torch.randn(3, 9)
    assert log_softmax(logits.bfloat16()).dtype == torch.float32
    assert log_softmax(logits.double()).dtype == torch.float64
    torch.testing.assert_close(log_softmax(logits).exp().sum(dim=1), torch.ones(3))


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000))
def test_log_probabilities_are_those_of_the_decoder_for_the_whole_hypothesis(seed: int) -> None:
    """The decoder state of each row belongs to the tokens of that row, after every reordering."""
    decoder, memory = EchoDecoder(seed, words=4), random_memory(seed, [2, 3])
    results = Beam(4)(decoder, memory, SearchRequest([6, 6], n_best=4))
    for source, hypotheses in enumerate(results):
        for hypothesis in hypotheses:
            state = decoder.start(select_sources(memory, [source]), 6)
            token, expected = START, []
            for following in [*hypothesis.tokens, *[END] * hypothesis.finished]:
                step = decoder.step(torch.tensor([token]), state)
                expected.append(float(log_softmax(step.logits)[0, following]))
                token, state = following, step.state
            assert hypothesis.log_probabilities == pytest.approx(expected)
