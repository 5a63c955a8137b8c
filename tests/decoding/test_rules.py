"""What may not be put out."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from toy_decoders import EchoDecoder, random_memory

from seqloom.config.schema.decoding import SearchRulesConfig
from seqloom.core.errors import ConfigError
from seqloom.decoding.exhaustive import Exhaustive
from seqloom.decoding.rules import FORBIDDEN, Prefixes, Rules, default_max_length, forbid_repeats
from seqloom.decoding.search import Request
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN

VOCABULARY = 8


def allowed_tokens(rules: Rules, written: list[int], forced: int | None = None) -> set[int]:
    own = torch.randn(1, VOCABULARY).log_softmax(dim=1)
    must = None if forced is None else torch.tensor([forced])
    allowed = rules(own, torch.tensor([[START, *written]]), must)
    kept = allowed > FORBIDDEN
    assert torch.equal(allowed[kept], own[kept])  # nothing is renormalised
    return set(kept[0].nonzero().squeeze(1).tolist())


def test_pad_and_start_are_never_put_out_and_unknown_only_if_allowed() -> None:
    everything = set(range(VOCABULARY))
    assert allowed_tokens(Rules(), []) == everything - {PAD, START, UNKNOWN}
    assert allowed_tokens(Rules(allow_unknown=True), []) == everything - {PAD, START}


def test_where_a_model_puts_out_nothing_but_end_it_need_not_wait() -> None:
    only_end = torch.full((1, VOCABULARY), FORBIDDEN)
    only_end[0, END] = 0.0
    allowed = Rules(min_length=3)(only_end, torch.tensor([[START, 4]]), None)
    assert torch.equal(allowed, only_end)


@given(st.integers(0, 5), st.integers(0, 5))
def test_end_waits_for_the_shortest_output(minimum: int, length: int) -> None:
    allowed = allowed_tokens(Rules(min_length=minimum), [4] * length)
    assert (END in allowed) == (length >= minimum)


@given(st.integers(1, 4), st.lists(st.integers(4, 6), max_size=12))
def test_exactly_what_would_repeat_an_ngram_is_forbidden(size: int, written: list[int]) -> None:
    def ngrams(tokens: list[int]) -> list[tuple[int, ...]]:
        return [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)]

    allowed = torch.zeros(1, VOCABULARY)
    forbid_repeats(allowed, torch.tensor([[START, *written]]), size)
    for token in range(4, VOCABULARY):
        last = ngrams([*written, token])[-1:]
        again = bool(last) and last[0] in ngrams(written)
        assert (allowed[0, token] == FORBIDDEN) == again


def test_a_forced_token_comes_before_every_other_rule() -> None:
    rules = Rules(min_length=3, no_repeat_ngram=1)
    for token in [UNKNOWN, 4]:
        assert allowed_tokens(rules, [4], forced=token) == {token}
    assert allowed_tokens(rules, [4], forced=PAD) == {5, 6, 7}


def test_where_nothing_else_is_allowed_end_is() -> None:
    rules = Rules(min_length=9, no_repeat_ngram=1)
    assert allowed_tokens(rules, [4, 5, 6]) == {7}
    assert allowed_tokens(rules, [4, 5, 6, 7]) == {END}


def test_prefixes_of_unequal_length_force_until_they_end() -> None:
    prefixes = Prefixes([[4, 5], [], [6]], torch.device("cpu"))
    sources = torch.tensor([0, 1, 2, 2])

    def forced(position: int) -> list[int] | None:
        tokens = prefixes.at(position, lambda: sources)
        return None if tokens is None else tokens.tolist()

    assert forced(0) == [4, PAD, 6, 6]
    assert forced(1) == [5, PAD, PAD, PAD]
    assert forced(2) is None
    assert Prefixes(None, torch.device("cpu")).at(0, lambda: sources) is None
    assert Prefixes([[], []], torch.device("cpu")).at(0, lambda: sources) is None


@given(st.integers(0, 1000), st.integers(0, 400))
def test_an_output_may_be_twice_its_source_and_32_but_not_above_256(
    source: int, minimum: int
) -> None:
    assert default_max_length(source, SearchRulesConfig()) == min(256, 2 * source + 32)
    assert default_max_length(source, SearchRulesConfig(max_length=7)) == 7
    assert default_max_length(source, SearchRulesConfig(min_length=minimum)) > minimum


def test_a_tree_that_is_too_large_is_refused_with_its_size() -> None:
    decoder, memory = EchoDecoder(0, words=10), random_memory(0, [2])
    with pytest.raises(ConfigError) as caught:
        Exhaustive(max_sequences=1000)(decoder, memory, Request([4]))
    assert "over 10 words and 4 steps would look at 10^4 sequences" in str(caught.value)
    assert "max_sequences = 1,000; lower max_length" in str(caught.value)
    # What is forced is not searched.
    assert Exhaustive(max_sequences=1000)(decoder, memory, Request([4], [[5]]))
