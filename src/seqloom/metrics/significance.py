"""Is one system better than another, or was it luck?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sacrebleu.metrics.base import Metric
from sacrebleu.significance import PairedTest, Result

from seqloom.core.errors import DataError
from seqloom.metrics.bleu import bleu_metric, chrf_metric, in_columns
from seqloom.metrics.score import References, check_references


@dataclass(frozen=True)
class Estimate:
    """The score of a system, and mean ± interval (95 %) over the resampled test sets."""

    score: float
    mean: float
    interval: float


@dataclass(frozen=True)
class Comparison:
    """Two systems by one metric.

    p_value: the chance of a difference as large if the systems were equally good; 1 if their
             scores are equal
    """

    metric: str
    baseline: Estimate
    system: Estimate
    p_value: float
    signature: str

    @property
    def delta(self) -> float:
        """By how much the system is above the baseline."""
        return self.system.score - self.baseline.score


def compare(
    baseline: Sequence[str],
    system: Sequence[str],
    references: References,
    lowercase: bool = False,
    samples: int = 1000,
) -> list[Comparison]:
    """Paired bootstrap resampling (Koehn 2004) by BLEU and by chrF.

    `samples` test sets are drawn, with replacement, from the one there is; both systems are
    scored on each. The draw is sacrebleu's own, with its fixed seed.
    """
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
    test = PairedTest(systems, metrics, in_columns(references), "bs", n_samples=samples)
    signatures, results = test()
    comparisons = []
    for metric, signature in signatures.items():
        old, new = results[metric]
        assert isinstance(old, Result)
        assert isinstance(new, Result)
        # sacrebleu calls two equal systems significantly different: no resampled difference
        # is ever larger than none.
        p_value = 1.0 if old.score == new.score else float(new.p_value or 0.0)
        comparisons.append(
            Comparison(metric, _estimate(old), _estimate(new), p_value, signature.format())
        )
    return comparisons


def _estimate(result: Result) -> Estimate:
    assert result.mean is not None
    assert result.ci is not None
    return Estimate(float(result.score), float(result.mean), float(result.ci))
