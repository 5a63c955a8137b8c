"""Results with invented numbers, to test judgements and reports."""

from collections.abc import Mapping

from seqloom.lab.results import Measurement, Numbers, Results


def fake_results(by_condition: Mapping[str, Numbers], seeds: int = 3) -> Results:
    """The given numbers with every seed, each time a millionth larger."""
    return Results(
        [
            Measurement(
                condition,
                seed,
                {name: value * (1 + seed * 1e-6) for name, value in numbers.items()},
                1.0,
                "cpu",
            )
            for seed in range(1, seeds + 1)
            for condition, numbers in by_condition.items()
        ]
    )
