"""Reports a failure of one or several ranks.

The rank that caused an error prints it. If that rank is dead, one of the ranks that noticed this
prints an error. The ranks exchange their errors through the key-value store of the process group
(`World.store`), because collective operations fail if a rank is dead.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch.distributed as torch_distributed
from torch.distributed.distributed_c10d import Store

from seqloom.core.errors import PeerError, SeqloomError, TrainingError
from seqloom.core.launch import SECONDS_TO_PRINT
from seqloom.training.distributed import World

SECONDS_TO_REPORT = 3.0
"""Time that ranks have to report an error after a rank has noticed a failure."""


@contextmanager
def report_failures(world: World) -> Iterator[None]:
    """Context manager: if several ranks fail for the same reason, only one of them reports it.

    The other ranks raise a PeerError, which ends a process without a message. If a rank is dead or
    does not answer within the time limit, the reported error names that rank.
    """
    try:
        yield
    except SeqloomError as error:
        if world.store is None or world.size == 1:
            raise
        raised = _error_of_this_rank(world, world.store, error)
        raise _after_the_message(world.store, raised) from error
    except RuntimeError as error:
        if world.store is None or world.size == 1 or not _is_communication_failure(error):
            raise
        raised = _error_of_other_ranks(world, world.store, error)
        raise _after_the_message(world.store, raised) from error


def _after_the_message(store: Store, error: SeqloomError) -> SeqloomError:
    """Return an error. If it is a PeerError, first give another rank time to print its error.

    torchrun ends all ranks as soon as one of them has ended. So a rank that prints nothing must not
    end before the rank that prints. When that rank has printed, torchrun ends this rank. Without
    torchrun, the store usually ends with rank 0, and this rank then ends too.
    """
    if isinstance(error, PeerError):
        deadline = time.monotonic() + SECONDS_TO_PRINT
        while time.monotonic() < deadline and _is_alive(store):
            time.sleep(0.05)
    return error


def _is_alive(store: Store) -> bool:
    """Return True if the process that runs the store has not ended."""
    try:
        store.check([_error_key(0)])
    except RuntimeError:
        return False
    return True


def _is_communication_failure(error: RuntimeError) -> bool:
    # gloo raises plain RuntimeErrors. Their messages contain the name of a source file of gloo.
    return isinstance(error, torch_distributed.DistError) or "gloo" in str(error)


def _error_of_this_rank(world: World, store: Store, error: SeqloomError) -> SeqloomError:
    """Write an error of this rank to the store. Returns the error that this rank raises.

    If a lower rank has the same error, the lowest such rank prints it. This rank then raises a
    PeerError, which is not printed.
    """
    lower_keys = [_error_key(rank) for rank in range(world.rank)]

    def is_reported() -> bool:
        return any(
            store.check([key]) and store.get(key).decode() == str(error) for key in lower_keys
        )

    try:
        store.set(_error_key(world.rank), str(error))
        if not world.is_main and _wait_until(is_reported):
            return PeerError(str(error))
    except RuntimeError:
        pass  # the store ended with the process that ran it
    return error


def _error_of_other_ranks(world: World, store: Store, error: RuntimeError) -> SeqloomError:
    """Return the error that this rank raises after a failed collective operation.

    If another rank reports the failure, returns a PeerError, which is not printed. Otherwise
    returns a TrainingError that names the ranks that do not answer.
    """
    ranks = range(world.size)
    try:
        store.set(_waiting_key(world.rank), "")
        _wait_until(
            lambda: all(
                store.check([_waiting_key(rank)]) or store.check([_error_key(rank)])
                for rank in ranks
            )
        )
        if any(store.check([_error_key(rank)]) for rank in ranks):
            return PeerError(str(error))
        waiting = [rank for rank in ranks if store.check([_waiting_key(rank)])]
    except RuntimeError:  # the store ended with the process that ran it
        waiting = [world.rank]
    if world.rank != waiting[0]:
        return PeerError(str(error))
    missing = [rank for rank in ranks if rank not in waiting]
    named = f"rank{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing))}"
    return TrainingError(
        f"{named if missing else 'a rank'} of {world.size} died or did not answer within the time "
        f"limit (training.collective_timeout): {str(error).splitlines()[0]}. Check the process, its "
        "memory and the network. Continue from the last checkpoint with --resume"
    )


def _wait_until(is_true: Callable[[], bool]) -> bool:
    """Wait until a condition holds, at most SECONDS_TO_REPORT. Returns True if it holds."""
    deadline = time.monotonic() + SECONDS_TO_REPORT
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _error_key(rank: int) -> str:
    return f"seqloom/error/{rank}"


def _waiting_key(rank: int) -> str:
    return f"seqloom/waiting/{rank}"
