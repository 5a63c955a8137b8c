"""Models that CTranslate2 does not support are rejected with every reason."""

import re
from typing import Any

import pytest
from engine_models import random_model, side

from seqloom.config.schema.decoding import BeamConfig
from seqloom.core.signature import NoSource, Signature, Tokens
from seqloom.inference.engine.support import unsupported_model, unsupported_request
from seqloom.inference.options import PredictionOptions
from seqloom.models.build import build_model
from seqloom.tasks.build import learn_task
from seqloom.tasks.token_task import TokenTask
from support.tiny_runs import LANGUAGE_MODEL, tiny_config

ATTENTION_SETTINGS = {
    "score={kind='additive'}": "model.decoder.attention.score: only dot products .* 'additive'",
    "score={kind='bilinear'}": "model.decoder.attention.score: only dot products .* 'bilinear'",
    "score={kind='rbf'}": "model.decoder.attention.score: only dot products .* 'rbf'",
    "projection='tanh'": "model.decoder.attention.projection: only 'linear' .* 'tanh'",
    "projection='none'": "model.decoder.attention.projection: only 'linear' .* 'none'",
    "values='states'": "model.decoder.attention.values: only 'learned' .* 'states'",
    "output_projection=false": "model.decoder.attention.output_projection: attention without an output projection",
    "selection='argmax'": "model.decoder.attention.selection: only 'softmax'",
}


def test_every_unsupported_selection_and_projection_is_named() -> None:
    attention = "{heads=2, selection='exact', projection='tanh', projection_layers=2}"
    reasons = unsupported_model(random_model(side(), side(attention=attention)))
    assert [reason.partition(":")[0].rpartition(".")[2] for reason in reasons] == [
        "score",
        "projection",
        "selection",
    ]


@pytest.mark.parametrize("setting", ATTENTION_SETTINGS)
def test_unsupported_attention_is_named(setting: str) -> None:
    model = random_model(side(), side(attention=f"{{heads=2, {setting}}}"))
    (reason,) = unsupported_model(model)
    assert re.match(ATTENTION_SETTINGS[setting], reason)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"embedding": "{kind='one-hot'}"},
            ["model.encoder.embedding: one-hot", "embedding.width"],
        ),
        ({"embedding": "{width=6}"}, ["model.encoder.embedding.width: an embedding width that"]),
        ({"positions": "{kind='one-hot'}"}, ["model.encoder.positions: appended"]),
        ({"positions": "{kind='learned', join='append'}"}, ["model.encoder.positions: appended"]),
    ],
)
def test_unsupported_embedding_is_named(settings: dict[str, str], expected: list[str]) -> None:
    reasons = unsupported_model(random_model(side(**settings), side()))
    assert len(reasons) == len(expected)
    assert all(part in reason for part, reason in zip(expected, reasons, strict=True))


def test_missing_residual_connection_is_not_supported() -> None:
    (reason,) = unsupported_model(random_model(side(remove_residual="1"), side()))
    assert (
        reason
        == "model.encoder.remove_residual: a layer without residual connection is not supported"
    )


def test_copy_mechanism_is_not_supported() -> None:
    (reason,) = unsupported_model(random_model(side(), side(copying="true"), tie="all"))
    assert reason == "model.decoder.copying: the copy mechanism is not supported"


def test_all_reasons_are_listed() -> None:
    attention = "{heads=2, score={kind='rbf'}, selection='argmax', output_projection=false}"
    model = random_model(side(attention=attention), side(positions="{kind='one-hot'}"))
    assert len(unsupported_model(model)) == 4


def test_recurrent_models_and_language_models_are_not_supported() -> None:
    recurrent = build_model(tiny_config().model, Signature(Tokens(9), Tokens(9), shared=False))
    assert [reason.partition(",")[0] for reason in unsupported_model(recurrent)] == [
        "model.encoder is recurrent",
        "model.decoder is recurrent",
    ]
    language_model = build_model(
        tiny_config(*LANGUAGE_MODEL).model, Signature(NoSource(), Tokens(9), shared=False)
    )
    assert unsupported_model(language_model) == [
        "a language model has no encoder and runs on torch"
    ]


@pytest.mark.parametrize(
    ("settings", "n_best", "is_supported"),
    [
        ({}, 4, True),
        ({}, 5, False),
        ({"finished": 8}, 5, True),
        ({"finished": 1}, 1, True),
        ({"length_counts_end": True}, 5, True),
        ({"length_penalty": 0.0}, 5, True),
    ],
)
def test_all_saved_outputs_in_order_need_end_to_count(
    settings: dict[str, Any], n_best: int, is_supported: bool
) -> None:
    """CTranslate2 counts END when it selects which of the saved outputs it returns."""
    task = learn_task(tiny_config())
    assert isinstance(task, TokenTask)
    options = PredictionOptions(n_best, attention=False)
    decoding = BeamConfig(width=5, **settings)
    signature = Signature(Tokens(20), Tokens(20), shared=False)
    reasons = unsupported_request(decoding, options, signature, task.target_tokenizer)
    assert [reason.partition(":")[0] for reason in reasons] == (
        [] if is_supported else ["decoding.length_counts_end"]
    )
