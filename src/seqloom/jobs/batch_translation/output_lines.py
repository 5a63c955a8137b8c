"""Output lines of translations, in the format that the options of `seqloom translate` select."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seqloom.inference.options import Probabilities
from seqloom.inference.prediction import Prediction
from seqloom.metrics.alignment import format_pharaoh


@dataclass(frozen=True)
class TranslationFormatter:
    """Formats translations. The fields are options of `seqloom translate`.

    n_best:     number of outputs per input line
    scores:     write the score of each output. With `json` or `n_best` > 1, it is always written.
    alignments: write the word alignment of each output
    json:       write one JSON object per input line
    """

    n_best: int
    scores: bool
    alignments: bool
    json: bool

    @property
    def probabilities(self) -> Probabilities:
        """The probabilities that the output contains, so that the search must compute them.

        "tokens": the score of the output, and the log-probability of each of its tokens
        "score":  only the score
        "none":   no probabilities
        """
        if self.json or self.n_best > 1:
            return "tokens"
        return "score" if self.scores else "none"

    def lines(self, index: int, source: str, predictions: Sequence[Prediction]) -> list[str]:
        """Return the output lines for input line `index`, counted from 0."""
        if self.json:
            outputs = [self._to_json(prediction) for prediction in predictions]
            return [_format_json({"id": index, "source": source, "outputs": outputs})]
        if self.n_best == 1:
            return [self._format_best(predictions[0])]
        return [self._format_n_best(index, prediction) for prediction in predictions]

    def fields(self, name: str, prediction: Prediction) -> str:
        """Return a JSON object in one line, with the fields to add to a record of the input file.

        The fields are the translation and, if requested, its score and alignment.

        name: name of the field for the translation
        """
        fields: dict[str, Any] = {name: prediction.text}
        if self.scores:
            fields["score"] = prediction.score
        if self.alignments:
            fields["alignment"] = format_pharaoh(prediction.alignment)
        return _format_json(fields)

    def _format_best(self, prediction: Prediction) -> str:
        fields = [prediction.text]
        if self.scores:
            fields.append(f"{prediction.score:.4f}")
        return " ||| ".join([*fields, *self._alignment_fields(prediction)])

    def _format_n_best(self, index: int, prediction: Prediction) -> str:
        steps = " ".join(f"{value:.4f}" for value in prediction.log_probabilities)
        fields = [str(index), prediction.text, steps, f"{prediction.score:.4f}"]
        return " ||| ".join([*fields, *self._alignment_fields(prediction)])

    def _alignment_fields(self, prediction: Prediction) -> list[str]:
        return [format_pharaoh(prediction.alignment)] if self.alignments else []

    def _to_json(self, prediction: Prediction) -> dict[str, Any]:
        record = prediction.to_json()
        if not self.alignments:
            del record["attention"], record["alignment"]
        return record


def _format_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
