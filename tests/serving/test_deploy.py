"""The files in deploy/ agree with the command line and the repository."""

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from seqloom.cli.main import app

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "seqloom.service"
DOCKERFILE = ROOT / "deploy" / "Dockerfile"


def serve_options() -> set[str]:
    serve = get_command(app).commands["serve"]  # type: ignore[attr-defined]
    return {name for parameter in serve.params for name in parameter.opts}


def options_in(words: list[str]) -> set[str]:
    return {word for word in words if word.startswith("--")}


def dockerfile_instructions() -> list[tuple[str, str]]:
    """(instruction, arguments) of each line."""
    text = re.sub(r"\\\n\s*", " ", DOCKERFILE.read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def test_the_systemd_unit_uses_existing_options() -> None:
    line = re.search(r"^ExecStart=(.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)
    assert line is not None
    program, command, *arguments = shlex.split(line[1])
    assert (Path(program).name, command) == ("seqloom", "serve")
    assert options_in(arguments) <= serve_options()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    # systemd-analyze requires an existing program.
    text = UNIT.read_text(encoding="utf-8").replace("/opt/seqloom/bin/seqloom", "/bin/true")
    unit = tmp_path / UNIT.name
    unit.write_text(text, encoding="utf-8")
    result = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in result.stderr.splitlines() if UNIT.name in line]
    assert not errors, errors


def test_the_docker_image_copies_existing_files_that_dockerignore_allows() -> None:
    allowed = [
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"
    ]
    copied = [
        name
        for instruction, arguments in dockerfile_instructions()
        if instruction == "COPY"
        for name in arguments.split()[:-1]
    ]
    assert copied
    for name in copied:
        assert (ROOT / name).exists(), name
        assert name in allowed, name


def test_the_docker_image_uses_existing_options() -> None:
    instructions = dict(dockerfile_instructions())
    program, command, *arguments = json.loads(instructions["ENTRYPOINT"])
    assert (program, command) == ("seqloom", "serve")
    assert options_in(arguments) <= serve_options()
    port = arguments[arguments.index("--port") + 1]
    assert instructions["EXPOSE"] == port
    assert f"127.0.0.1:{port}/ready" in instructions["HEALTHCHECK"]
    assert instructions["USER"] == "seqloom"


def test_the_docker_image_installs_existing_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    [extras] = [
        re.search(r'"\.\[([^]]+)\]"', arguments)
        for instruction, arguments in dockerfile_instructions()
        if instruction == "RUN" and '".[' in arguments
    ]
    assert extras is not None
    assert set(extras[1].split(",")) <= set(project["optional-dependencies"])


def test_the_nginx_configuration_starts_seqloom_with_existing_options() -> None:
    text = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    command = re.search(r"^#\s+seqloom (serve .*)$", text, re.MULTILINE)
    assert command is not None
    assert options_in(command[1].split()) <= serve_options()
    assert "location /mt/" in text
    assert "--root-path /mt" in command[1]
