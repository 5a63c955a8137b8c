"""Two runs, sentence by sentence: what each says, how good it is, where they differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seqloom.config.schema.decoding import DecodingConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.core.signature import NoSource
from seqloom.data.example import Example
from seqloom.metrics.score import Score
from seqloom.metrics.sentences import sentence_chrf
from seqloom.runs.options import PredictionOptions
from seqloom.runs.prediction import Prediction
from seqloom.runs.run import Run


@dataclass(frozen=True)
class Pair:
    """One sentence.

    number:    its place among those that were given, counted from 1
    qualities: chrF of both outputs, if there are references
    distance:  how unlike each other the outputs are: 100 - chrF of the second against the first
    """

    number: int
    source: str
    references: tuple[str, ...]
    outputs: tuple[Prediction, Prediction]
    qualities: tuple[float, float] | None
    distance: float

    @property
    def gain(self) -> float:
        """How much better the second is; 0 without references."""
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
class Comparison:
    """All sentences, those that differ most first."""

    names: tuple[str, str]
    pairs: tuple[Pair, ...]
    scores: tuple[tuple[Score, ...], tuple[Score, ...]]
    """Of all sentences together, of each run; empty without references."""

    @property
    def differing(self) -> list[Pair]:
        return [pair for pair in self.pairs if pair.outputs[0].text != pair.outputs[1].text]

    def to_json(self) -> dict[str, Any]:
        """The same in plain Python, for a program to read."""
        return {
            "runs": list(self.names),
            "sentences": len(self.pairs),
            "differing": len(self.differing),
            "scores": [{one.name: one.value for one in scores} for scores in self.scores],
            "pairs": [pair.to_json() for pair in self.pairs],
        }


def compare_runs(
    runs: tuple[Run, Run],
    examples: Sequence[Example],
    decodings: tuple[DecodingConfig, DecodingConfig],
) -> Comparison:
    """Both runs on the same sentences; an example without references is not scored."""
    refuse_unlike(runs)
    if not examples:
        raise DataError("there are no sentences to compare the runs on; give some")
    ours, theirs = (
        [
            best
            for [best] in run.predict(
                _questions(run, examples), PredictionOptions(1), decoding=decoding
            )
        ]
        for run, decoding in zip(runs, decodings, strict=True)
    )
    lowercase = runs[0].task.target_tokenizer.lowercase
    pairs = [
        _pair(number, example, (one, other), lowercase)
        for number, (example, one, other) in enumerate(
            zip(examples, ours, theirs, strict=True), start=1
        )
    ]
    judged = all(example.references for example in examples)
    first, second = (
        tuple(run.task.scores([one.text for one in outputs], examples)) if judged else ()
        for run, outputs in zip(runs, (ours, theirs), strict=True)
    )
    pairs.sort(key=lambda pair: (-abs(pair.gain), -pair.distance))
    return Comparison((runs[0].name, runs[1].name), tuple(pairs), (first, second))


def _pair(
    number: int, example: Example, outputs: tuple[Prediction, Prediction], lowercase: bool
) -> Pair:
    one, other = (output.text for output in outputs)
    qualities = None
    if example.references:
        ours, theirs = (sentence_chrf(text, example.references, lowercase) for text in (one, other))
        qualities = (ours, theirs)
    alike = 100.0 if one == other else sentence_chrf(other, [one], lowercase)
    return Pair(number, example.source, example.references, outputs, qualities, 100.0 - alike)


def _questions(run: Run, examples: Sequence[Example]) -> list[str]:
    return [run.task.source_text(example) for example in examples]


def refuse_unlike(runs: Sequence[Run]) -> None:
    """Told before anything is decoded, which may take long."""
    kinds = {run.config.task.kind: run.name for run in runs}
    if len(kinds) > 1:
        listed = " and ".join(f"{name} is for {kind}" for kind, name in kinds.items())
        raise ConfigError(
            f"{listed}, so what they say cannot be compared; give two runs of one task"
        )
    if isinstance(runs[0].task.signature.source, NoSource):
        raise ConfigError(
            f"{runs[0].name}: is a language model, which answers nothing; compare perplexities "
            "with `seqloom evaluate RUN --against RUN`"
        )
