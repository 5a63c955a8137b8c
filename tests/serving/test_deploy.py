"""The files in deploy/ agree with the command line and the repository."""

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from jsonschema.validators import validator_for
from typer.main import get_command

from seqloom.cli.main import app
from seqloom.serving.server.limits import Limits

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "seqloom.service"
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
COMPOSE = ROOT / "deploy" / "compose.yaml"
KUBERNETES = ROOT / "deploy" / "kubernetes.yaml"


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


def compose_service() -> dict[str, Any]:
    service: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"][
        "seqloom"
    ]
    return service


def kubernetes_objects() -> dict[str, Any]:
    objects = yaml.safe_load_all(KUBERNETES.read_text(encoding="utf-8"))
    return {each["kind"]: each for each in objects}


def test_the_compose_file_follows_the_compose_specification() -> None:
    schemas = files("check_jsonschema") / "builtin_schemas" / "vendor"
    schema = json.loads((schemas / "compose-spec.json").read_text(encoding="utf-8"))
    validator = validator_for(schema)(schema)
    document = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    assert not [error.message for error in validator.iter_errors(document)]
    document["services"]["seqloom"]["portz"] = []
    assert [error.message for error in validator.iter_errors(document)]


def test_kubernetes_accepts_the_manifest() -> None:
    version = kubernetes_validate.latest_version()
    for each in kubernetes_objects().values():
        kubernetes_validate.validate(each, version, strict=True)
    pod = kubernetes_objects()["Deployment"]["spec"]["template"]["spec"]
    pod["containers"][0]["portz"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": pod},
            version,
            strict=True,
        )


def test_containers_use_existing_options_and_the_port_of_the_image() -> None:
    service = compose_service()
    container = kubernetes_objects()["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert options_in(service["command"]) <= serve_options()
    assert options_in(container["args"]) <= serve_options()
    port = dict(dockerfile_instructions())["EXPOSE"]
    assert service["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert container["ports"][0]["containerPort"] == int(port)


def test_containers_have_time_to_finish_requests() -> None:
    deadline = Limits().deadline_seconds
    pod = kubernetes_objects()["Deployment"]["spec"]["template"]["spec"]
    sleep = int(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
    assert int(compose_service()["stop_grace_period"].removesuffix("s")) > deadline
    assert pod["terminationGracePeriodSeconds"] > sleep + deadline


def test_the_nginx_configuration_starts_seqloom_with_existing_options() -> None:
    text = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    command = re.search(r"^#\s+seqloom (serve .*)$", text, re.MULTILINE)
    assert command is not None
    assert options_in(command[1].split()) <= serve_options()
    assert "location /mt/" in text
    assert "--root-path /mt" in command[1]
