"""Compiled steps find what the plain search finds, for every length, from one compilation."""

from collections.abc import Sequence

import pytest
import torch

from seqloom.config.schema.model import ModelConfig
from seqloom.core.batch import Padded
from seqloom.core.signature import Signature, Tokens
from seqloom.decoding import compiled
from seqloom.decoding.beam import Beam
from seqloom.decoding.captured import Program
from seqloom.decoding.compiled import Compiled
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.recorder import Recorder
from seqloom.decoding.rules import Rules
from seqloom.decoding.search import Request, Search
from seqloom.models.build import build_model
from seqloom.models.interface import Memory
from seqloom.models.seq2seq import Model

VOCABULARY = 40
TRANSFORMER: dict[str, object] = {
    "encoder": {"kind": "transformer", "width": 16, "layers": 1, "feedforward": 24},
    "decoder": {
        "kind": "transformer",
        "width": 16,
        "layers": 2,
        "feedforward": 24,
        "attention": {"heads": 2},
        "positions": {"kind": "learned", "max_length": 24},
    },
}
RECURRENT: dict[str, object] = {
    "encoder": {"kind": "recurrent", "cell": "gru", "width": 8},
    "decoder": {"kind": "recurrent", "cell": "lstm", "width": 16, "copying": True},
}

PLAIN: dict[str, object] = {
    "encoder": {"kind": "recurrent", "cell": "rnn", "width": 8},
    "decoder": {"kind": "recurrent", "cell": "rnn", "width": 16, "attention": {"kind": "none"}},
}


def some_model(parts: dict[str, object], seed: int = 0) -> Model:
    torch.manual_seed(seed)
    config, ids = ModelConfig.model_validate(parts), Tokens(VOCABULARY)
    model = build_model(config, Signature(ids, ids, False)).eval().requires_grad_(False)
    for weight in model.parameters():  # large, so that every path matters
        torch.nn.init.normal_(weight, std=0.4)
    return model


def read(model: Model, *lengths: int) -> Memory:
    generator = torch.Generator().manual_seed(sum(lengths))
    size = (len(lengths), max(lengths))
    source = Padded(
        torch.randint(4, VOCABULARY, size, generator=generator), torch.tensor(list(lengths))
    )
    with torch.inference_mode():
        return model.encode(source, len(lengths))


def assert_same(search: Search, other: Search, model: Model, length: int, wish: Request) -> None:
    memory = read(model, length)
    found, expected = (
        [(one.tokens, one.finished, *one.log_probabilities) for one in hypotheses]
        for [hypotheses] in (each(model.decoder, memory, wish) for each in (search, other))
    )
    for one, another in zip(found, expected, strict=True):
        assert one[:2] == another[:2]
        assert one[2:] == pytest.approx(another[2:], abs=1e-4)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One entry for each time that something is compiled; which is not tuned here, to be quick."""
    monkeypatch.setitem(compiled.SETTINGS, "max_autotune", False)
    made: list[object] = []
    real = compiled.compiled

    def counted(program: Program) -> compiled.Advance:
        made.append(program)
        return real(program)

    monkeypatch.setattr(compiled, "compiled", counted)
    return made


@pytest.mark.parametrize(
    ("parts", "search"),
    [
        (TRANSFORMER, Beam(3, rules=Rules(min_length=2, no_repeat_ngram=2))),
        (RECURRENT, Beam(2, finished=1, length_exponent=0.6)),
    ],
    ids=["transformer", "recurrent"],
)
def test_one_compilation_serves_all_lengths(
    parts: dict[str, object], search: Beam, compilations: list[object]
) -> None:
    model = some_model(parts)
    prefixes: list[Sequence[int] | None] = [None, [], [7], [8, 5, 5]]
    for length in (1, 2, 3, 11, 30):
        for limit in (1, 2, 4, 9, 24):
            for prefix in prefixes[: min(limit, 4)]:
                wish = Request([limit], None if prefix is None else [prefix], n_best=2)
                assert_same(Compiled(search), search, model, length, wish)
    assert len(compilations) == 1


def test_each_model_has_a_step_of_its_own_and_other_weights_another(
    compilations: list[object],
) -> None:
    search, one, other = Greedy(), some_model(PLAIN), some_model(PLAIN, seed=1)
    for model in (one, other, one):
        assert_same(Compiled(search), search, model, 5, Request([12]))
    assert len(compilations) == 2
    one.decoder.readout.get_submodule("output").get_parameter("weight").mul_(-1)
    assert_same(Compiled(search), search, one, 5, Request([12]))
    assert len(compilations) == 3


def test_several_sources_and_who_watches_are_searched_as_ever(compilations: list[object]) -> None:
    model, search = some_model(RECURRENT), Beam(2)
    together = read(model, 3, 5)
    asked = Request([6, 7], n_best=2)
    assert Compiled(search)(model.decoder, together, asked) == search(
        model.decoder, together, asked
    )
    alone = read(model, 4)
    [[looked, *_]] = Compiled(search)(
        model.decoder, alone, Request([6], keep_attention=lambda weights: weights)
    )
    assert looked.attention is not None
    recorder = Recorder()
    Compiled(search)(model.decoder, alone, Request([6], recorder=recorder))
    assert recorder.records
    assert compilations == []
