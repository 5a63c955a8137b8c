"""The number of processors that this process may use."""

import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
PROCESS_CGROUPS = Path("/proc/self/cgroup")


def available_processors() -> int:
    """Return the number of processors that this process may use, at least 1.

    This is the number of processors of the machine, limited by the CPU affinity of the process and
    by the CPU quota of its control groups. A fractional quota is rounded down. More threads than
    the quota allows are slow, because the operating system pauses all threads when the quota is
    used up.
    """
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    return max(1, min([count, *(int(quota) for quota in _quotas())]))


def _quotas() -> list[float]:
    """Return all CPU quotas that limit this process. Empty if it is not limited.

    A quota is a number of processors, for example 1.5. Linux sets quotas for control groups and
    for their parent groups.
    """
    try:
        lines = PROCESS_CGROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return []
    quotas: list[float | None] = []
    for line in lines:
        _, controllers, name = line.split(":", 2)
        # Version 2 has one hierarchy without a list of controllers, version 1 one per controller.
        if controllers == "":
            quotas += [_quota_v2(folder) for folder in _with_parents(CGROUPS, name)]
        elif "cpu" in controllers.split(","):
            quotas += [_quota_v1(folder) for folder in _with_parents(CGROUPS / "cpu", name)]
    return [quota for quota in quotas if quota is not None]


def _with_parents(root: Path, name: str) -> list[Path]:
    """Return the folder of a Linux control group and the folders of its parent groups.

    root: folder of all control groups
    name: name of the group, for example "/user.slice"
    """
    folder = root / name.lstrip("/")
    return [each for each in (folder, *folder.parents) if each.is_relative_to(root)]


def _quota_v2(folder: Path) -> float | None:
    return _ratio(*_read_words(folder / "cpu.max"))


def _quota_v1(folder: Path) -> float | None:
    return _ratio(
        *_read_words(folder / "cpu.cfs_quota_us"), *_read_words(folder / "cpu.cfs_period_us")
    )


def _read_words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split()
    except OSError:
        return []


def _ratio(*words: str) -> float | None:
    """Return quota / period: the CPU quota as a number of processors.

    Return None if there is no quota, which Linux writes as "max" or "-1".

    words: the quota and the period, in microseconds
    """
    if len(words) != 2 or not all(word.isdigit() for word in words) or int(words[1]) == 0:
        return None
    return int(words[0]) / int(words[1])
