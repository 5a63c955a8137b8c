"""The server serves the page while models load; other requests wait or get 503."""

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

from seqloom.serving.api.static_files import static_response
from seqloom.serving.http.options import HttpOptions
from seqloom.serving.server import startup
from seqloom.serving.server.admission import AdmissionControl
from seqloom.serving.server.limits import Limits
from seqloom.serving.server.middleware import RequestMiddleware
from seqloom.serving.server.startup import StartupApp
from support.async_runner import run_async, run_other_tasks
from support.server_process import PROGRAM, error_of, run_serve_command
from support.source_folder import SOURCE

LOADED_APP = PlainTextResponse("from the loaded application")


def with_client(
    use: Callable[[httpx.AsyncClient, StartupApp], Any], admission: AdmissionControl | None = None
) -> Any:
    """Run `use` with a client of a startup application behind the middleware."""

    async def work() -> Any:
        limits, app = Limits(), StartupApp()
        middleware = RequestMiddleware(
            app,
            limits=limits,
            admission=admission or AdmissionControl(limits),
            observe=lambda *request: None,
            model_routes=app.model_routes,
            options=HttpOptions(),
        )
        transport = httpx.ASGITransport(app=middleware)
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
            asyncio.timeout(startup.MAX_WAIT_SECONDS / 2),
        ):
            return await use(client, app)

    return run_async(work())


@pytest.mark.parametrize("path", ["/", "/docs", "/static/main.js", "/static/components/dom.js"])
def test_page_files_are_served_while_loading_with_security_headers(path: str) -> None:
    response = with_client(lambda client, app: client.get(path))
    assert response.status_code == 200
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]
    headers = {"If-None-Match": response.headers["ETag"]}
    again = with_client(lambda client, app: client.get(path, headers=headers))
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "name",
    [
        "../server/startup.py",
        "../api/static_files.py",
        "%2e%2e/server/startup.py",
        "main.py",
        "components/../pages.py",
        "components/../../serving/static/main.js",
        "components",
        "a" * 300 + ".js",
    ],
)
def test_files_outside_the_static_folder_are_not_served(name: str) -> None:
    assert static_response(f"/static/{name}", None) is None


def test_health_is_ok_and_ready_is_503_while_loading() -> None:
    health = with_client(lambda client, app: client.get("/health"))
    assert (health.status_code, health.json()) == (200, {"status": "starting"})
    ready = with_client(lambda client, app: client.get("/ready"))
    status, kind, message = error_of(ready)
    assert (status, kind) == (503, "starting")
    assert "try again in a few seconds" in message
    assert ready.headers["Retry-After"] == "2"


def test_post_requests_get_503_while_loading() -> None:
    response = with_client(lambda client, app: client.post("/api/translate", json={"texts": ["a"]}))
    assert error_of(response)[:2] == (503, "starting")


@pytest.mark.parametrize("path", ["/api/runs", "/static/nothing.js"])
def test_get_requests_wait_for_the_application(path: str) -> None:
    async def use(client: httpx.AsyncClient, app: StartupApp) -> httpx.Response:
        request = asyncio.ensure_future(client.get(path))
        await run_other_tasks()
        assert not request.done()
        app.set_app(LOADED_APP, {})
        return await request

    assert with_client(use).text == "from the loaded application"


def test_get_requests_do_not_wait_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(client: httpx.AsyncClient, app: StartupApp) -> httpx.Response:
        monkeypatch.setattr(startup, "MAX_WAIT_SECONDS", 0.05)
        return await client.get("/api/runs")

    assert error_of(with_client(use))[:2] == (503, "starting")


def test_all_requests_are_forwarded_after_loading() -> None:
    async def use(client: httpx.AsyncClient, app: StartupApp) -> list[str]:
        app.set_app(LOADED_APP, {})
        return [(await client.get(path)).text for path in ("/", "/ready", "/api/runs")]

    assert with_client(use) == ["from the loaded application"] * 3


def test_only_model_routes_are_rejected_under_overload() -> None:
    async def use(client: httpx.AsyncClient, app: StartupApp) -> list[httpx.Response]:
        app.set_app(LOADED_APP, {"/api/translate": None})
        return [await client.post(path) for path in ("/api/translate", "/api/other")]

    admission = AdmissionControl(Limits(in_flight=1, queue=0))
    with admission.reserve_slot():
        rejected, other = with_client(use, admission)
    assert error_of(rejected)[:2] == (503, "busy")
    assert other.text == "from the loaded application"


@pytest.fixture
def reverser(runs: dict[str, Path]) -> Path:
    return runs["reverser"]


def start_loading(*runs: Path) -> tuple[subprocess.Popen[str], str]:
    """A server process that listens and still loads, and its URL."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "serve", *map(str, runs), "--port", "0"],
        env=os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    match = re.fullmatch(r"(http://\S+): loading (.+) …\n", line)
    assert match is not None, line
    assert match[2] == ", ".join(run.name for run in runs)
    return process, match[1]


@pytest.mark.slow
def test_a_server_process_serves_the_page_while_loading(reverser: Path) -> None:
    process, url = start_loading(reverser)
    try:
        assert httpx.get(url + "/health").json() == {"status": "starting"}
        assert "<title>seqloom</title>" in httpx.get(url + "/").text
        assert httpx.get(url + "/api/runs", timeout=30).json()["runs"][0]["name"] == reverser.name
        assert httpx.get(url + "/ready").json() == {"status": "ok"}
    finally:
        process.terminate()
        process.communicate(timeout=10)
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_loading_ends_the_process(reverser: Path, number: signal.Signals) -> None:
    process, _ = start_loading(reverser)
    process.send_signal(number)
    _, log = process.communicate(timeout=5)
    assert (process.returncode, log) == (0, "stopped\n")


@pytest.mark.slow
def test_a_damaged_run_ends_the_process_with_an_error(reverser: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(reverser, tmp_path / "broken"))
    for weights in broken.rglob("model.safetensors"):
        weights.write_bytes(b"")
    result = run_serve_command(reverser, broken, "--port", "0")
    first_line, *other_lines = result.stderr.splitlines()
    assert result.returncode == 74  # the exit code for damaged files
    assert first_line.endswith(f"loading {reverser.name}, broken …")
    assert str(broken) in " ".join(other_lines)
    assert not any(word in result.stderr for word in ("open http", "Traceback", "stopped"))
