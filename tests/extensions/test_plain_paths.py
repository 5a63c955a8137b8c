"""Fast versions are not used for extensions that they do not know."""

from typing import Any

import pytest
import torch
from custom_parts import Cosine, ForbidAll, NegatedDot, WeightedDot

from seqloom.config.schema.decoding import (
    BeamConfig,
    ExhaustiveConfig,
    GreedyConfig,
    SampleConfig,
    SearchConfig,
)
from seqloom.core.signature import Signature, Tokens
from seqloom.decoding.beam import Beam
from seqloom.decoding.build import build_search
from seqloom.decoding.fast.select import select_fastest
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.rules import FORBIDDEN, Rules
from seqloom.decoding.search import Search, SearchRequest
from seqloom.decoding.trace import Reason
from seqloom.decoding.tracer import Tracer
from seqloom.inference.engine.compiled import unsupported_by_compiled
from seqloom.inference.engine.support import unsupported_model, unsupported_request
from seqloom.inference.options import TEXT_ONLY
from seqloom.models.build import build_model
from seqloom.models.transformer import TransformerEncoder
from seqloom.nn.attention import AdditiveScore, AttentionScore, DotScore
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.text.preprocessing import Preprocessing
from seqloom.text.vocabulary import END, START
from seqloom.text.vocabulary_tokenizer import CharacterTokenizer
from support.tiny_runs import TRANSFORMER, tiny_config
from support.toy_decoders import EchoDecoder, random_memory

SIGNATURE = Signature(Tokens(12), Tokens(12), shared=False)
TOKENIZER = CharacterTokenizer.train(["abcd"], Preprocessing())  # ids 4 to 7
RULES: Any = [{"kind": "custom_parts:ForbidText", "text": "ac"}]
FORBIDDEN_IDS = set(TOKENIZER.encode("ac"))
SEARCHES: dict[str, SearchConfig] = {
    "greedy": GreedyConfig(rules=RULES),
    "beam": BeamConfig(width=3, rules=RULES),
    "sample": SampleConfig(samples=4, rules=RULES),
    "exhaustive": ExhaustiveConfig(rules=RULES),
}
every_search = pytest.mark.parametrize("config", SEARCHES.values(), ids=SEARCHES)


@pytest.mark.parametrize(
    "score", [Cosine(0.5), NegatedDot(4), WeightedDot(4, 4, 2)], ids=lambda one: type(one).__name__
)
@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_computes_the_score_of_the_extension(
    score: AttentionScore, is_causal: bool
) -> None:
    attention = MultiHeadAttention(8, heads=2, score=score).eval()
    states = torch.randn(2, 5, 8)
    assert not attention.is_plain_softmax
    expected = attention(states, is_causal=is_causal).context
    torch.testing.assert_close(attention.attend_self(states, is_causal=is_causal), expected)


def test_a_score_that_overrides_compare_is_not_fused() -> None:
    class Twice(DotScore):
        def compare(
            self, queries: torch.Tensor, prepared: torch.Tensor, _: object = 0
        ) -> torch.Tensor:
            return 2 * queries @ prepared.transpose(-2, -1)

    class Renamed(DotScore):
        """Changes nothing."""

    assert not Twice.is_product
    assert Renamed.is_product
    assert not AdditiveScore.is_product


def test_a_score_cannot_override_forward() -> None:
    with pytest.raises(TypeError, match="Direct: override compare, not forward"):

        class Direct(AttentionScore):
            def forward(
                self, queries: torch.Tensor, keys: torch.Tensor, _: object = 0
            ) -> torch.Tensor:
                return queries @ keys.transpose(-2, -1)


@pytest.mark.parametrize("name", ["Cosine", "NegatedDot", "WeightedDot"])
def test_ctranslate2_refuses_a_score_of_an_extension(name: str) -> None:
    score = f"model.decoder.attention.score={{kind='custom_parts:{name}'}}"
    model = build_model(tiny_config(*TRANSFORMER, score).model, SIGNATURE)
    [reason] = unsupported_model(model)
    assert reason.startswith("model.decoder.attention.score: only dot products are supported")
    assert not unsupported_model(build_model(tiny_config(*TRANSFORMER).model, SIGNATURE))


