"""Requests generated from /openapi.json: every response conforms to the schema."""

from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
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

from support.server_process import ServerProcess
from support.trials import count_trials, save_results

pytestmark = pytest.mark.slow
EXAMPLES = count_trials(4, 400)
"""Valid requests and as many invalid ones per route."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def test_responses_to_valid_and_invalid_requests_conform_to_the_schema(
    server: ServerProcess,
) -> None:
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    statuses: Counter[int] = Counter()
    for result in schema.get_all_operations():
        operation = result.ok()  # type: ignore[union-attr]  # an Err must fail here
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            statuses += send_examples(operation, mode)
    assert statuses.total() > 0
    save_results("routes", requests=statuses.total(), statuses=dict(sorted(statuses.items())))


def send_examples(operation: Any, mode: GenerationMode) -> Counter[int]:
    """Send generated requests and check the responses. Returns their statuses."""
    statuses: Counter[int] = Counter()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        statuses[case.call_and_validate(checks=CHECKS).status_code] += 1

    # A route without parameters has no invalid requests.
    with suppress(Unsatisfiable):
        send()
    return statuses
