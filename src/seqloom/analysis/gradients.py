"""Gradient norms at every encoder and decoder step, for one sentence or averaged over many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from torch import Tensor

from seqloom.analysis.explain.explainer import check_step, decode_output
from seqloom.analysis.gradient_flow import GradientFlow, measure_gradients
from seqloom.config.schema.decoding import DecodingConfig
from seqloom.core.batch import Batch, Padded
from seqloom.core.errors import DataError
from seqloom.core.signature import NoSource
from seqloom.data.batching.collate import pad_ids
from seqloom.inference.prediction import Prediction
from seqloom.inference.predictor import ProgressCallback
from seqloom.inference.run import Run
from seqloom.text.vocabulary import SPECIAL_TOKENS, START

BATCH_SIZE = 16
"""Number of sentences per backward pass."""


@dataclass(frozen=True)
class StepGradients:
    """Gradient norms at all steps of the encoder or at all steps of the decoder.

    The gradient at a step is the sum of two parts.

    - Encoder: "chain" is the part that flows through the initial state of the decoder.
      "attention" is the part that flows through the attention.
    - Decoder: "own" is the gradient of the loss at the same step. "later" is the gradient of the
      losses at later steps.

    labels: token of each step. For means over sentences: distance of each step from the last step
    whole:  norm of the gradient at each step
    parts:  maps the name of each part to its norms, one per step
    """

    labels: tuple[str, ...]
    whole: tuple[float, ...]
    parts: Mapping[str, tuple[float, ...]]

    def to_json(self) -> dict[str, Any]:
        parts = {name: list(norms) for name, norms in self.parts.items()}
        return {"labels": list(self.labels), "whole": list(self.whole), **parts}


@dataclass(frozen=True)
class GradientTrace:
    """Gradient norms for one sentence.

    output: pieces of the output whose loss is differentiated
    step:   the prediction whose loss is differentiated, counted from 1. None if the losses of all
            predictions are differentiated.
    loss:   -log p of that prediction, or the sum over all predictions
    """

    output: tuple[str, ...]
    step: int | None
    loss: float
    source: StepGradients
    target: StepGradients

    def to_json(self) -> dict[str, Any]:
        """Convert to plain Python objects, for JSON."""
        sides = {"source": self.source.to_json(), "target": self.target.to_json()}
        return {"output": list(self.output), "step": self.step, "loss": self.loss, **sides}


@dataclass(frozen=True)
class GradientProfile:
    """Gradient norms averaged over many sentences, by distance from the last step.

    Distance 0 is the last step: for the source, this is its END. The mean at a distance is over all
    sentences that are long enough to have such a step.

    counts: number of sentences in each mean, under the keys "source" and "target"
    """

    sentences: int
    step: int | None
    source: StepGradients
    target: StepGradients
    counts: Mapping[str, tuple[int, ...]]

    def to_json(self) -> dict[str, Any]:
        """Convert to plain Python objects, for JSON."""
        counts = {side: list(numbers) for side, numbers in self.counts.items()}
        sides = {"source": self.source.to_json(), "target": self.target.to_json()}
        return {"sentences": self.sentences, "step": self.step, **sides, "counts": counts}


def trace_gradients(
    run: Run,
    text: str,
    target: str | None = None,
    step: int | None = None,
    decoding: DecodingConfig | None = None,
) -> GradientTrace:
    """Differentiate the loss of a target text and return the gradient norms.

    text:     source text. For a language model, the text to complete; it is ignored if `target` is
              given
    target:   target text. Default: the output that the search returns.
    step:     differentiate only the loss of this prediction, counted from 1. Default: the
              losses of all predictions.
    decoding: options of the search. Default: the options of the run.
    """
    output = decode_output(run, text, target, decoding)
    if step is not None:
        check_step(step, output)
    return _trace_batch(run, [text], [output], step)[0]


def profile_gradients(
    run: Run,
    sources: Sequence[str],
    targets: Sequence[str],
    step: int | None = None,
    advance: ProgressCallback | None = None,
) -> GradientProfile:
    """Average the gradient norms over sentence pairs.

    sources: source texts; empty strings for a language model
    step:    differentiate only the loss of this prediction, counted from 1. Sentences with fewer
             predictions are skipped. Default: all predictions.
    advance: callback that receives the number of completed sentences and the total number
    """
    if step is not None and step < 1:
        raise DataError(f"there is no step {step}; the first step is 1")
    outputs = run.score(sources, targets, attention=False)
    selected = [i for i, output in enumerate(outputs) if len(output.pieces) >= (step or 1)]
    if not selected:
        longest = max((len(output.pieces) for output in outputs), default=0)
        raise DataError(f"there is no step {step or 1}; the longest output has {longest} steps")
    traces: list[GradientTrace] = []
    for start in range(0, len(selected), BATCH_SIZE):
        batch = selected[start : start + BATCH_SIZE]
        traces += _trace_batch(run, [sources[i] for i in batch], [outputs[i] for i in batch], step)
        if advance is not None:
            advance(len(traces), len(selected))
    source, source_counts = _average([each.source for each in traces])
    target, target_counts = _average([each.target for each in traces])
    counts = {"source": source_counts, "target": target_counts}
    return GradientProfile(len(traces), step, source, target, counts)


def _trace_batch(
    run: Run, texts: Sequence[str], outputs: Sequence[Prediction], step: int | None
) -> list[GradientTrace]:
    flow = measure_gradients(run.model, training_batch(run, texts, outputs), step)
    return [
        GradientTrace(
            output=output.pieces,
            step=step,
            loss=float(flow.loss[row]),
            source=_source_gradients(flow, row, output.source_pieces),
            target=_target_gradients(flow, row, (SPECIAL_TOKENS[START], *output.pieces[:-1])),
        )
        for row, output in enumerate(outputs)
    ]


def training_batch(run: Run, texts: Sequence[str], outputs: Sequence[Prediction]) -> Batch:
    """Build a training batch with the texts as sources and the outputs as targets.

    texts: source texts; for captions, paths of image files. Not used for a language model
    """

    def pad(rows: Sequence[Sequence[int]]) -> Padded:
        return pad_ids([np.array(row, dtype=np.int64) for row in rows])

    source = None
    if not isinstance(run.task.signature.source, NoSource):
        tagged = run.languages.add_tag(texts, None)
        source = run.predictor.source([run.task.prepare(text) for text in tagged])
    inputs = pad([(START, *output.tokens[:-1]) for output in outputs])
    targets = pad([output.tokens for output in outputs])
    return Batch(source, inputs, targets).to(run.predictor.device)


def _source_gradients(flow: GradientFlow, row: int, labels: Sequence[str]) -> StepGradients:
    parts = {"chain": flow.chain[row], "attention": flow.attention[row]}
    return _step_gradients(flow.source[row], parts, labels)


def _target_gradients(flow: GradientFlow, row: int, labels: Sequence[str]) -> StepGradients:
    parts = {"own": flow.own[row], "later": flow.later[row]}
    return _step_gradients(flow.target[row], parts, labels)


def _step_gradients(
    whole: Tensor, parts: Mapping[str, Tensor], labels: Sequence[str]
) -> StepGradients:
    """Compute the norm of the gradient at each step of one sentence.

    whole:  (N, D) gradients of the loss with respect to the D-dimensional inputs of N steps
    parts:  (N, D) the two summands of `whole`
    labels: one label per step. Steps after the last label are padding and are left out.
    """

    def norms(gradient: Tensor) -> tuple[float, ...]:
        return tuple(gradient[: len(labels)].norm(dim=-1).tolist())

    return StepGradients(
        tuple(labels), norms(whole), {name: norms(gradient) for name, gradient in parts.items()}
    )


def _average(sides: Sequence[StepGradients]) -> tuple[StepGradients, tuple[int, ...]]:
    """Average the gradient norms of all sentences, separately for each distance from the last step.

    Returns the means, and the number of sentences in each mean.
    """
    length = max(len(side.labels) for side in sides)
    counts = tuple(sum(len(side.labels) > distance for side in sides) for distance in range(length))

    def mean(norms: Sequence[Sequence[float]]) -> tuple[float, ...]:
        from_end = zip_longest(*(reversed(each) for each in norms), fillvalue=0.0)
        return tuple(sum(values) / count for values, count in zip(from_end, counts, strict=True))

    parts = {name: mean([side.parts[name] for side in sides]) for name in sides[0].parts}
    labels = tuple(str(distance) for distance in range(length))
    return StepGradients(labels, mean([side.whole for side in sides]), parts), counts
