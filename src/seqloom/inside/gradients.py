"""Gradients through time, of the sentences of a run: how much reaches each of their steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from torch import Tensor

from seqloom.config.schema.decoding import DecodingConfig
from seqloom.core.batch import Batch
from seqloom.core.errors import DataError
from seqloom.core.signature import NoSource
from seqloom.data.collate import pad_ids
from seqloom.inside.explain import check_step, decoded
from seqloom.inside.flow import Flow, measure
from seqloom.runs.prediction import Prediction
from seqloom.runs.predictor import ProgressCallback
from seqloom.runs.run import Run
from seqloom.text.vocabulary import END, SPECIAL_TOKENS, START

TOGETHER = 16
"""Sentences that go back in one batch."""


@dataclass(frozen=True)
class Steps:
    """How much gradient reaches each step of one side.

    labels: what each step takes in; in a profile, how many steps it is from the last
    whole:  the norm of the gradient
    parts:  the norms of the two gradients that it is the sum of: "chain" and "attention" for the
            source, "own" and "later" for the target
    """

    labels: tuple[str, ...]
    whole: tuple[float, ...]
    parts: Mapping[str, tuple[float, ...]]

    def to_json(self) -> dict[str, Any]:
        parts = {name: list(values) for name, values in self.parts.items()}
        return {"labels": list(self.labels), "whole": list(self.whole), **parts}


@dataclass(frozen=True)
class Trace:
    """The gradients of one sentence.

    output: the pieces whose losses were taken back, or among which one was chosen
    step:   the chosen one, from 1; None: the losses of all
    loss:   -log p of the chosen one, or of all
    """

    output: tuple[str, ...]
    step: int | None
    loss: float
    source: Steps
    target: Steps

    def to_json(self) -> dict[str, Any]:
        """The same in plain Python, for a program to read."""
        sides = {"source": self.source.to_json(), "target": self.target.to_json()}
        return {"output": list(self.output), "step": self.step, "loss": self.loss, **sides}


@dataclass(frozen=True)
class Profile:
    """The means over many sentences, aligned by the distance to the end.

    Label 0 is the last step of the source (its END) or of the target. A mean is over the sentences
    that are long enough, of which `counts` says how many there were.
    """

    sentences: int
    step: int | None
    source: Steps
    target: Steps
    counts: Mapping[str, tuple[int, ...]]

    def to_json(self) -> dict[str, Any]:
        """The same in plain Python, for a program to read."""
        counts = {side: list(numbers) for side, numbers in self.counts.items()}
        sides = {"source": self.source.to_json(), "target": self.target.to_json()}
        return {"sentences": self.sentences, "step": self.step, **sides, "counts": counts}


def trace(
    run: Run,
    text: str,
    target: str | None = None,
    step: int | None = None,
    decoding: DecodingConfig | None = None,
) -> Trace:
    """Take the loss of a target, or of the run's own output, back to every step."""
    output = decoded(run, text, target, decoding)
    if step is not None:
        check_step(step, output)
    return _traced(run, [text], [output], step)[0]


def profile(
    run: Run,
    sources: Sequence[str],
    targets: Sequence[str],
    step: int | None = None,
    advance: ProgressCallback | None = None,
) -> Profile:
    """The means over given pairs; of a language model, the sources are blank."""
    if step is not None and step < 1:
        raise DataError(f"there is no step {step}; the first is 1")
    outputs = run.score(sources, targets, attention=False)
    long = [place for place, one in enumerate(outputs) if len(one.pieces) >= (step or 1)]
    if not long:
        longest = max((len(one.pieces) for one in outputs), default=0)
        raise DataError(f"there is no step {step or 1}; the longest output has {longest}")
    traces: list[Trace] = []
    for start in range(0, len(long), TOGETHER):
        some = long[start : start + TOGETHER]
        traces += _traced(run, [sources[i] for i in some], [outputs[i] for i in some], step)
        if advance is not None:
            advance(len(traces), len(long))
    source, source_counts = _averaged([one.source for one in traces])
    target, target_counts = _averaged([one.target for one in traces])
    counts = {"source": source_counts, "target": target_counts}
    return Profile(len(traces), step, source, target, counts)


def _traced(
    run: Run, texts: Sequence[str], outputs: Sequence[Prediction], step: int | None
) -> list[Trace]:
    flow = measure(run.model, _batch(run, texts, outputs), step)
    return [
        Trace(
            output=output.pieces,
            step=step,
            loss=float(flow.loss[row]),
            source=_source_steps(flow, row, output.source_pieces),
            target=_target_steps(flow, row, (SPECIAL_TOKENS[START], *output.pieces[:-1])),
        )
        for row, output in enumerate(outputs)
    ]


def _batch(run: Run, texts: Sequence[str], outputs: Sequence[Prediction]) -> Batch:
    """What the run read and put out, as it would be trained on it."""

    def padded(rows: Sequence[Sequence[int]], last: int | None = None) -> Any:
        return pad_ids([np.array(row, dtype=np.int64) for row in rows], last=last)

    source = None
    if not isinstance(run.task.signature.source, NoSource):
        prepared = [run.task.prepare(text) for text in run.languages.add_tag(texts, None)]
        source = padded([one.source or () for one in prepared], last=END)
    inputs = padded([(START, *output.tokens[:-1]) for output in outputs])
    targets = padded([output.tokens for output in outputs])
    return Batch(source, inputs, targets).to(run.predictor.device)


def _source_steps(flow: Flow, row: int, labels: Sequence[str]) -> Steps:
    parts = {"chain": flow.chain[row], "attention": flow.attention[row]}
    return _steps(flow.source[row], parts, labels)


def _target_steps(flow: Flow, row: int, labels: Sequence[str]) -> Steps:
    return _steps(flow.target[row], {"own": flow.own[row], "later": flow.later[row]}, labels)


def _steps(whole: Tensor, parts: Mapping[str, Tensor], labels: Sequence[str]) -> Steps:
    """(S, D) each -> norms, without the padding behind the labels"""

    def norms(gradient: Tensor) -> tuple[float, ...]:
        return tuple(gradient[: len(labels)].norm(dim=-1).tolist())

    return Steps(tuple(labels), norms(whole), {name: norms(one) for name, one in parts.items()})


def _averaged(sides: Sequence[Steps]) -> tuple[Steps, tuple[int, ...]]:
    """Means of the last steps, of the last but one, …, and over how many sentences each is."""
    length = max(len(side.labels) for side in sides)
    counts = tuple(sum(len(side.labels) > place for side in sides) for place in range(length))

    def mean(norms: Sequence[Sequence[float]]) -> tuple[float, ...]:
        from_end = zip_longest(*(reversed(each) for each in norms), fillvalue=0.0)
        return tuple(sum(some) / count for some, count in zip(from_end, counts, strict=True))

    parts = {name: mean([side.parts[name] for side in sides]) for name in sides[0].parts}
    labels = tuple(str(distance) for distance in range(length))
    return Steps(labels, mean([side.whole for side in sides]), parts), counts
