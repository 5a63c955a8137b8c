"""Training on one and two ranks, interrupted and resumed on one or two ranks."""

from pathlib import Path

import pytest

from support.ranks import train_on_ranks
from support.tiny_runs import (
    TRANSFORMER,
    checkpoint_digests,
    read_events,
    temporary_files,
    tiny_config,
)
from support.trials import save_results

MODELS = {
    "recurrent": (),
    "transformer": TRANSFORMER,
    "averaging": ("training.averaging={kind='ema', decay=0.5}",),
}
CHANGES = {"1-1": (1, 1), "2-2": (2, 2), "1-2": (1, 2), "2-1": (2, 1)}
"""Number of ranks before and after the interruption."""
STEPS = (6, 12)
"""Steps before the interruption, and in total."""


def losses_of(folder: Path, steps: int) -> dict[tuple[str, int], float]:
    """Losses by kind of event and step, up to a step."""
    return {
        (event["event"], event["step"]): event["loss"]
        for event in read_events(folder)
        if "loss" in event and event["step"] <= steps
    }


@pytest.mark.long
@pytest.mark.parametrize("model", MODELS)
def test_a_run_resumed_on_other_ranks_equals_an_uninterrupted_run(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit-identical with the same number of ranks, else with the same losses in the same order."""
    monkeypatch.setattr("seqloom.training.progress.LOG_EVERY", 1)
    every = ("training.accumulate=2", "training.checkpoint_every=3", "training.evaluate_every=6")
    partial, whole = (
        tiny_config(*MODELS[model], *every, "training.precision=fp32", f"training.steps={steps}")
        for steps in STEPS
    )
    straight = {ranks: tmp_path / f"straight-{ranks}" for ranks in (1, 2)}
    for ranks, folder in straight.items():
        train_on_ranks(ranks, whole, folder)
    for name, (before, after) in CHANGES.items():
        folder = tmp_path / name
        train_on_ranks(before, partial, folder)
        train_on_ranks(after, whole, folder, resume=True)
        if before == after:
            assert checkpoint_digests(folder) == checkpoint_digests(straight[before])
        expected, actual = losses_of(straight[1], STEPS[1]), losses_of(folder, STEPS[1])
        assert list(actual) == list(expected)
        assert actual == pytest.approx(expected, abs=1e-5)
        assert temporary_files(folder) == []
    save_results(
        f"ranks.{model}",
        resumed_runs=len(CHANGES),
        identical_weights=2,
        equal_losses=len(CHANGES),
    )
