"""Every Transformer that CTranslate2 supports computes the same as with torch."""

from pathlib import Path

import numpy as np
import pytest
from engine_models import (
    VOCABULARY,
    convert_and_load,
    random_model,
    random_sources,
    score_with_torch,
    search_with_torch,
    side,
)

from seqloom.config.schema.decoding import GreedyConfig
from seqloom.decoding.search import SearchRequest
from seqloom.inference.engine.store import measure_agreement
from seqloom.inference.engine.support import unsupported_model

POSITIONS = {
    "sinusoidal": "{kind='sinusoidal'}",
    "learned": "{kind='learned', max_length=24}",
    "one-hot": "{kind='one-hot', max_length=8, join='add'}",
    "rotary": "{kind='rotary'}",
    "marian": "{kind='sinusoidal', frequencies='vaswani', layout='halves'}",
    "m2m100": "{kind='sinusoidal', frequencies='fairseq', layout='halves', offset=2}",
    "no-positions": "{kind='none'}",
}
BOTH_SIDES = {
    f"{norm}-{activation}-{name}": side(
        norm=f"'{norm}'", activation=f"'{activation}'", positions=positions
    )
    for norm in ("pre", "post")
    for activation in ("relu", "gelu")
    for name, positions in POSITIONS.items()
}
BOTH_SIDES |= {
    "not-scaled": side(attention="{heads=2, score={kind='dot', scale='one'}}"),
    "scaled-by-width": side(attention="{heads=2, score={kind='dot', scale='width'}}"),
    "product-of-an-extension": side(attention="{heads=2, score={kind='custom_parts:ThirdOfDot'}}"),
    "wide-attention": side(attention="{heads=2, width=24}"),
    "one-head": side(attention="{heads=1}"),
    "gelu-tanh": side(activation="'gelu-tanh'"),
    "silu": side(activation="'silu'"),
}
MODELS = {name: (part, part, "none") for name, part in BOTH_SIDES.items()}
MODELS |= {
    "tied-output": (side(), side(), "output"),
    "all-tied": (side(), side(), "all"),
    "deep-encoder": (side(layers="4"), side(layers="1"), "none"),
    "wide-encoder": (side(width="12", feedforward="20"), side(), "output"),
    "start-zero": (side(), side(start="'zero'"), "all"),
    "start-end": (side(), side(start="'end'"), "output"),
    "start-padding": (side(), side(start="'padding'"), "none"),
    "no-special-outputs": (side(), side(special_outputs="false"), "all"),
    "different-sides": (
        side(width="12", norm="'post'", attention="{heads=3}", positions="{kind='rotary'}"),
        side(activation="'gelu'", positions="{kind='learned', max_length=30}"),
        "none",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_converted_model_computes_the_same(name: str, tmp_path: Path) -> None:
    model = random_model(*MODELS[name])
    assert unsupported_model(model) == []
    engine = convert_and_load(model, tmp_path)
    max_length = min(7, (model.max_source_length or 99) - 1)
    batch = random_sources(max_length=max_length)
    random = np.random.default_rng(3)
    targets = [
        random.integers(4, VOCABULARY, length).tolist() for length in random.integers(0, 7, 20)
    ]
    expected = score_with_torch(model, batch, targets)
    scores = engine.score(
        [(one.source_tokens, target) for one, target in zip(batch, targets, strict=True)]
    )
    for expected_row, row in zip(expected, scores, strict=True):
        assert row == pytest.approx(expected_row, abs=1e-4)

    decoding, request = GreedyConfig(length_penalty=0.7), SearchRequest([8] * len(batch))
    found = engine.search(batch, request, decoding, "tokens")
    torch_found = search_with_torch(model, batch, request, decoding)
    answered = [
        (ours[0], theirs[0]) for ours, theirs in zip(torch_found, found, strict=True) if theirs
    ]
    assert answered
    for ours, theirs in answered:
        assert theirs.tokens == ours.tokens
        assert theirs.score == pytest.approx(ours.score, abs=1e-4)
        assert theirs.log_probabilities == pytest.approx(ours.log_probabilities, abs=1e-4)
    assert measure_agreement(model, engine).is_exact
