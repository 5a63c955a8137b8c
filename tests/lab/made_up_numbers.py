"""Numbers that nobody has measured, to see what is made of them."""

from collections.abc import Mapping

from seqloom.lab.results import Measurement, Numbers, Results

Made = Mapping[str, Numbers]
"""What each condition gave, the same with every seed but for a little."""


def results(made: Made, seeds: int = 3) -> Results:
    """Every number once a seed, a millionth larger each time."""
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
            for condition, numbers in made.items()
        ]
    )
