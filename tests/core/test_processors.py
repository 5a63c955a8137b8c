"""The number of processors respects the CPU affinity and the CPU quotas of control groups."""

import os
from pathlib import Path

import pytest

from seqloom.core import processors
from seqloom.core.processors import available_processors


@pytest.fixture(autouse=True)
def eight_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with 8 processors. Its control groups are below `tmp_path`."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    monkeypatch.setattr(processors, "CGROUPS", tmp_path)
    monkeypatch.setattr(processors, "PROCESS_CGROUPS", tmp_path / "cgroup")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_without_control_groups_the_affinity_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert available_processors() == 8
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {1, 5, 7})
    assert available_processors() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert available_processors() == (os.cpu_count() or 1)


@pytest.mark.parametrize(
    ("quota", "count"),
    [
        ("max 100000", 8),
        ("200000 100000", 2),
        ("250000 100000", 2),
        ("50000 100000", 1),
        ("9900000 100000", 8),
        ("", 8),
        ("100 0", 8),
    ],
)
def test_a_quota_of_version_2_is_rounded_down(tmp_path: Path, quota: str, count: int) -> None:
    write(tmp_path / "cgroup", "0::/user/job\n")
    write(tmp_path / "user" / "job" / "cpu.max", f"{quota}\n")
    assert available_processors() == count


def test_the_smallest_quota_of_a_group_and_its_parents_counts(tmp_path: Path) -> None:
    write(tmp_path / "cgroup", "0::/user/job\n")
    write(tmp_path / "cpu.max", "500000 100000\n")
    write(tmp_path / "user" / "cpu.max", "300000 100000\n")
    write(tmp_path / "user" / "job" / "cpu.max", "400000 100000\n")
    assert available_processors() == 3


@pytest.mark.parametrize(("quota", "count"), [("-1", 8), ("400000", 4)])
def test_a_quota_of_version_1(tmp_path: Path, quota: str, count: int) -> None:
    write(tmp_path / "cgroup", "3:cpuset:/\n2:cpu,cpuacct:/job\n0::/\n")
    write(tmp_path / "cpu" / "job" / "cpu.cfs_quota_us", f"{quota}\n")
    write(tmp_path / "cpu" / "job" / "cpu.cfs_period_us", "100000\n")
    assert available_processors() == count
