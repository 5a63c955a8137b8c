"""Finds the function that computes a score which a recipe names."""

import inspect
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any

from seqloom.config.extensions.section import MetricExtensionConfig, find_metric
from seqloom.config.schema.names import METRICS, ExtensionName, ScoreName
from seqloom.core.errors import DataError
from seqloom.extensions.registry import load_part
from seqloom.metrics.score import Metric, References, Score, check_references


def build_metric(name: ScoreName | ExtensionName, lowercase: bool) -> Metric:
    """Return the metric with this name.

    lowercase: True if the outputs are lower-cased. The metric then lower-cases the references too.
    """
    metric = _build(name, lowercase)
    return partial(_lowercase_references, metric) if lowercase else metric


def _lowercase_references(
    metric: Metric, hypotheses: Sequence[str], references: References
) -> Score:
    return metric(hypotheses, [tuple(text.lower() for text in texts) for texts in references])


def _build(name: ScoreName | ExtensionName, lowercase: bool) -> Metric:
    if name not in METRICS:
        return partial(extension_score, find_metric(name))
    metric = load_part(METRICS[name].builds)
    takes_lowercase = "lowercase" in inspect.signature(metric).parameters
    return partial(metric, lowercase=lowercase) if takes_lowercase else metric


def higher_is_better(name: str | None) -> bool:
    """True if higher values of a score are better. None: the score is not known.

    name: name of a metric, or "loss"
    """
    if name == "loss" or name is None:
        return name is None
    if name in METRICS:
        return METRICS[name].higher_is_better
    return bool(getattr(find_metric(name).extension_target, "higher_is_better", True))


def extension_score(
    metric: MetricExtensionConfig, hypotheses: Sequence[str], references: References
) -> Score:
    """Call a metric that is defined outside seqloom, and return its result as a `Score`.

    The metric returns a number or a `Score`. The name of the result is the metric's name in the
    recipe. If the metric returns a number, its attribute `higher_is_better` says whether higher
    values are better. Default of this attribute: True.
    """
    check_references(hypotheses, references)
    result: Any = metric.extension_target(hypotheses=hypotheses, references=references)
    if isinstance(result, Score):
        return replace(result, name=metric.kind)
    if not isinstance(result, Real) or not math.isfinite(result):
        raise DataError(
            f"the metric '{metric.kind}' returned {result!r}; it must return a finite number or a "
            "seqloom.metrics.Score"
        )
    is_higher_better = getattr(metric.extension_target, "higher_is_better", True)
    return Score(metric.kind, float(result), None, is_higher_better)
