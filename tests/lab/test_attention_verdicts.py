"""What would make the claims about the switches of attention right or wrong."""

from random import Random

import pytest
import torch
from made_up_numbers import results

from seqloom.lab.claims import alignment, context_uses, heads, positions, score_functions
from seqloom.lab.copiers import NAMES

LONG = NAMES[-1]


@pytest.mark.parametrize(
    ("identity", "learned", "rbf", "state"),
    [
        (0.6, 0.9, 0.62, "confirmed"),
        (0.9, 0.6, 0.92, "refuted"),  # the states as they are do better
        (0.6, 0.9, 0.3, "refuted"),  # RBF is another kind of thing
        (0.1, 0.9, 0.1, "refuted"),  # one that is worse than no attention
    ],
)
def test_scores_must_all_help_and_learned_ones_more(
    identity: float, learned: float, rbf: float, state: str
) -> None:
    made = {
        score_functions.NONE: {LONG: 0.2},
        score_functions.DOT: {LONG: identity},
        score_functions.SCALED: {LONG: identity},
        score_functions.RBF: {LONG: rbf},
        **{one: {LONG: learned} for one in score_functions.LEARNED},
    }
    assert score_functions.CLAIM.judge(results(made)).state == state


@pytest.mark.parametrize(("worst", "state"), [(0.5, "confirmed"), (0.1, "refuted")])
def test_every_use_of_the_context_must_help(worst: float, state: str) -> None:
    made = {context_uses.NONE: {LONG: 0.2}, **{use: {LONG: 0.9} for use in context_uses.USES}}
    made["new state"] = {LONG: worst}
    assert context_uses.CLAIM.judge(results(made)).state == state


@pytest.mark.parametrize(
    ("bare", "sorts", "one_hot", "chain", "state"),
    [
        (0.2, 0.9, 0.9, 0.9, "confirmed"),
        (0.2, 0.9, 0.1, 0.9, "refuted"),  # one kind of positions does harm
        (0.2, 0.1, 0.9, 0.9, "refuted"),  # it cannot sort either
        (0.9, 0.99, 0.95, 0.5, "refuted"),  # the chain is worse off
    ],
)
def test_without_positions_order_must_be_lost_and_nothing_else(
    bare: float, sorts: float, one_hot: float, chain: float, state: str
) -> None:
    made = {one: {"reverse": 0.99, "sort": 0.99} for one in positions.POSITIONS}
    made[positions.BARE] = {"reverse": bare, "sort": sorts}
    made[positions.TOLD[0]] = {"reverse": one_hot, "sort": 0.99}
    made[positions.CHAIN] = {"reverse": chain, "sort": 0.99}
    assert positions.CLAIM.judge(results(made)).state == state


@pytest.mark.parametrize(
    ("four", "eight", "state"),
    [(25.5, 25.8, "confirmed"), (25.5, 24.0, "refuted"), (24.0, 25.8, "refuted")],
)
def test_several_heads_must_be_ahead_of_one(four: float, eight: float, state: str) -> None:
    scores = dict(zip(heads.HEADS, (24.9, four, eight, 25.8, 25.4), strict=True))
    made = {one: {"score": value} for one, value in scores.items()}
    assert heads.CLAIM.judge(results(made)).state == state


@pytest.mark.parametrize(
    ("copy", "reverse", "swap", "state"),
    [
        (0.9, 0.9, 0.9, "confirmed"),
        (0.3, 0.9, 0.9, "refuted"),  # the diagonal is missed
        (0.9, 0.05, 0.9, "refuted"),  # the diagonal would do better
        (0.9, 0.9, 0.55, "refuted"),  # here, too
    ],
)
def test_tokens_must_be_looked_at_rightly_and_not_by_being_on_the_diagonal(
    copy: float, reverse: float, swap: float, state: str
) -> None:
    made = {
        alignment.COPY: {"right": copy, "diagonal": 1.0},
        alignment.REVERSE: {"right": reverse, "diagonal": 0.1},
        alignment.SWAP: {"right": swap, "diagonal": 0.6},
    }
    assert alignment.CLAIM.judge(results(made)).state == state


def test_a_zipped_word_is_made_of_all_strings() -> None:
    source, target = heads.zipped(Random(1))
    strings, words = source.split("-"), target.split()
    assert words == ["".join(column) for column in zip(*strings, strict=True)]
    assert (len(strings), len(words)) == (heads.STRINGS, heads.LONG)


def test_a_look_counts_as_right_at_the_true_place_alone() -> None:
    weights = torch.tensor([0.1, 0.7, 0.2])
    right, wrong = (alignment.look_at(weights, place, row=1) for place in (1, 2))
    assert (right["right"], wrong["right"]) == (1.0, 0.0)
    assert (right["diagonal"], wrong["diagonal"]) == (1.0, 0.0)
    assert right["weight at +0"] == wrong["weight at -1"] == pytest.approx(0.7)
    assert wrong["weight at +1"] == 0.0  # there is nothing behind the last token
