"""What would make the claims about untrained parts right or wrong."""

from pathlib import Path

import pytest
from made_up_numbers import results

from seqloom.lab.claims import cost, gradient_path, hard_attention, parallel
from seqloom.lab.laboratory import Place, carry_out, jobs_of, results_of
from seqloom.lab.registry import find_claim

NONE = {"queries": 0.0, "keys": 0.0, "values": 0.0, "found": 0.0}
PICKED = {**NONE, "values": 3.0, "found": 1.0}
SOFT = {"queries": 1.0, "keys": 1.0, "values": 1.0, "found": 1.0}


@pytest.mark.parametrize(
    ("picked", "soft", "state"),
    [
        (PICKED, SOFT, "confirmed"),
        ({**PICKED, "keys": 0.1}, SOFT, "refuted"),  # a pick that teaches its keys
        (PICKED, {**SOFT, "queries": 0.0}, "refuted"),  # a mixture that teaches nobody
        ({**PICKED, "values": 0.0}, SOFT, "refuted"),  # what was picked gets no gradient
    ],
)
def test_picking_gives_no_gradient_and_mixing_does(
    picked: dict[str, float], soft: dict[str, float], state: str
) -> None:
    made = {
        hard_attention.EXACT: NONE,
        hard_attention.NEAREST: picked,
        hard_attention.BEST: picked,
        hard_attention.SOFT: soft,
    }
    assert hard_attention.CLAIM.judge(results(made)).state == state


def fading(power: float) -> dict[str, float]:
    """A gradient that falls with this power of the length."""
    lengths = zip(gradient_path.NAMES, gradient_path.LENGTHS, strict=True)
    return {name: 1 / length**power for name, length in lengths}


@pytest.mark.parametrize(
    ("chain", "looking", "state"), [(6, 1, "confirmed"), (1, 1, "refuted"), (6, 6, "refuted")]
)
def test_the_chain_must_fade_and_attention_must_not(
    chain: float, looking: float, state: str
) -> None:
    made = {
        gradient_path.CHAIN: fading(chain),
        gradient_path.LOOKING: fading(looking),
        gradient_path.TRANSFORMER: fading(1),
    }
    assert gradient_path.CLAIM.judge(results(made)).state == state


@pytest.mark.parametrize(
    ("attention", "chain", "state"),
    [(2.0, 1.0, "confirmed"), (1.0, 1.0, "refuted"), (2.0, 2.0, "refuted")],
)
def test_attention_must_grow_with_the_square_and_the_chain_with_the_length(
    attention: float, chain: float, state: str
) -> None:
    made = {cost.ATTENTION: {"power": attention}, cost.CHAIN: {"power": chain}}
    assert cost.CLAIM.judge(results(made)).state == state


@pytest.mark.parametrize(
    ("chain", "transformer", "state"),
    [(15.0, 1.0, "confirmed"), (1.0, 1.0, "refuted"), (15.0, 15.0, "refuted")],
)
def test_only_the_chain_may_need_more_operations_for_longer_sentences(
    chain: float, transformer: float, state: str
) -> None:
    made = {parallel.CHAIN: {"growth": chain}, parallel.TRANSFORMER: {"growth": transformer}}
    assert parallel.CLAIM.judge(results(made)).state == state


@pytest.mark.parametrize("name", ["hard-attention", "cost", "scale"])
def test_what_is_a_law_holds_in_the_smallest_experiment(name: str, tmp_path: Path) -> None:
    """Nothing is learned and hardly anything is noise, so size decides nothing."""
    place = Place(tmp_path, name, "tiny")
    carry_out(jobs_of(place, range(1, 4)), 1, lambda job, words, share: None)
    assert find_claim(name).judge(results_of(place, range(1, 4))).state == "confirmed"
