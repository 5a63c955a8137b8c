"""Learning-rate schedules and the schedule of scheduled sampling."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.schema.training import (
    ConstantConfig,
    CosineConfig,
    FreeRunningConfig,
    InverseSquareRootConfig,
    ScheduleConfig,
    ScheduledSamplingConfig,
    TeacherForcingConfig,
)
from seqloom.training.schedule import learning_rate_factor, target_share


def test_teacher_forcing_always_and_free_running_never_feeds_targets() -> None:
    assert {target_share(TeacherForcingConfig(), step) for step in range(1, 99)} == {1.0}
    assert {target_share(FreeRunningConfig(), step) for step in range(1, 99)} == {0.0}


@given(
    shape=st.sampled_from(["linear", "exponential", "inverse-sigmoid"]),
    start=st.floats(0, 1),
    end=st.floats(0, 1),
    steps=st.integers(2, 50),
)
def test_the_target_share_moves_monotonically_from_start_to_end(
    shape: str, start: float, end: float, steps: int
) -> None:
    config = ScheduledSamplingConfig.model_validate(
        {"shape": shape, "start": start, "end": end, "steps": steps}
    )
    shares = [target_share(config, step) for step in range(1, steps + 10)]
    assert shares[0] == pytest.approx(start)
    assert shares[steps - 1 :] == pytest.approx([end] * 10)
    assert all(0 <= share <= 1 for share in shares)
    changes = [(after - before) * (end - start) for before, after in pairwise(shares)]
    assert min(changes) >= -1e-12


SCHEDULES = [
    ConstantConfig(warmup=0),
    ConstantConfig(warmup=7),
    InverseSquareRootConfig(warmup=7),
    InverseSquareRootConfig(warmup=1),
    CosineConfig(warmup=7, floor=0.1),
    CosineConfig(warmup=0),
]


@pytest.mark.parametrize("config", SCHEDULES, ids=lambda config: f"{config.kind}-{config.warmup}")
def test_the_learning_rate_warms_up_linearly_and_then_never_rises(config: ScheduleConfig) -> None:
    steps = 60
    rates = [learning_rate_factor(config, step, steps) for step in range(1, steps + 1)]
    warmup = config.warmup or 0
    assert rates[:warmup] == pytest.approx([step / warmup for step in range(1, warmup + 1)])
    assert max(rates) == pytest.approx(1.0, abs=1e-2)
    after = rates[max(warmup - 1, 0) :]
    assert after == sorted(after, reverse=True)
    if not isinstance(config, InverseSquareRootConfig) or warmup > 1:
        assert max(abs(a - b) for a, b in pairwise(after)) < 0.1


def test_the_default_warm_up_is_a_tenth_of_the_steps_and_at_most_4000() -> None:
    schedule = InverseSquareRootConfig()
    for steps, warmup in ((5, 1), (100, 10), (4_000, 400), (1_000_000, 4_000)):
        rates = {
            step: learning_rate_factor(schedule, step, steps)
            for step in (warmup, warmup + 1, steps)
        }
        assert rates[warmup] == 1.0
        assert rates[warmup + 1] < 1.0
        assert learning_rate_factor(schedule, 1, steps) == pytest.approx(1 / warmup)


def test_schedules_end_at_their_final_rate() -> None:
    assert learning_rate_factor(ConstantConfig(warmup=5), 1000, 1000) == 1.0
    assert learning_rate_factor(InverseSquareRootConfig(warmup=10), 1000, 1000) == pytest.approx(
        0.1
    )
    assert learning_rate_factor(CosineConfig(warmup=10, floor=0.2), 1000, 1000) == pytest.approx(
        0.2
    )
    assert learning_rate_factor(CosineConfig(warmup=10, floor=0.2), 2000, 1000) == pytest.approx(
        0.2
    )
    assert learning_rate_factor(CosineConfig(warmup=0), 500, 1000) == pytest.approx(0.5)
