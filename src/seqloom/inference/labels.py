"""Labels of texts and of sequences of vectors, with their probabilities."""

import math
from collections.abc import Sequence
from typing import Any

from seqloom.config.schema.corpora import FramesConfig
from seqloom.data.modalities.frames import read_frame_sequences
from seqloom.data.readers.text_files import locate
from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run


def read_sequences(run: Run, text: str) -> list[tuple[str | None, str]]:
    """Return (name, frames as text) for each sequence of an input.

    The input is the path of a CSV file with sequences, or one sequence of frames as text. A
    sequence that is given as text has no name: its name is None.
    """
    if not text.endswith((".csv", ".csv.gz")):
        return [(None, text)]
    corpus = run.config.data.train[0]
    columns = corpus if isinstance(corpus, FramesConfig) else FramesConfig(path=text)
    path = locate(text, ".")
    return [
        (each.name, each.text) for each in read_frame_sequences(path, columns, with_labels=False)
    ]


def text_labels(predictions: Sequence[Prediction]) -> list[dict[str, Any]]:
    """Return the labels of one text, most likely first. A blank text has no labels."""
    return [
        {"label": each.text, "probability": math.exp(sum(each.log_probabilities))}
        for each in predictions
        if each.text
    ]


def token_labels(prediction: Prediction) -> list[dict[str, Any]]:
    """Return the label and probability of each token except END."""
    return [
        {"token": token, "label": name, "probability": math.exp(log_probability)}
        for token, name, log_probability in list(
            zip(
                prediction.source_pieces,
                prediction.pieces,
                prediction.log_probabilities,
                strict=True,
            )
        )[:-1]
    ]
