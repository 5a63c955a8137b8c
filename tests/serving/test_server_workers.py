"""seqloom serve --workers: several processes on one port."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import seqloom
from support.cli_runner import run_cli
from support.free_ports import free_port
from support.server_process import ServerProcess, run_serve_command, start_server, wait_until

pytestmark = pytest.mark.slow

TEXTS = ["abcd", "dcba", "ab", "c"]


@pytest.fixture(scope="module")
def workers(runs: dict[str, Path]) -> Iterator[tuple[ServerProcess, int]]:
    """A server with two workers, and its metrics port."""
    port = free_port(count=2)
    server = start_server([runs["reverser"]], "--workers", "2", "--metrics-port", str(port))
    yield server, port
    assert server.stop() == 0
    wait_until(lambda: "stopped" in server.log)


def translate(server: ServerProcess, text: str) -> str:
    """Translate a text with a new connection, which either worker may accept."""
    response = httpx.post(f"{server.url}/api/translate", json={"texts": [text]}, timeout=60)
    assert response.status_code == 200, response.text
    translation: str = response.json()["translations"][0]["text"]
    return translation


def count_requests(port: int) -> float:
    lines = httpx.get(f"http://127.0.0.1:{port}/metrics").text.splitlines()
    values = [line.split()[-1] for line in lines if line.startswith("seqloom_requests_total{")]
    return sum(map(float, values))


def test_workers_share_a_port_and_give_the_answers_of_one_process(
    workers: tuple[ServerProcess, int], runs: dict[str, Path]
) -> None:
    server, port = workers
    expected = [each.text for each in seqloom.load(runs["reverser"]).translate(TEXTS)]
    before = [count_requests(port), count_requests(port + 1)]
    for _ in range(8):
        assert [translate(server, text) for text in TEXTS] == expected
    counts = [count_requests(port) - before[0], count_requests(port + 1) - before[1]]
    assert sum(counts) == 32  # the metrics of the workers add up
    assert min(counts) > 0
    assert httpx.get(f"{server.url}/ready").status_code == 200


def test_a_file_translated_by_one_worker_can_be_downloaded_from_another(
    runs: dict[str, Path],
) -> None:
    server = start_server([runs["reverser"]], "--workers", "2", "--languages", "la:it")
    form = {"source": "la", "target": "it"}
    statuses = []
    for _ in range(12):  # each request has a new connection
        response = httpx.post(
            f"{server.url}/translate_file", data=form, files={"file": ("a.txt", b"ab")}, timeout=60
        )
        url = response.json()["translatedFileUrl"]
        statuses += [httpx.get(url).status_code for _ in range(3)]
    assert server.stop() == 0
    assert statuses == [200, 404, 404] * 12


@pytest.mark.long
def test_killed_worker_is_replaced(workers: tuple[ServerProcess, int]) -> None:
    server, _ = workers
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    before = children.read_text().split()
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in before}
    killed = next(pid for pid, command in commands.items() if "spawn_main" in command)
    os.kill(int(killed), signal.SIGKILL)
    wait_until(lambda: any("ended with exit code -9" in line for line in server.log), 30)
    # The remaining worker answers while the new one loads its runs.
    assert translate(server, "ab")
    wait_until(lambda: len(children.read_text().split()) == len(before), 30)
    assert [translate(server, text) for text in TEXTS * 4]


@pytest.mark.long
def test_worker_that_cannot_start_ends_the_server(runs: dict[str, Path], tmp_path: Path) -> None:
    result = run_serve_command(tmp_path, "--workers", "2", "--port", "0")
    assert result.returncode == 66
    assert result.stderr.count("error:") >= 1


def test_too_high_metrics_port_is_a_usage_error(tmp_path: Path) -> None:
    result = run_cli("serve", tmp_path, "--port", 0, "--workers", 2, "--metrics-port", 65535)
    assert result.exit_code == 2
    assert "Choose a port of at most 65534" in result.error


def test_metrics_port_0_selects_a_free_port_and_prints_it(runs: dict[str, Path]) -> None:
    server = start_server([runs["reverser"]], "--metrics-port", "0")
    try:
        [address] = [line.removeprefix("metrics: ") for line in server.log if "metrics: " in line]
        assert "seqloom_requests_total" in httpx.get(address).text
    finally:
        server.stop()


def test_several_workers_do_not_allow_metrics_port_0(tmp_path: Path) -> None:
    result = run_cli("serve", tmp_path, "--port", 0, "--workers", 2, "--metrics-port", 0)
    assert result.exit_code == 2
    assert "Choose a port from 1 to 65534" in result.error
