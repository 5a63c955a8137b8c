"""seqloom translate-files with several processes and with Ray, of which one is killed."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cli_runner import run_cli

pytestmark = [pytest.mark.slow, pytest.mark.long]

LINES = 20_000
TIMEOUT = 500


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two files of 12,345 and 7,655 short lines."""
    folder = tmp_path_factory.mktemp("in")
    draw = random.Random(5)
    lines = ["".join(draw.choices("abcd", k=draw.randint(1, 4))) for _ in range(LINES)]
    for name, part in (("a.txt", lines[:12_345]), ("b.txt", lines[12_345:])):
        (folder / name).write_text("".join(f"{line}\n" for line in part), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def expected(reverse: Path, inputs: Path) -> dict[str, str]:
    """The output of one process for each file."""
    return {path.name: run_cli("translate", reverse, path).stdout for path in inputs.iterdir()}


def start(reverse: Path, inputs: Path, output: Path, *options: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "seqloom", "translate-files", str(reverse)]
    command += [f"{inputs}/*.txt", "--output", str(output), *options]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def wait_for_blocks(output: Path, process: "subprocess.Popen[str]") -> None:
    """Wait until the first block is finished."""
    deadline = time.monotonic() + TIMEOUT
    while not list(output.glob(".blocks/*/0*")):
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() < deadline
        time.sleep(0.05)


def finish(process: "subprocess.Popen[str]") -> str:
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, errors
    return errors


def assert_outputs(output: Path, expected: dict[str, str]) -> None:
    for name, text in expected.items():
        assert (output / name).read_text(encoding="utf-8") == text
    assert {path.name for path in output.iterdir()} == {"translation.json", *expected}


def processes_of(parent: int, is_worker: Callable[[str], bool]) -> list[int]:
    """Return the descendants of a process whose command line is that of a worker."""
    children: dict[int, list[int]] = {}
    commands: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "stat").read_text().rpartition(")")[2].split()
            commands[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(int(status[1]), []).append(int(folder.name))
    found, waiting = [], [parent]
    while waiting:
        for child in children.get(waiting.pop(), []):
            waiting.append(child)
            if is_worker(commands[child]):
                found.append(child)
    return found


def test_killed_worker_process_loses_and_repeats_no_line(
    reverse: Path, inputs: Path, expected: dict[str, str], tmp_path: Path
) -> None:
    output = tmp_path / "out"
    process = start(reverse, inputs, output, "--workers", "2")
    wait_for_blocks(output, process)
    workers = processes_of(process.pid, lambda command: "spawn_main" in command)
    os.kill(workers[-1], signal.SIGKILL)
    finish(process)
    assert_outputs(output, expected)


def test_killed_shard_continues(
    reverse: Path, inputs: Path, expected: dict[str, str], tmp_path: Path
) -> None:
    output = tmp_path / "out"
    shards = [start(reverse, inputs, output, "--shard", f"{number}/2") for number in (1, 2)]
    wait_for_blocks(output, shards[0])
    shards[0].kill()
    shards[0].communicate()
    finish(shards[1])
    assert not (output / "a.txt").exists()
    finish(start(reverse, inputs, output, "--shard", "1/2"))
    assert_outputs(output, expected)


def test_error_in_a_ray_task_has_no_traceback(reverse: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    (tmp_path / "bad.txt").write_bytes(b"ab\n\xff\n")
    process = start(reverse, tmp_path, tmp_path / "out", "--ray", "local", "--workers", "1")
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 65
    message = errors[errors.index("error: ") :]
    assert message.startswith(f"error: {tmp_path / 'bad.txt'}:2: byte 1 of the line")
    assert "Traceback" not in message


def test_killed_ray_actor_loses_and_repeats_no_line(
    reverse: Path, inputs: Path, expected: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("ray")
    output = tmp_path / "out"
    process = start(reverse, inputs, output, "--ray", "local", "--workers", "2")
    wait_for_blocks(output, process)
    actors = processes_of(process.pid, lambda command: command.startswith("ray::MapWorker"))
    assert len(actors) == 2
    os.kill(actors[0], signal.SIGKILL)
    finish(process)
    assert_outputs(output, expected)
