"""Compiled searches: equal to the plain search for every length, with one compilation."""

import copy
from collections.abc import Mapping, Sequence

import pytest
import torch

from seqloom.config.schema.model import ModelConfig
from seqloom.core.batch import Padded
from seqloom.core.signature import Signature, Tokens
from seqloom.decoding.beam import Beam
from seqloom.decoding.fast import compiled
from seqloom.decoding.fast.captured import SearchProgram
from seqloom.decoding.fast.compiled import CompiledSearch, unsupported_reason
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.rules import Rules
from seqloom.decoding.search import SearchRequest
from seqloom.decoding.tracer import Tracer
from seqloom.models.build import build_model
from seqloom.models.interface import Memory
from seqloom.models.seq2seq import Model

VOCABULARY = 40
TRANSFORMER: dict[str, dict[str, object]] = {
    "encoder": {"kind": "transformer", "width": 16, "layers": 1, "feedforward": 24},
    "decoder": {
        "kind": "transformer",
        "width": 16,
        "layers": 1,
        "feedforward": 24,
        "attention": {"heads": 2},
        "positions": {"kind": "learned", "max_length": 24},
    },
}
TWO_LAYERS = copy.deepcopy(TRANSFORMER)
TWO_LAYERS["decoder"]["layers"] = 2
RECURRENT_WITH_COPYING: dict[str, object] = {
    "encoder": {"kind": "recurrent", "cell": "gru", "width": 8},
    "decoder": {"kind": "recurrent", "cell": "lstm", "width": 16, "copying": True},
}
POSITIONS_ONLY: dict[str, object] = {
    "encoder": {"kind": "recurrent", "cell": "gru", "width": 8},
    "decoder": {
        "kind": "recurrent",
        "cell": "rnn",
        "width": 16,
        "context": ["input"],
        "attention": {"kind": "attention", "score": {"kind": "position", "max_target_length": 24}},
    },
}
RECURRENT_WITHOUT_ATTENTION: dict[str, object] = {
    "encoder": {"kind": "recurrent", "cell": "rnn", "width": 8},
    "decoder": {"kind": "recurrent", "cell": "rnn", "width": 16, "attention": {"kind": "none"}},
}


def build_random_model(config: Mapping[str, object], seed: int = 0) -> Model:
    torch.manual_seed(seed)
    tokens = Tokens(VOCABULARY)
    signature = Signature(tokens, tokens, False)
    model = build_model(ModelConfig.model_validate(config), signature).eval().requires_grad_(False)
    for weight in model.parameters():  # large weights, so that every path affects the outputs
        torch.nn.init.normal_(weight, std=0.4)
    return model


def encode_random_sources(model: Model, *lengths: int) -> Memory:
    generator = torch.Generator().manual_seed(sum(lengths))
    size = (len(lengths), max(lengths))
    source = Padded(
        torch.randint(4, VOCABULARY, size, generator=generator), torch.tensor(list(lengths))
    )
    with torch.inference_mode():
        return model.encode(source, len(lengths))


def assert_compiled_equals_plain(
    search: Greedy | Beam, model: Model, length: int, request: SearchRequest
) -> None:
    memory = encode_random_sources(model, length)
    [hypotheses] = CompiledSearch(search)(model.decoder, memory, request)
    [expected] = search(model.decoder, memory, request)
    for first, second in zip(hypotheses, expected, strict=True):
        assert (first.tokens, first.finished) == (second.tokens, second.finished)
        assert first.log_probabilities == pytest.approx(second.log_probabilities, abs=1e-4)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[SearchProgram]:
    """The programs that were compiled, without autotuning, which is slow."""
    monkeypatch.setitem(compiled.INDUCTOR_SETTINGS, "max_autotune", False)
    programs: list[SearchProgram] = []
    original = compiled.compile_step

    def count_and_compile(program: SearchProgram) -> compiled.CompiledAdvance:
        programs.append(program)
        return original(program)

    monkeypatch.setattr(compiled, "compile_step", count_and_compile)
    return programs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "search"),
    [
        (TRANSFORMER, Beam(3, rules=Rules(min_length=2, no_repeat_ngram=2))),
        pytest.param(
            RECURRENT_WITH_COPYING,
            Beam(2, finished=1, length_penalty=0.6),
            marks=pytest.mark.long,
        ),
        pytest.param(POSITIONS_ONLY, Beam(2), marks=pytest.mark.long),
        pytest.param(
            TWO_LAYERS,
            Beam(3, stopping="estimate", extra_candidate=True, rank_unfinished=True),
            marks=pytest.mark.long,
        ),
    ],
    ids=["transformer", "recurrent", "positions only", "transformer, search of transformers"],
)
def test_one_compilation_serves_all_lengths(
    config: Mapping[str, object], search: Beam, compilations: list[SearchProgram]
) -> None:
    model = build_random_model(config)
    prefixes: list[Sequence[int] | None] = [None, [], [7], [8, 5, 5]]
    for length in (1, 2, 11, 30):
        for max_length in (1, 2, 9, 24):
            for prefix in prefixes[: min(max_length, 4)]:
                request = SearchRequest(
                    [max_length], None if prefix is None else [prefix], n_best=2
                )
                assert_compiled_equals_plain(search, model, length, request)
    assert len(compilations) == 1


@pytest.mark.slow
@pytest.mark.long
def test_each_model_and_each_change_of_weights_is_compiled_separately(
    compilations: list[SearchProgram],
) -> None:
    first = build_random_model(RECURRENT_WITHOUT_ATTENTION)
    second = build_random_model(RECURRENT_WITHOUT_ATTENTION, seed=1)
    for model in (first, second, first):
        assert_compiled_equals_plain(Greedy(), model, 5, SearchRequest([12]))
    assert len(compilations) == 2
    first.decoder.readout.get_submodule("output").get_parameter("weight").mul_(-1)
    assert_compiled_equals_plain(Greedy(), first, 5, SearchRequest([12]))
    assert len(compilations) == 3


def test_batches_attention_and_traces_use_the_plain_search(
    compilations: list[SearchProgram],
) -> None:
    model, search = build_random_model(RECURRENT_WITH_COPYING), Beam(2)
    batch, request = encode_random_sources(model, 3, 5), SearchRequest([6, 7], n_best=2)
    expected = search(model.decoder, batch, request)
    assert CompiledSearch(search)(model.decoder, batch, request) == expected
    single = encode_random_sources(model, 4)
    [[hypothesis, *_]] = CompiledSearch(search)(
        model.decoder, single, SearchRequest([6], keep_attention=lambda weights: weights)
    )
    assert hypothesis.attention is not None
    tracer = Tracer()
    CompiledSearch(search)(model.decoder, single, SearchRequest([6], tracer=tracer))
    assert tracer.traces
    assert compilations == []


@pytest.mark.parametrize("version", ["2.9.0", "2.10.1+cpu", "2.11.0a0+git1234567", "3.0.0.dev2026"])
def test_supported_torch_version_has_no_reason(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    assert unsupported_reason() is None


@pytest.mark.parametrize("version", ["2.6.0", "2.8.1+cu126"])
def test_old_torch_version_is_named_in_the_reason(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    assert unsupported_reason() == (
        f"The compiled engine needs torch 2.9 or newer; this is {version.split('+')[0]}. "
        "Use --engine auto."
    )


def test_installed_inductor_has_all_settings() -> None:
    if unsupported_reason() is not None:
        pytest.skip("this version of torch cannot compile a search")
    import torch._inductor.config as inductor

    assert [name for name in compiled.INDUCTOR_SETTINGS if not hasattr(inductor, name)] == []
