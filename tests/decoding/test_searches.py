"""Claims that hold for every search, over decoders whose state depends on all tokens so far."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seqloom.core.errors import DataError
from seqloom.decoding.beam import Beam
from seqloom.decoding.exhaustive import Exhaustive
from seqloom.decoding.fast.captured import CapturedSearch
from seqloom.decoding.forced import force
from seqloom.decoding.generation import generate
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.rules import Rules
from seqloom.decoding.sampling import Sampling
from seqloom.decoding.search import ExcludedTokens, Search, SearchRequest, StepDecoder
from seqloom.decoding.token_tree import TokenTree
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN
from support.toy_decoders import AttentiveDecoder, EchoDecoder, random_memory, select_sources

BuildDecoder = Callable[[int, int], StepDecoder]
DECODERS: list[BuildDecoder] = [EchoDecoder, AttentiveDecoder]
each_decoder = pytest.mark.parametrize("build_decoder", DECODERS)
seeds = st.integers(0, 10**6)
few_examples = settings(max_examples=15, deadline=None)


def every_search(rules: Rules, seed: int = 0) -> list[Search]:
    """Each search with several settings."""
    return [
        Greedy(rules=rules),
        Beam(1, rules=rules),
        Beam(3, rules=rules),
        Beam(4, finished=2, length_penalty=0.0, rules=rules),
        Beam(3, length_penalty=0.6, rules=rules, length_counts_end=True),
        Beam(50, rules=rules),
        Sampling(seed=seed, rules=rules),
        Sampling(temperature=2.0, top_k=3, top_p=0.8, samples=4, seed=seed, rules=rules),
        Exhaustive(rules=rules),
    ]


def keep_all(attention: Tensor) -> Tensor:
    return attention


def is_close(first: Hypothesis, second: Hypothesis) -> bool:
    """True if tokens are equal, and numbers equal up to rounding."""
    if first.attention is not None and second.attention is not None:
        torch.testing.assert_close(first.attention, second.attention, rtol=1e-9, atol=1e-9)
    return (
        (first.tokens, first.finished) == (second.tokens, second.finished)
        and first.score == pytest.approx(second.score, abs=1e-9)
        and first.log_probabilities == pytest.approx(second.log_probabilities, abs=1e-9)
    )


def assert_same(
    results: Sequence[Sequence[Hypothesis]], expected: Sequence[Sequence[Hypothesis]]
) -> None:
    for hypotheses, expected_hypotheses in zip(results, expected, strict=True):
        assert len(hypotheses) == len(expected_hypotheses)
        for first, second in zip(hypotheses, expected_hypotheses, strict=True):
            assert is_close(first, second), (first, second)


@each_decoder
@few_examples
@given(seed=seeds, words=st.integers(1, 5), length=st.integers(1, 7))
def test_beam_of_width_one_is_greedy(
    build_decoder: BuildDecoder, seed: int, words: int, length: int
) -> None:
    decoder, memory = build_decoder(seed, words), random_memory(seed, [3, 1, 4, 2])
    request = SearchRequest(
        [length, 2, length, 1], prefixes=[[], [4], [], []], keep_attention=keep_all
    )
    for rules in [Rules(), Rules(min_length=2, no_repeat_ngram=1)]:
        greedy = Greedy(rules=rules)(decoder, memory, request)
        assert_same(Beam(1, rules=rules)(decoder, memory, request), greedy)


@each_decoder
@few_examples
@given(
    seed=seeds,
    words=st.integers(1, 3),
    length=st.integers(1, 4),
    length_penalty=st.sampled_from([0.0, 0.6, 1.0]),
    counts_end=st.booleans(),
)
def test_beam_as_wide_as_the_tree_equals_exhaustive_search(
    build_decoder: BuildDecoder,
    seed: int,
    words: int,
    length: int,
    length_penalty: float,
    counts_end: bool,
) -> None:
    decoder, memory = build_decoder(seed, words), random_memory(seed, [3, 1])
    request = SearchRequest([length, max(1, length - 1)], n_best=9)
    scores: dict[str, Any] = {"length_penalty": length_penalty, "length_counts_end": counts_end}
    exhaustive = Exhaustive(**scores)(decoder, memory, request)
    wide = Beam((words + 1) ** (length + 1), **scores)
    assert_same(wide(decoder, memory, request), exhaustive)


@each_decoder
@few_examples
@given(
    seed=seeds,
    words=st.integers(1, 3),
    length_penalty=st.sampled_from([0.0, 0.6, 1.0, 1.5]),
    counts_end=st.booleans(),
)
def test_every_search_scores_and_ranks_by_the_formula(
    build_decoder: BuildDecoder, seed: int, words: int, length_penalty: float, counts_end: bool
) -> None:
    """log p / length^penalty. END counts if the search says so; the empty output has length 1."""
    decoder, memory = build_decoder(seed, words), random_memory(seed, [3, 1])
    scores: dict[str, Any] = {"length_penalty": length_penalty, "length_counts_end": counts_end}
    beam = Beam(4, **scores)
    searches: list[Search] = [
        beam,
        CapturedSearch(beam),
        Greedy(**scores),
        CapturedSearch(Greedy(**scores)),
        Sampling(samples=4, seed=seed, **scores),
        Exhaustive(**scores),
    ]
    for search in searches:
        for hypotheses in search(decoder, memory, SearchRequest([4, 3], n_best=9)):
            for one in hypotheses:
                length = max(1, len(one.tokens) + (one.finished and counts_end))
                expected = sum(one.log_probabilities) / length**length_penalty
                assert one.score == pytest.approx(expected, abs=1e-9)
            ranks = [(one.finished, one.score) for one in hypotheses]
            assert isinstance(search, Sampling) or ranks == sorted(ranks, reverse=True)


@each_decoder
@few_examples
@given(seed=seeds, words=st.integers(1, 3), length=st.integers(1, 4))
def test_exhaustive_search_equals_scoring_every_output(
    build_decoder: BuildDecoder, seed: int, words: int, length: int
) -> None:
    decoder, memory = build_decoder(seed, words), random_memory(seed, [3])
    outputs = [
        output
        for size in range(length)
        for output in itertools.product(range(4, 4 + words), repeat=size)
    ]
    scored = [force(decoder, memory, [output])[0] for output in outputs]
    best = sorted(scored, key=lambda hypothesis: -hypothesis.score)[:5]
    [hypotheses] = Exhaustive()(decoder, memory, SearchRequest([length], n_best=5))
    assert_same([hypotheses[: len(best)]], [best])
    assert all(not hypothesis.finished for hypothesis in hypotheses[len(best) :])


@each_decoder
@few_examples
@given(seed=seeds, width=st.integers(1, 9))
def test_no_search_finds_a_better_output_than_exhaustive_search(
    build_decoder: BuildDecoder, seed: int, width: int
) -> None:
    decoder, memory = build_decoder(seed, 3), random_memory(seed, [3, 2])
    request = SearchRequest([4, 3])
    optimum = Exhaustive()(decoder, memory, request)
    for results in [Beam(width)(decoder, memory, request), Greedy()(decoder, memory, request)]:
        for [best], [hypothesis] in zip(optimum, results, strict=True):
            assert not hypothesis.finished or hypothesis.score <= best.score + 1e-12


@each_decoder
@few_examples
@given(seed=seeds, words=st.integers(1, 4))
def test_probabilities_and_attention_equal_those_of_forced_decoding(
    build_decoder: BuildDecoder, seed: int, words: int
) -> None:
    decoder, memory = build_decoder(seed, words), random_memory(seed, [3, 1, 2])
    request = SearchRequest([5, 3, 4], [[4], [], [UNKNOWN, 4]], n_best=3, keep_attention=keep_all)
    for search in every_search(Rules(min_length=1), seed):
        assert isinstance(search, Greedy | Beam | Sampling | Exhaustive)
        normalisation = search.normalisation
        for source, hypotheses in enumerate(search(decoder, memory, request)):
            assert hypotheses
            for hypothesis in hypotheses:
                [forced] = force(
                    decoder,
                    select_sources(memory, [source]),
                    [hypothesis.tokens],
                    keep_all,
                    normalisation,
                )
                length = len(hypothesis.log_probabilities)
                expected = forced.log_probabilities[:length]
                assert length == len(hypothesis.tokens) + hypothesis.finished
                assert hypothesis.log_probabilities == pytest.approx(expected)
                score = normalisation.score(sum(expected), length, hypothesis.finished)
                assert hypothesis.score == pytest.approx(score)
                assert not hypothesis.finished or forced.score == pytest.approx(score)
                if forced.attention is not None:
                    assert hypothesis.attention is not None
                    torch.testing.assert_close(hypothesis.attention, forced.attention[:length])


@each_decoder
@pytest.mark.parametrize("joins_attention", [False, True])  # as on a CPU, as on a GPU
@few_examples
@given(
    seed=seeds,
    n_best=st.integers(1, 3),
    search=st.one_of(
        st.builds(
            Beam,
            st.integers(1, 4),
            stopping=st.sampled_from(["count", "estimate", "bound"]),
        ),
        st.just(Greedy()),
        st.builds(Sampling, samples=st.integers(1, 3)),
    ),
)
def test_a_search_reports_each_source_once_with_the_returned_hypotheses(
    build_decoder: BuildDecoder, joins_attention: bool, seed: int, n_best: int, search: Search
) -> None:
    decoder, memory = build_decoder(seed, 4), random_memory(seed, [2, 3, 1, 4, 2])
    request = SearchRequest([1, 5, 3, 6, 2], n_best=n_best, keep_attention=keep_all)
    expected = search(decoder, memory, request)
    reported: dict[int, list[Hypothesis]] = {}

    def on_finished(source: int, hypotheses: list[Hypothesis]) -> None:
        assert source not in reported
        reported[source] = hypotheses

    with patch.object(TokenTree, "_joins_attention", joins_attention):
        results = search(decoder, memory, replace(request, on_finished=on_finished))
    assert all(results[source] is hypotheses for source, hypotheses in reported.items())
    assert set(reported) == set(range(5))
    assert_same(results, expected)


@each_decoder
@few_examples
@given(
    seed=seeds,
    order=st.permutations(range(5)).flatmap(
        lambda order: st.integers(1, 5).map(lambda size: order[:size])
    ),
    padding=st.integers(0, 3),
)
def test_output_does_not_depend_on_the_rest_of_the_batch(
    build_decoder: BuildDecoder, seed: int, order: list[int], padding: int
) -> None:
    decoder, memory = build_decoder(seed, 3), random_memory(seed, [3, 1, 4, 2, 5])
    max_lengths, prefixes = [5, 3, 4, 2, 5], [[], [4], [5, 6], [], [UNKNOWN]]
    whole = SearchRequest(max_lengths, prefixes, n_best=4, keep_attention=keep_all)
    part = SearchRequest(
        [max_lengths[source] for source in order],
        [prefixes[source] for source in order],
        n_best=4,
        keep_attention=keep_all,
        indices=order,
    )
    for search in every_search(Rules(), seed):
        together = search(decoder, memory, whole)
        apart = search(decoder, select_sources(memory, order, padding), part)
        assert_same(apart, [together[source] for source in order])


@each_decoder
@few_examples
@given(
    seed=seeds,
    rules=st.builds(Rules, st.integers(0, 4), st.integers(0, 3), st.booleans()),
    max_lengths=st.lists(st.integers(3, 6), min_size=3, max_size=3),
)
def test_every_search_obeys_every_rule(
    build_decoder: BuildDecoder, seed: int, rules: Rules, max_lengths: list[int]
) -> None:
    words, prefixes = 3, [[], [5], [6, 6]]
    decoder, memory = build_decoder(seed, words), random_memory(seed, [3, 1, 2])
    request = SearchRequest(max_lengths, prefixes, n_best=4)
    size = rules.no_repeat_ngram
    for search in every_search(rules, seed):
        results = search(decoder, memory, request)
        for prefix, max_length, hypotheses in zip(prefixes, max_lengths, results, strict=True):
            for hypothesis in hypotheses:
                tokens, finished = hypothesis.tokens, hypothesis.finished
                assert tokens[: len(prefix)] == tuple(prefix)
                assert not {PAD, START, END} & set(tokens)
                assert rules.allow_unknown or UNKNOWN not in tokens
                assert len(tokens) + finished <= max_length
                assert finished or len(tokens) == max_length or size or len(hypotheses) > 1
                ngrams = list(zip(*(tokens[i:] for i in range(size)), strict=False))
                # Only a forced prefix may contain a repeated n-gram.
                repeats = len(ngrams) - len(set(ngrams))
                assert repeats == (1 if size == 1 and prefix == [6, 6] else 0)
                all_words_used = size == 1 and len(tokens) >= words
                assert not finished or all_words_used or len(tokens) >= rules.min_length


def test_hypothesis_ends_if_every_other_token_is_forbidden() -> None:
    """Two words, each allowed once, and min_length = 5: after two words only END is left."""
    rules = Rules(min_length=5, no_repeat_ngram=1)
    decoder, memory = EchoDecoder(0, words=2), random_memory(0, [2])
    for search in every_search(rules):
        for hypothesis in search(decoder, memory, SearchRequest([8]))[0]:
            assert hypothesis.finished
            assert sorted(hypothesis.tokens) == [4, 5]


@few_examples
@given(seed=seeds)
def test_hypothesis_at_the_length_limit_is_unfinished(seed: int) -> None:
    decoder, memory = EchoDecoder(seed, words=3), random_memory(seed, [2, 3])
    for search in every_search(Rules(min_length=9)):
        for hypotheses in search(decoder, memory, SearchRequest([3, 3], n_best=4)):
            assert hypotheses
            for hypothesis in hypotheses:
                assert not hypothesis.finished
                assert len(hypothesis.tokens) == len(hypothesis.log_probabilities) == 3


@few_examples
@given(seed=seeds, n_best=st.integers(1, 12))
def test_n_best_list_is_sorted_and_has_no_duplicates(seed: int, n_best: int) -> None:
    decoder, memory = EchoDecoder(seed, words=3), random_memory(seed, [2, 3])
    searches: list[Search] = [Beam(4), Beam(4, finished=2), Exhaustive()]
    for search in searches:
        for hypotheses in search(decoder, memory, SearchRequest([4, 5], n_best=n_best)):
            ranks = [(hypothesis.finished, hypothesis.score) for hypothesis in hypotheses]
            assert ranks == sorted(ranks, reverse=True)
            distinct = {(hypothesis.tokens, hypothesis.finished) for hypothesis in hypotheses}
            assert len(distinct) == len(hypotheses) <= n_best


def test_attention_is_reduced_as_requested_and_has_no_padding() -> None:
    decoder, memory = AttentiveDecoder(3, words=4), random_memory(3, [3, 1, 2])
    max_lengths = [6, 4, 5]
    for search in every_search(Rules(min_length=2)):
        if isinstance(search, Exhaustive):
            max_lengths = [3, 3, 3]
        without = search(decoder, memory, SearchRequest(max_lengths))
        whole = search(decoder, memory, SearchRequest(max_lengths, keep_attention=keep_all))
        mean = search(
            decoder,
            memory,
            SearchRequest(max_lengths, keep_attention=lambda attention: attention.mean((1, 2))),
        )
        for source, length in enumerate([3, 1, 2]):
            steps = len(whole[source][0].log_probabilities)
            assert without[source][0].attention is None
            kept, reduced = whole[source][0].attention, mean[source][0].attention
            assert kept is not None
            assert reduced is not None
            assert kept.shape == (steps, 1, 2, length)
            torch.testing.assert_close(kept.sum(-1), torch.ones_like(kept.sum(-1)))
            torch.testing.assert_close(reduced, kept.mean((1, 2)))


def test_attention_is_none_for_a_model_without_attention() -> None:
    decoder, memory = EchoDecoder(3, words=4), random_memory(3, [3])
    [[hypothesis]] = Beam(2)(decoder, memory, SearchRequest([3], keep_attention=keep_all))
    assert hypothesis.attention is None


def test_every_prefix_that_is_too_long_is_reported() -> None:
    decoder, memory = EchoDecoder(0, words=3), random_memory(0, [2, 2, 2])
    request = SearchRequest([2, 5, 1], prefixes=[[4, 5], [4], [6]], indices=[10, 11, 12])
    for search in every_search(Rules()):
        with pytest.raises(DataError) as caught:
            search(decoder, memory, request)
        message = str(caught.value)
        assert "a forced prefix is too long" in message
        assert "source 10: the prefix has 2 tokens and max_length is 2" in message
        assert "source 12" in message
        assert "source 11" not in message


@pytest.mark.parametrize(
    "search_request",
    [SearchRequest([4], prefixes=[[5]]), SearchRequest([4], excluded=[ExcludedTokens()])],
)
def test_prefixes_and_excluded_tokens_without_rules_are_refused(
    search_request: SearchRequest,
) -> None:
    with pytest.raises(AssertionError, match="need the rules of a search"):
        generate(
            EchoDecoder(0, 3),
            random_memory(0, [3]),
            search_request,
            lambda log_probabilities, rows, position: log_probabilities.argmax(-1),
        )


def test_forced_decoding_of_a_batch_equals_that_of_each_source() -> None:
    decoder, memory = AttentiveDecoder(5, words=4), random_memory(5, [3, 1, 4, 2])
    targets = [[4, 5, 6, 7], [], [4], [7, 7]]
    together = force(decoder, memory, targets, keep_all)
    for source, (target, hypothesis) in enumerate(zip(targets, together, strict=True)):
        assert hypothesis.tokens == tuple(target)
        assert hypothesis.finished
        total = math.fsum(hypothesis.log_probabilities)
        assert hypothesis.log_probability == pytest.approx(total)
        [alone] = force(decoder, select_sources(memory, [source]), [target], keep_all)
        assert is_close(hypothesis, alone)
