"""A pytest plugin that runs property tests with more cases, and saves how many passed.

python -m pytest -p tests.support.property_campaign -m hypothesis tests
"""

import re

import pytest
from hypothesis import settings

FACTOR = 16
"""Multiplies the number of cases of every property test."""
SETTINGS = "_hypothesis_internal_use_settings"
"""The attribute in which hypothesis stores the settings of a test. No public function changes them."""
PASSING = "passing cases"

passing_cases: list[int] = []
"""Number of passing cases of each test."""


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Multiply the number of cases. Items with different parameters share a function."""
    functions = {item.function for item in items if item.get_closest_marker("hypothesis")}
    for function in functions:
        usual = getattr(function, SETTINGS, settings.default)
        assert usual is not None
        setattr(function, SETTINGS, settings(usual, max_examples=FACTOR * usual.max_examples))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Add the number of passing cases to the report, which xdist sends to the main process."""
    statistics = getattr(item, "hypothesis_statistics", "")
    numbers = re.findall(r"(\d+) passing", statistics)
    item.user_properties.append((PASSING, sum(int(number) for number in numbers)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        passing_cases.extend(
            int(str(value)) for name, value in report.user_properties if name == PASSING
        )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Save the numbers, in the main process of xdist only."""
    from support.trials import save_results

    if not hasattr(session.config, "workerinput"):
        save_results(
            "properties",
            tests=len(passing_cases),
            cases=sum(passing_cases),
            failed_tests=session.testsfailed,
        )
