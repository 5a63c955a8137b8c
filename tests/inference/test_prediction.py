"""Prediction: JSON values and attention maps."""

import json

import torch

from seqloom.inference.prediction import OutputAttention, Prediction

PREDICTION = Prediction(
    "ab c",
    -0.5,
    pieces=("a", "b", "c", "</s>"),
    source_pieces=("x", "y", "</s>"),
    attention_values=OutputAttention(
        torch.tensor([[0.8, 0.1, 0.1], [0.6, 0.3, 0.1], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]]),
        word_of=(0, 0, 1, -1),
        source_word_of=(0, 1, -1),
        source_text="x y",
    ),
)


def test_json_contains_heads_only_if_requested() -> None:
    values = json.loads(json.dumps(PREDICTION.to_json()))
    assert values.keys() == {
        "text",
        "score",
        "pieces",
        "source_pieces",
        "log_probabilities",
        "attention",
        "finished",
        "alignment",
        "warnings",
        "unknown",
        "copied",
        "copied_parts",
    }
    with_heads = Prediction("a", 0.0).with_attention(heads=torch.zeros(1, 2, 2, 1))
    assert with_heads.to_json()["heads"] == [[[[0.0], [0.0]], [[0.0], [0.0]]]]


def test_attention_map_is_between_pieces_or_words() -> None:
    assert PREDICTION.attention is not None
    pieces = PREDICTION.attention_map(PREDICTION.attention, merged=False)
    assert pieces.weights.shape == (4, 3)
    words = PREDICTION.attention_map(PREDICTION.attention)
    assert words.weights.shape == (3, 3)
    assert words.weights.sum(axis=1).round(6).tolist() == [1, 1, 1]
