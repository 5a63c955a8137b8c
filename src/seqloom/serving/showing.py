"""Predictions as answers."""

import math

from seqloom.runs.prediction import Prediction
from seqloom.serving.schema import Number, Output


def number(value: float) -> Number:
    """JSON knows no infinity."""
    return value if math.isfinite(value) else None


def shown(
    prediction: Prediction, *, alignment: bool = False, attention: bool = False, heads: bool = False
) -> Output:
    """An output, with as much of where it looked as was asked for."""
    looked = prediction.attention if attention else None
    by_head = prediction.heads if heads else None
    return Output(
        text=prediction.text,
        score=number(prediction.score),
        pieces=list(prediction.pieces),
        tokens=list(prediction.tokens),
        source_pieces=list(prediction.source_pieces),
        log_probabilities=[number(one) for one in prediction.log_probabilities],
        finished=prediction.finished,
        alignment=list(prediction.alignment) if alignment else None,
        attention=None if looked is None else looked.tolist(),
        heads=None if by_head is None else by_head.tolist(),
    )
