"""Statistical significance of the difference between two systems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seqloom.core.errors import DataError
from seqloom.metrics.bleu import bleu_metric, chrf_metric, reference_columns
from seqloom.metrics.score import References, check_references

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric
    from sacrebleu.significance import Result


@dataclass(frozen=True)
class BootstrapEstimate:
    """The score of a system, and its distribution over the resampled test sets.

    score:    score on the given test set
    mean:     mean score on the resampled test sets
    interval: half the width of the 95 % confidence interval
    """

    score: float
    mean: float
    interval: float


@dataclass(frozen=True)
class PairedComparison:
    """Two systems compared by one metric.

    p_value: if both systems were equally good, the probability of a difference that is at least as
             large as the measured one. 1 if the two scores are equal
    """

    metric: str
    baseline: BootstrapEstimate
    system: BootstrapEstimate
    p_value: float
    signature: str

    @property
    def delta(self) -> float:
        """The score of the system minus that of the baseline."""
        return self.system.score - self.baseline.score


def compare_systems(
    baseline: Sequence[str],
    system: Sequence[str],
    references: References,
    lowercase: bool = False,
    samples: int = 1000,
) -> list[PairedComparison]:
    """Compare two systems by BLEU and by chrF with paired bootstrap resampling (Koehn 2004).

    sacrebleu resamples the given test set `samples` times: it draws sentences with replacement and
    scores both systems on the drawn sentences. It uses a fixed seed by default.
    """
    from sacrebleu.significance import PairedTest, Result  # imported on first use, see bleu.py

    problems = []
    for name, hypotheses in [("baseline", baseline), ("system", system)]:
        try:
            check_references(hypotheses, references)
        except DataError as error:
            problems.append(f"  {name}: {error}")
    if problems:
        raise DataError("\n".join(["these systems cannot be compared:", *problems]))
    metrics: Mapping[str, Metric] = {
        "BLEU": bleu_metric(lowercase),
        "chrF": chrf_metric(lowercase),
    }
    systems: list[tuple[str, Sequence[str]]] = [("baseline", baseline), ("system", system)]
    test = PairedTest(systems, metrics, reference_columns(references), "bs", n_samples=samples)
    signatures, results = test()
    comparisons = []
    for metric, signature in signatures.items():
        baseline_result, system_result = results[metric]
        assert isinstance(baseline_result, Result)
        assert isinstance(system_result, Result)
        # If the outputs are equal, sacrebleu reports a significant difference, because no
        # resampled difference is larger than the measured difference, which is 0.
        is_equal = baseline_result.score == system_result.score
        comparisons.append(
            PairedComparison(
                metric=metric,
                baseline=_estimate(baseline_result),
                system=_estimate(system_result),
                p_value=1.0 if is_equal else float(system_result.p_value or 0.0),
                signature=signature.format(),
            )
        )
    return comparisons


def _estimate(result: "Result") -> BootstrapEstimate:
    assert result.mean is not None
    assert result.ci is not None
    return BootstrapEstimate(float(result.score), float(result.mean), float(result.ci))
