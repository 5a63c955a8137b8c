"""Compares the outputs of two runs sentence by sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seqloom.config.schema.decoding import DecodingConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.core.signature import NoSource
from seqloom.data.example import Example
from seqloom.inference.options import UNSPLIT
from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run
from seqloom.metrics.score import Score
from seqloom.metrics.sentence_scores import sentence_chrf
from seqloom.text.preprocessing import Preprocessing


@dataclass(frozen=True)
class OutputPair:
    """The outputs of both runs for one sentence.

    number:    position of the sentence in the data, counted from 1
    qualities: chrF of both outputs, or None if the sentence has no references
    distance:  how different the two outputs are: 100 minus the chrF of the second output, with the
               first output as its reference
    """

    number: int
    source: str
    references: tuple[str, ...]
    outputs: tuple[Prediction, Prediction]
    qualities: tuple[float, float] | None
    distance: float

    @property
    def gain(self) -> float:
        """chrF of the second output minus chrF of the first output. 0 without references."""
        return 0.0 if self.qualities is None else self.qualities[1] - self.qualities[0]

    def to_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "source": self.source,
            "references": list(self.references),
            "outputs": [output.to_json() for output in self.outputs],
            "chrf": self.qualities,
            "distance": self.distance,
        }


@dataclass(frozen=True)
class RunComparison:
    """The comparison of two runs.

    names:  names of the runs
    pairs:  both outputs for each sentence. Pairs with the largest difference in chrF come first. If
            the difference is equal, pairs with less similar outputs come first
    scores: scores of each run over all sentences; empty if there are no references
    """

    names: tuple[str, str]
    pairs: tuple[OutputPair, ...]
    scores: tuple[tuple[Score, ...], tuple[Score, ...]]

    @property
    def differing(self) -> list[OutputPair]:
        """The sentences for which the two runs return different texts."""
        return [pair for pair in self.pairs if pair.outputs[0].text != pair.outputs[1].text]

    def to_json(self) -> dict[str, Any]:
        """Convert to plain Python objects, for JSON."""
        return {
            "runs": list(self.names),
            "sentences": len(self.pairs),
            "differing": len(self.differing),
            "scores": [{score.name: score.value for score in scores} for scores in self.scores],
            "pairs": [pair.to_json() for pair in self.pairs],
        }


def compare_runs(
    runs: tuple[Run, Run],
    examples: Sequence[Example],
    decodings: tuple[DecodingConfig, DecodingConfig],
) -> RunComparison:
    """Decode the same sentences with both runs, and compare the outputs.

    Scores over all sentences are computed only if every example has references.
    """
    check_comparable(runs)
    if not examples:
        raise DataError("there are no sentences to compare the runs on; give at least one")
    first_outputs, second_outputs = (
        [
            best
            for [best] in run.predict(
                _source_texts(run, examples),
                UNSPLIT,
                decoding=decoding,
            )
        ]
        for run, decoding in zip(runs, decodings, strict=True)
    )
    preprocessing = runs[0].task.target_tokenizer.preprocessing
    pairs = [
        _compare_outputs(number, example, (first, second), preprocessing)
        for number, (example, first, second) in enumerate(
            zip(examples, first_outputs, second_outputs, strict=True), start=1
        )
    ]
    has_references = all(example.references for example in examples)
    first_scores, second_scores = (
        tuple(run.task.scores([output.text for output in outputs], examples))
        if has_references
        else ()
        for run, outputs in zip(runs, (first_outputs, second_outputs), strict=True)
    )
    pairs.sort(key=lambda pair: (-abs(pair.gain), -pair.distance))
    names = (runs[0].name, runs[1].name)
    return RunComparison(names, tuple(pairs), (first_scores, second_scores))


def _compare_outputs(
    number: int,
    example: Example,
    outputs: tuple[Prediction, Prediction],
    preprocessing: Preprocessing,
) -> OutputPair:
    normalise, lowercase = preprocessing.tags.normalise, preprocessing.lowercase
    first, second = (normalise(output.text) for output in outputs)
    references = [normalise(reference) for reference in example.references]
    qualities = None
    if references:
        qualities = (
            sentence_chrf(first, references, lowercase),
            sentence_chrf(second, references, lowercase),
        )
    similarity = 100.0 if first == second else sentence_chrf(second, [first], lowercase)
    return OutputPair(
        number, example.source, example.references, outputs, qualities, 100.0 - similarity
    )


def _source_texts(run: Run, examples: Sequence[Example]) -> list[str]:
    return [run.task.source_text(example) for example in examples]


def check_comparable(runs: Sequence[Run]) -> None:
    """Raise ConfigError if the runs have different tasks, or if their task has no source.

    Call this before decoding, so that no time is spent on runs that cannot be compared.
    """
    kinds = {run.config.task.kind: run.name for run in runs}
    if len(kinds) > 1:
        listed = " and ".join(f"{name} is for {kind}" for kind, name in kinds.items())
        raise ConfigError(
            f"the runs have different tasks: {listed}; give two runs with the same task"
        )
    if isinstance(runs[0].task.signature.source, NoSource):
        raise ConfigError(
            f"{runs[0].name}: is a language model, which has no source; compare perplexities "
            "with `seqloom evaluate RUN --against RUN`"
        )
