"""/openapi.json describes every operation, parameter and field, with examples of all requests."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from support.in_process_server import respond
from support.server_process import ServerProcess

RUNS = {
    "/api/complete": "speaker",
    "/api/complete/stream": "speaker",
    "/api/label": "labeller",
    "/api/forecast": "forecaster",
}
"""Runs for the examples of some routes. The others are sent to the run reverser."""


VALUES = {"model": "speaker", "source": "la", "target": "it", "piece": "a"}
"""Values that depend on the run: its name, its languages and its vocabulary."""


@cache
def description() -> dict[str, Any]:
    content: dict[str, Any] = respond("GET", "/openapi.json").json()
    return content


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in description()["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def resolve(schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return description()["components"]["schemas"][name] if name else schema


def request_bodies() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The path, content type and schema of each request body, without those that are files."""
    for path, methods in description()["paths"].items():
        for operation in methods.values():
            for content_type, body in operation.get("requestBody", {}).get("content", {}).items():
                schema = resolve(body["schema"])
                if schema.get("format") != "binary":
                    yield path, content_type, schema


def objects(value: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """All schemas with properties in a part of the description."""
    if isinstance(value, dict):
        if isinstance(value.get("properties"), dict):
            yield where, value
        for key, item in value.items():
            yield from objects(item, f"{where}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from objects(item, f"{where}[{index}]")


def test_every_operation_and_parameter_is_described() -> None:
    for name, operation in operations():
        assert operation["summary"], name
        assert operation["description"], name
        for parameter in operation.get("parameters", []):
            assert parameter.get("description"), f"{name}: {parameter['name']}"


def test_every_field_is_described() -> None:
    missing = [
        f"{where}: {field}"
        for where, schema in objects(description(), "")
        for field, value in schema["properties"].items()
        if not value.get("description")
    ]
    assert not missing


def test_every_type_is_described() -> None:
    schemas = description()["components"]["schemas"]
    assert not [name for name, schema in schemas.items() if not schema.get("description")]


def test_every_request_body_has_an_example_with_known_fields() -> None:
    for path, content_type, schema in request_bodies():
        [example] = schema["examples"]
        assert set(schema.get("required", ())) <= set(example), (path, content_type)
        assert set(example) <= set(schema["properties"]), (path, content_type)


@pytest.mark.slow
def test_the_service_accepts_every_example(server: ServerProcess) -> None:
    for path, content_type, schema in request_bodies():
        example = dict(schema["examples"][0])
        if "run" in schema["properties"]:
            example["run"] = RUNS.get(path, "reverser")
        example |= {name: value for name, value in VALUES.items() if name in example}
        url = server.url + path
        if "file" in example:
            files = {"file": (example.pop("file"), b"abcd")}
            response = server.client.post(url, data=example, files=files)
        elif content_type == "application/json":
            response = server.client.post(url, json=example)
        elif content_type == "multipart/form-data":
            fields = {name: (None, value) for name, value in example.items()}
            response = server.client.post(url, files=fields)
        else:
            response = server.client.post(url, data=example)
        if path == "/detect":  # the runs of this server detect no languages
            assert "cannot detect languages" in response.text
            continue
        assert response.status_code == 200, (path, content_type, json.dumps(example), response.text)