def test_ctranslate2_refuses_a_subclass_of_a_transformer() -> None:
    class OtherEncoder(TransformerEncoder):
        pass

    model = build_model(tiny_config(*TRANSFORMER).model, SIGNATURE)
    assert model.encoder is not None
    model.encoder.__class__ = OtherEncoder
    [reason] = unsupported_model(model)
    assert "model.encoder is not a Transformer (OtherEncoder)" in reason


def test_fast_engines_refuse_rules_of_extensions() -> None:
    model = build_model(tiny_config(*TRANSFORMER).model, SIGNATURE)
    config = SEARCHES["greedy"]
    [reason] = unsupported_request(config, TEXT_ONLY, SIGNATURE, TOKENIZER)
    assert reason == (
        "decoding.rules: only torch applies rules outside seqloom ('custom_parts:ForbidText')"
    )
    reasons = list(unsupported_by_compiled(model, config, TEXT_ONLY, on_cpu=True))
    assert "decoding.rules: rules outside seqloom cannot be compiled" in reasons


@pytest.mark.parametrize("name", ["greedy", "beam"])
@pytest.mark.parametrize("compiled", [False, True])
def test_searches_with_rules_of_extensions_are_not_captured(name: str, compiled: bool) -> None:
    search = build_search(SEARCHES[name], TOKENIZER)
    gpu = torch.device("cuda")
    assert select_fastest(search, gpu, compiled=compiled) is search
    plain: Search = Greedy() if name == "greedy" else Beam(3)
    assert select_fastest(plain, gpu, compiled=compiled) is not plain


@every_search
def test_every_search_applies_rules_of_extensions(config: SearchConfig) -> None:
    request = SearchRequest(max_lengths=[4, 4], n_best=2)
    search = build_search(config, TOKENIZER)
    outputs = search(EchoDecoder(3, words=4), random_memory(3, (2, 3)), request)
    tokens = {token for each in outputs for one in each for token in one.tokens}
    assert tokens
    assert not tokens & FORBIDDEN_IDS


def test_rules_of_extensions_keep_the_other_probabilities() -> None:
    scores = torch.randn(2, TOKENIZER.size).log_softmax(dim=-1)
    [rule] = build_search(SEARCHES["greedy"], TOKENIZER).rules.extensions  # type: ignore[attr-defined]
    result = Rules(extensions=(rule,))(scores, torch.tensor([[START], [START]]), None)
    allowed = result > FORBIDDEN
    assert torch.equal(result[allowed], scores[allowed])
    assert not allowed[:, sorted(FORBIDDEN_IDS)].any()


@pytest.mark.parametrize("min_length", [0, 3])
def test_end_is_allowed_if_an_extension_forbids_everything(min_length: int) -> None:
    scores = torch.randn(2, TOKENIZER.size).log_softmax(dim=-1)
    rules = Rules(min_length=min_length, extensions=(ForbidAll(),))
    result = rules(scores, torch.tensor([[START], [START]]), None)
    assert (result > FORBIDDEN).nonzero().tolist() == [[0, END], [1, END]]
    assert torch.equal(result[:, END], scores[:, END])


def test_a_forced_token_has_priority_over_an_extension() -> None:
    scores = torch.randn(1, TOKENIZER.size).log_softmax(dim=-1)
    result = Rules(extensions=(ForbidAll(),))(scores, torch.tensor([[START]]), torch.tensor([5]))
    assert (result > FORBIDDEN).nonzero().tolist() == [[0, 5]]


def test_a_trace_names_the_rules_as_the_reason() -> None:
    tracer = Tracer(min_candidates=8)
    request = SearchRequest(max_lengths=[3], tracer=tracer)
    build_search(SEARCHES["beam"], TOKENIZER)(
        EchoDecoder(3, words=4), random_memory(3, (2,)), request
    )
    [trace] = tracer.traces
    reasons = {
        candidate.reason
        for step in trace.steps
        for candidate in step
        if candidate.token in FORBIDDEN_IDS
    }
    assert reasons == {Reason.EXTENSION}
