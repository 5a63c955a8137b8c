"""What would make the claims about data, noise and beams right or wrong."""

import pytest
from made_up_numbers import results

from seqloom.lab.claims import beam_width, embedding_noise, related_languages
from seqloom.lab.claims.related_languages import ALL, ASKED, directions


@pytest.mark.parametrize(
    ("helped", "zero", "state"),
    [(0.8, 0.9, "confirmed"), (0.4, 0.9, "refuted"), (0.8, 0.1, "refuted")],
)
def test_a_related_pair_must_help_and_a_pair_without_data_must_work(
    helped: float, zero: float, state: str
) -> None:
    shares = {
        related_languages.ALONE: 0.5,
        related_languages.HELPED: helped,
        related_languages.EVERY: 0.95,
        related_languages.ZERO: zero,
    }
    made = {one: {"right words": share} for one, share in shares.items()}
    assert related_languages.CLAIM.judge(results(made)).state == state


def test_only_the_direction_that_is_asked_for_is_held_out() -> None:
    """The way back is trained on, and so is each of its languages with every other one."""
    assert set(ALL) - set(directions(related_languages.ZERO)) == {ASKED}
    assert len(ALL) == 12


@pytest.mark.parametrize(
    ("seen", "unseen", "state"),
    [(3.0, 60.0, "confirmed"), (3.0, 110.0, "refuted"), (1.0, 90.0, "refuted")],
)
def test_noise_must_narrow_the_gap_and_help_unseen_sentences(
    seen: float, unseen: float, state: str
) -> None:
    made = {
        embedding_noise.WITHOUT: {embedding_noise.SEEN: 1.5, embedding_noise.UNSEEN: 100.0},
        embedding_noise.SOME: {embedding_noise.SEEN: seen, embedding_noise.UNSEEN: unseen},
    }
    assert embedding_noise.CLAIM.judge(results(made)).state == state


@pytest.mark.parametrize(
    ("scores", "likely", "state"),
    [
        ((33.0, 34.5, 34.8), (-1.0, -0.9, -0.8), "confirmed"),
        ((33.0, 32.0, 31.8), (-1.0, -0.9, -0.8), "refuted"),  # a beam does harm
        ((33.0, 33.5, 36.0), (-1.0, -0.9, -0.8), "refuted"),  # most of it comes later
        ((33.0, 34.5, 34.8), (-1.0, -0.9, -0.95), "refuted"),  # wider, and less likely
    ],
)
def test_a_beam_must_find_likelier_and_better_outputs_most_of_it_early(
    scores: tuple[float, ...], likely: tuple[float, ...], state: str
) -> None:
    widths = (beam_width.GREEDY, beam_width.NARROW, beam_width.WIDE)
    made = {
        one: {beam_width.GOOD: score, beam_width.LIKELY: chance}
        for one, score, chance in zip(widths, scores, likely, strict=True)
    }
    assert beam_width.CLAIM.judge(results(made)).state == state
