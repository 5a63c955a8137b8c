"""Whatever the schema allows, and whatever it does not: no request makes the service stumble."""

import os
from contextlib import suppress
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from calling_server import Server

EXAMPLES = 25 * int(os.environ.get("SEQLOOM_CAMPAIGN", "1"))
"""For each of the routes: about a thousand in all."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def test_every_route_answers_as_it_says(server: Server) -> None:
    """Requests that the schema allows, and requests that it forbids."""
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    for found in schema.get_all_operations():
        operation = found.ok()  # type: ignore[union-attr]  # an Err fails here, as it should
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            try_out(operation, mode)


def try_out(operation: Any, mode: GenerationMode) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def answered(case: Any) -> None:
        case.call_and_validate(checks=CHECKS)

    # A route that takes nothing has nothing that could be wrong.
    with suppress(Unsatisfiable):
        answered()
