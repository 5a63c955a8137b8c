"""`torchrun`: the same losses on any number of ranks, killed and stopped ranks, errors."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from seqloom.config.loading.toml import format_recipe
from seqloom.config.schema.recipe import RunConfig
from support.free_ports import free_port
from support.ranks import train_on_ranks
from support.tiny_runs import read_events, temporary_files, tiny_config

LIMIT = 240.0
"""Seconds after which a job is killed. This is far more than it needs on a busy machine."""
FIFTY_STEPS = (
    "training.steps=50",
    "training.evaluate_every=25",
    "training.checkpoint_every=10",
    "training.accumulate=4",
    "training.precision=fp32",
)


def losses_of(folder: Path) -> dict[tuple[str, int], float]:
    """Losses by kind of event and step. Progress reports are in the log every 20 steps."""
    return {
        (event["event"], event["step"]): event["loss"]
        for event in read_events(folder)
        if "loss" in event
    }


def assert_equal_losses(first: Path, second: Path) -> None:
    expected, actual = losses_of(first), losses_of(second)
    assert expected.keys() == actual.keys()
    assert actual == pytest.approx(expected, abs=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 4])
def test_losses_of_fifty_steps_do_not_depend_on_the_number_of_ranks(
    tmp_path: Path, ranks: int, log_every_step: None
) -> None:
    """With dropout, so random draws agree, too."""
    config = tiny_config(*FIFTY_STEPS)
    train_on_ranks(1, config, tmp_path / "one")
    train_on_ranks(ranks, config, tmp_path / "several")
    assert len(losses_of(tmp_path / "one")) == 50 + 2
    assert_equal_losses(tmp_path / "one", tmp_path / "several")


@pytest.mark.long
def test_a_run_resumed_on_1_2_4_and_1_ranks_has_the_losses_of_one_rank(
    tmp_path: Path, log_every_step: None
) -> None:
    config = tiny_config(*FIFTY_STEPS)
    train_on_ranks(1, config, tmp_path / "one")
    for steps, ranks in ((10, 1), (20, 2), (40, 4), (50, 1)):
        part = tiny_config(*FIFTY_STEPS, f"training.steps={steps}")
        train_on_ranks(ranks, part, tmp_path / "resumed", resume=steps > 10)
    expected = losses_of(tmp_path / "one")
    # Each part ends with an evaluation, which the uninterrupted run does not have.
    actual = {key: loss for key, loss in losses_of(tmp_path / "resumed").items() if key in expected}
    assert actual == pytest.approx(expected, abs=1e-5)


@pytest.fixture
def log_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqloom.training.progress.LOG_EVERY", 1)


@contextmanager
def torchrun(
    config: RunConfig, folder: Path, *options: str, restarts: int = 0
) -> Iterator[subprocess.Popen[str]]:
    """Start `torchrun … -m -- seqloom train RECIPE --run FOLDER` with two processes."""
    recipe = folder.with_suffix(".toml")
    recipe.write_text(format_recipe(config), encoding="utf-8")
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
        *("--master-port", str(free_port()), "--max-restarts", str(restarts)),
        *("-m", "--", "seqloom", "train", str(recipe), "--run", str(folder), *options),
    ]
    job = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "SEQLOOM_DEVICE": "cpu"},
    )
    try:
        yield job
    finally:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.communicate()


def process_of_rank(job: subprocess.Popen[str], rank: int) -> int:
    """The process number of a rank."""
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    environments = {
        int(child): Path(f"/proc/{child}/environ").read_bytes().split(b"\0") for child in children
    }
    return next(child for child, names in environments.items() if f"RANK={rank}".encode() in names)


def wait_for_checkpoint(folder: Path) -> None:
    """Wait until a job has written a checkpoint."""
    deadline = time.monotonic() + LIMIT
    while not list(folder.glob("checkpoints/step-*")):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def slow_config(steps: int, *changes: str) -> RunConfig:
    """A training of many steps, so that there is time to disturb it."""
    return tiny_config(
        f"training.steps={steps}",
        "training.evaluate_every=200",
        "training.checkpoint_every=20",
        "training.accumulate=2",
        "training.precision=fp32",
        *changes,
    )


@pytest.mark.long
def test_a_killed_rank_restarts_the_job_which_ends_with_the_same_losses(tmp_path: Path) -> None:
    config = slow_config(200)
    train_on_ranks(1, config, tmp_path / "one")
    folder = tmp_path / "killed"
    with torchrun(config, folder, restarts=1) as job:
        wait_for_checkpoint(folder)
        os.kill(process_of_rank(job, 1), signal.SIGKILL)
        output, _ = job.communicate(timeout=LIMIT)
    assert job.returncode == 0, output
    assert "resuming at step" in output
    assert output.count("Training is complete at step 200") == 1, "only rank 0 prints"
    assert_equal_losses(tmp_path / "one", folder)
    assert temporary_files(folder) == []


@pytest.mark.long
def test_a_stopped_rank_ends_the_job_with_a_message_within_the_time_limit(tmp_path: Path) -> None:
    folder = tmp_path / "stopped"
    config = slow_config(100_000, "training.collective_timeout=5")
    with torchrun(config, folder) as job:
        wait_for_checkpoint(folder)
        os.kill(process_of_rank(job, 1), signal.SIGSTOP)
        start = time.monotonic()
        output, _ = job.communicate(timeout=LIMIT)
        seconds = time.monotonic() - start
    assert job.returncode != 0
    message = r"rank 1 of 2 died or did not answer within the time limit .*collective_timeout"
    assert len(re.findall(message, output)) == 1, output
    assert seconds < 60, "5 s for the exchange, then torchrun waits up to 30 s for the ranks to end"


@pytest.mark.long
def test_an_error_is_printed_once_and_does_not_resume_a_run_of_another_job(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train_on_ranks(1, tiny_config("training.accumulate=2"), folder)
    before = read_events(folder)
    with torchrun(tiny_config(), folder, restarts=1) as job:
        output, _ = job.communicate(timeout=LIMIT)
    assert job.returncode != 0
    # The first start and the restart print one message each.
    assert output.count("already contains a run") == 2
    assert read_events(folder) == before
