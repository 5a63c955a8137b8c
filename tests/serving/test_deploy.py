"""What is in deploy/ fits what is in the repository, as far as that can be told here."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command

from seqloom.cli.main import app

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "seqloom.service"
DOCKERFILE = ROOT / "deploy" / "Dockerfile"


def known_options() -> set[str]:
    serve = get_command(app).commands["serve"]  # type: ignore[attr-defined]
    return {name for parameter in serve.params for name in parameter.opts}


def options(words: list[str]) -> set[str]:
    return {word for word in words if word.startswith("--")}


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", " ", DOCKERFILE.read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def test_the_unit_calls_the_command_as_it_is() -> None:
    line = re.search(r"^ExecStart=(.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)
    assert line is not None
    program, command, *rest = shlex.split(line[1])
    assert (Path(program).name, command) == ("seqloom", "serve")
    assert options(rest) <= known_options()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    """With a program that exists in place of the one that is installed there."""
    text = UNIT.read_text(encoding="utf-8").replace("/opt/seqloom/bin/seqloom", "/bin/true")
    unit = tmp_path / UNIT.name
    unit.write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    own = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert not own, own


def test_what_the_image_copies_is_there_and_is_let_in() -> None:
    allowed = [
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"
    ]
    copied = [name for word, rest in instructions() if word == "COPY" for name in rest.split()[:-1]]
    assert copied
    for name in copied:
        assert (ROOT / name).exists(), name
        assert name in allowed, name


def test_the_image_starts_the_command_as_it_is() -> None:
    found = dict(instructions())
    program, command, *rest = json.loads(found["ENTRYPOINT"])
    assert (program, command) == ("seqloom", "serve")
    assert options(rest) <= known_options()
    port = rest[rest.index("--port") + 1]
    assert found["EXPOSE"] == port
    assert f"127.0.0.1:{port}/ready" in found["HEALTHCHECK"]
    assert found["USER"] == "seqloom"


def test_the_image_installs_extras_that_there_are() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    [extras] = [
        re.search(r'"\.\[([^]]+)\]"', rest)
        for word, rest in instructions()
        if word == "RUN" and '".[' in rest
    ]
    assert extras is not None
    assert set(extras[1].split(",")) <= set(project["optional-dependencies"])
