"""What would make the claim about the bottleneck right or wrong."""

from made_up_numbers import results

from seqloom.lab.claims.bottleneck import CLAIM, LOOKING, PLAIN
from seqloom.lab.copiers import LENGTHS, NAMES


def falling(by: float) -> dict[str, float]:
    """Accuracy that falls evenly, by this much in all."""
    return {name: 0.99 - by * place / (len(LENGTHS) - 1) for place, name in enumerate(NAMES)}


def test_it_is_right_if_the_lead_of_attention_grows_with_length() -> None:
    made = {PLAIN: falling(0.6), LOOKING: falling(0.05)}
    assert CLAIM.judge(results(made)).state == "confirmed"


def test_it_is_wrong_if_length_costs_nothing_without_attention() -> None:
    made = {PLAIN: falling(-0.005), LOOKING: falling(0.005)}
    assert CLAIM.judge(results(made)).state == "refuted"


def test_one_seed_that_disagrees_leaves_it_open() -> None:
    right = results({PLAIN: falling(0.6), LOOKING: falling(0.05)}, seeds=4).measurements
    wrong = results({PLAIN: falling(0.05), LOOKING: falling(0.6)}, seeds=1).measurements
    mixed = type(results({}))([*wrong, *(one for one in right if one.seed > 1)])
    assert CLAIM.judge(mixed).state == "undecided"
