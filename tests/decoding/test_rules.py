"""Rules: the tokens that a search must not generate."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.schema.decoding import GreedyConfig
from seqloom.core.errors import ConfigError
from seqloom.decoding.exhaustive import Exhaustive
from seqloom.decoding.rules import (
    FORBIDDEN,
    ForcedPrefixes,
    Rules,
    default_max_length,
    forbid_repeats,
)
from seqloom.decoding.search import SearchRequest
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN
from support.toy_decoders import EchoDecoder, random_memory

VOCABULARY = 8


def allowed_tokens(rules: Rules, generated: list[int], forced: int | None = None) -> set[int]:
    log_probabilities = torch.randn(1, VOCABULARY).log_softmax(dim=1)
    forced_tokens = None if forced is None else torch.tensor([forced])
    result = rules(log_probabilities, torch.tensor([[START, *generated]]), forced_tokens)
    allowed = result > FORBIDDEN
    assert torch.equal(result[allowed], log_probabilities[allowed])  # nothing is renormalised
    return set(allowed[0].nonzero().squeeze(1).tolist())


def test_pad_and_start_are_forbidden_and_unknown_is_unless_allowed() -> None:
    all_tokens = set(range(VOCABULARY))
    assert allowed_tokens(Rules(), []) == all_tokens - {PAD, START, UNKNOWN}
    assert allowed_tokens(Rules(allow_unknown=True), []) == all_tokens - {PAD, START}


def test_end_is_allowed_before_min_length_if_the_model_allows_nothing_else() -> None:
    only_end = torch.full((1, VOCABULARY), FORBIDDEN)
    only_end[0, END] = 0.0
    allowed = Rules(min_length=3)(only_end, torch.tensor([[START, 4]]), None)
    assert torch.equal(allowed, only_end)


@given(st.integers(0, 5), st.integers(0, 5))
def test_end_is_forbidden_before_min_length(min_length: int, length: int) -> None:
    allowed = allowed_tokens(Rules(min_length=min_length), [4] * length)
    assert (END in allowed) == (length >= min_length)


@given(st.integers(1, 4), st.lists(st.integers(4, 6), max_size=12))
def test_exactly_the_tokens_that_would_repeat_an_ngram_are_forbidden(
    size: int, generated: list[int]
) -> None:
    def ngrams(tokens: list[int]) -> list[tuple[int, ...]]:
        return [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)]

    log_probabilities = torch.zeros(1, VOCABULARY)
    forbid_repeats(log_probabilities, torch.tensor([[START, *generated]]), size)
    for token in range(4, VOCABULARY):
        last = ngrams([*generated, token])[-1:]
        is_repeated = bool(last) and last[0] in ngrams(generated)
        assert (log_probabilities[0, token] == FORBIDDEN) == is_repeated


def test_forced_token_has_priority_over_every_other_rule() -> None:
    rules = Rules(min_length=3, no_repeat_ngram=1)
    for token in [UNKNOWN, 4]:
        assert allowed_tokens(rules, [4], forced=token) == {token}
    assert allowed_tokens(rules, [4], forced=PAD) == {5, 6, 7}


def test_end_is_allowed_if_every_other_token_is_forbidden() -> None:
    rules = Rules(min_length=9, no_repeat_ngram=1)
    assert allowed_tokens(rules, [4, 5, 6]) == {7}
    assert allowed_tokens(rules, [4, 5, 6, 7]) == {END}


def test_prefixes_of_different_lengths_force_tokens_until_they_end() -> None:
    prefixes = ForcedPrefixes([[4, 5], [], [6]], torch.device("cpu"))
    sources = torch.tensor([0, 1, 2, 2])

    def forced(position: int) -> list[int] | None:
        tokens = prefixes.at(position, lambda: sources)
        return None if tokens is None else tokens.tolist()

    assert forced(0) == [4, PAD, 6, 6]
    assert forced(1) == [5, PAD, PAD, PAD]
    assert forced(2) is None
    assert ForcedPrefixes(None, torch.device("cpu")).at(0, lambda: sources) is None
    assert ForcedPrefixes([[], []], torch.device("cpu")).at(0, lambda: sources) is None


@given(st.integers(0, 1000), st.integers(0, 400))
def test_default_max_length_is_twice_the_source_plus_32_and_at_most_256(
    source_tokens: int, min_length: int
) -> None:
    assert default_max_length(source_tokens, GreedyConfig()) == min(256, 2 * source_tokens + 32)
    assert default_max_length(source_tokens, GreedyConfig(max_length=7)) == 7
    assert default_max_length(source_tokens, GreedyConfig(min_length=min_length)) > min_length


def test_exhaustive_search_refuses_a_tree_that_is_too_large() -> None:
    decoder, memory = EchoDecoder(0, words=10), random_memory(0, [2])
    with pytest.raises(ConfigError) as caught:
        Exhaustive(max_sequences=1000)(decoder, memory, SearchRequest([4]))
    assert "over 10 words and 4 steps would score 10^4 sequences" in str(caught.value)
    assert "max_sequences = 1,000; lower max_length" in str(caught.value)
    # A forced prefix reduces the number of sequences.
    assert Exhaustive(max_sequences=1000)(decoder, memory, SearchRequest([4], [[5]]))


@pytest.mark.parametrize("score_prefix", [True, False])
def test_a_forced_token_counts_as_certain_only_without_score_prefix(score_prefix: bool) -> None:
    log_probabilities = torch.randn(2, 9).log_softmax(dim=-1)
    forced = torch.tensor([5, PAD])
    generated = torch.full((2, 1), START)
    allowed = Rules(score_prefix=score_prefix)(log_probabilities, generated, forced)
    assert allowed[0, 5] == (log_probabilities[0, 5] if score_prefix else 0)
    assert torch.isinf(allowed[0, [token for token in range(9) if token != 5]]).all()
    # A row without a forced token is not changed by the setting.
    assert torch.equal(allowed[1], Rules()(log_probabilities, generated, None)[1])
