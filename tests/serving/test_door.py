"""A service is there before its runs are loaded: the page comes, the rest waits or comes again."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse

from calling_server import PROGRAM, SOURCE, called, refusal
from seqloom.serving import door as door_module
from seqloom.serving.door import Door
from seqloom.serving.files import file_at
from seqloom.serving.gate import Gate
from seqloom.serving.guard import Guard
from seqloom.serving.limits import Limits

BEHIND = PlainTextResponse("from behind the door")


@pytest.fixture
def reverser(runs: dict[str, Path]) -> Path:
    return runs["reverser"]


def answers(ask: Callable[[httpx.AsyncClient, Door], Any], gate: Gate | None = None) -> Any:
    """What is found out soon with a client before a closed door and its guard."""

    async def work() -> Any:
        limits, door = Limits(), Door()
        guard = Guard(door, limits, lambda *told: None, gate or Gate(limits), door.worked)
        transport = httpx.ASGITransport(app=guard)
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://here") as client,
            asyncio.timeout(door_module.PATIENCE / 2),
        ):
            return await ask(client, door)

    return asyncio.run(work())


@pytest.mark.parametrize("path", ["/", "/docs", "/static/main.js", "/static/shared/dom.js"])
def test_the_page_comes_at_once_and_safely(path: str) -> None:
    response = answers(lambda client, door: client.get(path))
    assert response.status_code == 200
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]
    again = answers(
        lambda client, door: client.get(path, headers={"If-None-Match": response.headers["ETag"]})
    )
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("name", ["../door.py", "%2e%2e/door.py", "main.py", "a" * 300 + ".js"])
def test_there_are_no_files_but_the_pages(name: str) -> None:
    assert file_at(f"/static/{name}", None) is None


def test_the_process_lives_and_is_not_ready() -> None:
    health = answers(lambda client, door: client.get("/health"))
    assert (health.status_code, health.json()) == (200, {"status": "starting"})
    ready = answers(lambda client, door: client.get("/ready"))
    status, kind, sentence = refusal(ready)
    assert (status, kind) == (503, "starting")
    assert "try again in a few seconds" in sentence
    assert ready.headers["Retry-After"] == "2"


def test_who_wants_work_done_is_asked_to_come_again() -> None:
    response = answers(lambda client, door: client.post("/api/translate", json={"texts": ["a"]}))
    assert refusal(response)[:2] == (503, "starting")


@pytest.mark.parametrize("path", ["/api/runs", "/static/nothing.js"])
def test_who_looks_something_up_waits_for_the_application(path: str) -> None:
    async def ask(client: httpx.AsyncClient, door: Door) -> httpx.Response:
        asking = asyncio.ensure_future(client.get(path))
        await asyncio.sleep(0.05)
        assert not asking.done()
        door.open(BEHIND, {})
        return await asking

    assert answers(ask).text == "from behind the door"


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(client: httpx.AsyncClient, door: Door) -> httpx.Response:
        monkeypatch.setattr(door_module, "PATIENCE", 0.05)
        return await client.get("/api/runs")

    assert refusal(answers(ask))[:2] == (503, "starting")


def test_an_open_door_is_not_noticed() -> None:
    async def ask(client: httpx.AsyncClient, door: Door) -> list[str]:
        door.open(BEHIND, {})
        return [(await client.get(path)).text for path in ("/", "/ready", "/api/runs")]

    assert answers(ask) == ["from behind the door"] * 3


def test_work_for_an_open_door_is_refused_before_it_when_there_is_too_much() -> None:
    async def ask(client: httpx.AsyncClient, door: Door) -> list[httpx.Response]:
        door.open(BEHIND, {"/api/translate": None})
        return [await client.post(path) for path in ("/api/translate", "/api/other")]

    full = Gate(Limits(in_flight=1, queue=0))
    with full.place():
        refused, other = answers(ask, full)
    assert refusal(refused)[:2] == (503, "busy")
    assert other.text == "from behind the door"


def listening(*runs: Path) -> tuple[subprocess.Popen[str], str]:
    """`seqloom serve` in the moment at which its page can be fetched."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "serve", *map(str, runs), "--port", "0"],
        env=os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.fullmatch(r"(http://\S+): loading (.+) …\n", line)
    assert found is not None, line
    assert found[2] == ", ".join(run.name for run in runs)
    return process, found[1]


def test_a_real_server_shows_its_page_while_it_loads(reverser: Path) -> None:
    process, url = listening(reverser)
    try:
        assert httpx.get(url + "/health").json() == {"status": "starting"}
        assert "<title>seqloom</title>" in httpx.get(url + "/").text
        assert httpx.get(url + "/api/runs", timeout=30).json()["runs"][0]["name"] == reverser.name
        assert httpx.get(url + "/ready").json() == {"status": "ok"}
    finally:
        process.terminate()
        process.communicate(timeout=10)
    assert process.returncode == 0


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_it_loads_ends_it_at_once(reverser: Path, sent: signal.Signals) -> None:
    process, _ = listening(reverser)
    process.send_signal(sent)
    _, told = process.communicate(timeout=5)
    assert (process.returncode, told) == (0, "stopped\n")


def test_a_run_that_cannot_be_loaded_ends_it_with_the_reason(
    reverser: Path, tmp_path: Path
) -> None:
    broken = Path(shutil.copytree(reverser, tmp_path / "broken"))
    for weights in broken.rglob("model.safetensors"):
        weights.write_bytes(b"")
    done = called(reverser, broken, "--port", "0")
    first, *others = done.stderr.splitlines()
    assert done.returncode == 74  # as for every damaged file
    assert first.endswith(f"loading {reverser.name}, broken …")
    assert str(broken) in " ".join(others)
    assert not any(word in done.stderr for word in ("open http", "Traceback", "stopped"))
