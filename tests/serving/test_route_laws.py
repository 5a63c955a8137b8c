"""Whatever the schema allows, and whatever it does not: no request makes the service stumble."""

from collections import Counter
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

from busy_server import keep
from calling_server import Server
from forking import CAMPAIGN

EXAMPLES = 4 * CAMPAIGN
"""For each route, both of requests that are allowed and of those that are not."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def test_every_route_answers_as_it_says(server: Server) -> None:
    """Requests that the schema allows, and requests that it forbids."""
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    statuses: Counter[int] = Counter()
    for found in schema.get_all_operations():
        operation = found.ok()  # type: ignore[union-attr]  # an Err fails here, as it should
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            statuses += try_out(operation, mode)
    keep("routes", requests=statuses.total(), statuses=dict(sorted(statuses.items())))


def try_out(operation: Any, mode: GenerationMode) -> Counter[int]:
    """The statuses of the answers, each of which is as the schema says."""
    statuses: Counter[int] = Counter()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def answered(case: Any) -> None:
        statuses[case.call_and_validate(checks=CHECKS).status_code] += 1

    # A route that takes nothing has nothing that could be wrong.
    with suppress(Unsatisfiable):
        answered()
    return statuses
