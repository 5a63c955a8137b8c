"""What would make the claim about √d right or wrong."""

from made_up_numbers import results

from seqloom.lab.claims.scale import CLAIM


def slopes(narrow: float, wide: float, matched: float) -> dict[str, float]:
    return {"slope at 4": narrow, "slope at 1024": wide, "matched at 1024": matched}


def test_it_is_right_if_only_the_root_keeps_both_gradient_and_freedom() -> None:
    made = {"1": slopes(0.8, 0.05, 1.0), "√d": slopes(0.9, 0.9, 1.0), "d": slopes(1.0, 1.0, 0.15)}
    assert CLAIM.judge(results(made)).state == "confirmed"


def test_it_is_wrong_if_nothing_saturates() -> None:
    made = {"1": slopes(0.8, 0.8, 1.0), "√d": slopes(0.9, 0.9, 1.0), "d": slopes(1.0, 1.0, 0.15)}
    assert CLAIM.judge(results(made)).state == "refuted"


def test_it_is_wrong_if_a_key_can_win_although_scores_are_capped() -> None:
    made = {"1": slopes(0.8, 0.05, 1.0), "√d": slopes(0.9, 0.9, 1.0), "d": slopes(1.0, 1.0, 0.9)}
    assert CLAIM.judge(results(made)).state == "refuted"
