"""The server behind nginx, under the path /mt/."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI
from playwright.sync_api import Browser, expect

from support.free_ports import free_port
from support.server_process import start_server, wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed"),
]
DEPLOYED = Path(__file__).parents[2] / "deploy" / "nginx.conf"


def nginx_config(folder: Path, port: int, server_port: int) -> str:
    """deploy/nginx.conf without TLS, with other ports, for a process without privileges."""
    server = DEPLOYED.read_text(encoding="utf-8")
    server = server.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};")
    server = server.replace("127.0.0.1:8000", f"127.0.0.1:{server_port}")
    server = "\n".join(line for line in server.splitlines() if "ssl_" not in line)
    temporary = "\n".join(
        f"{name}_temp_path {folder}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return (
        f"daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}\n{server}\n}}\n"
    )


@pytest.fixture(scope="module")
def url(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the server behind nginx."""
    folder, port = tmp_path_factory.mktemp("nginx"), free_port()
    server = start_server(
        [runs["reverser"], runs["speaker"]],
        *("--languages", "reverser=la:it", "--root-path", "/mt"),
    )
    config = folder / "nginx.conf"
    config.write_text(nginx_config(folder, port, server.port), encoding="utf-8")
    nginx = subprocess.Popen(["nginx", "-c", str(config), "-e", str(folder / "error.log")])
    address = f"http://localhost:{port}/mt"

    def is_listening() -> bool:
        try:
            return httpx.get(f"{address}/ready").status_code == 200
        except httpx.TransportError:
            return False

    try:
        wait_until(is_listening)
        yield address
    finally:
        nginx.terminate()
        nginx.wait(10)
        assert server.stop() == 0


def test_the_page_works(url: str, browser: Browser) -> None:
    page = browser.new_page()
    failures: list[str] = []
    page.on(
        "response",
        lambda response: failures.append(response.url) if response.status >= 400 else None,
    )
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.goto(f"{url}/#/translate?run=reverser&text=abcd")
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("[aria-busy], main .loading")).to_have_count(0)
    page.goto(f"{url}/#/complete?text=ab&seed=3&length=12")
    expect(page.locator("main h1")).to_be_visible()
    page.goto(f"{url}/docs")
    expect(page.locator("main, body")).to_contain_text(["/api/translate"])
    page.goto(url)  # without the slash
    expect(page.locator("main h1")).to_be_visible()
    assert page.url.startswith(f"{url}/")
    page.close()
    assert not failures


def test_the_api_works(url: str) -> None:
    response = httpx.post(f"{url}/api/translate", json={"texts": ["abcd"], "run": "reverser"})
    assert response.status_code == 200
    text = response.json()["translations"][0]["text"]
    assert LibreTranslateAPI(f"{url}/").translate("abcd", "la", "it") == text
    assert httpx.get(f"{url}/openapi.json").json()["servers"] == [{"url": "/mt"}]


def test_streams_arrive_token_by_token(url: str) -> None:
    """nginx passes on each event when it arrives."""
    request = {"prompts": ["ab"], "run": "speaker", "seed": 1, "max_length": 200}
    times = []
    with httpx.stream("POST", f"{url}/api/complete/stream", json=request) as response:
        for chunk in response.iter_raw():
            times.append(time.monotonic())
            assert chunk
    assert len(times) > 2


def test_pages_of_other_origins_are_rejected(url: str) -> None:
    request = {"texts": ["abcd"], "run": "reverser"}
    for origin, status in (("http://evil.example", 403), (url.removesuffix("/mt"), 200)):
        response = httpx.post(f"{url}/api/translate", json=request, headers={"Origin": origin})
        assert response.status_code == status
