"""How this process was started: alone, or by torchrun as one of several ranks.

torchrun describes a rank in environment variables. Reading them needs no torch.
"""

import os

NO_ID = "none"
"""The job id that torchrun sets if its user gives none."""
SECONDS_TO_PRINT = 20.0
"""Time that a rank has to print its error before the ranks without a message end. It is long, because a
machine may be busy. torchrun ends these ranks earlier, as soon as the rank that prints has ended."""


def is_rank() -> bool:
    """True if torchrun, or another launcher, started this process as a rank of a job."""
    return "WORLD_SIZE" in os.environ


def rank() -> int:
    """Return the number of this process in the job, from 0. It is 0 if the process runs alone."""
    return int(os.environ.get("RANK", "0"))


def is_main_rank() -> bool:
    """True on rank 0 and in a process that runs alone."""
    return rank() == 0


def local_rank() -> int:
    """Return the number of this process on its machine, from 0."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def restarts() -> int:
    """Return how often torchrun has restarted the job after a failure (`--max-restarts`)."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def job_name() -> str | None:
    """Return a name of the job that stays the same when torchrun restarts it.

    This is the job id of torchrun or, if there is none, the process id of torchrun. Returns None
    if torchrun did not start this process.
    """
    job = os.environ.get("TORCHELASTIC_RUN_ID")
    return f"process {os.getppid()}" if job == NO_ID else job
