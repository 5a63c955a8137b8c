"""Every number in the five lecture documents, computed with the code that users run.

L0  lecture 14, sequence to sequence and attention    L3  applied deep learning, chapter 7
L1  slides, sequence to sequence                      L4  discussion 8, attention
L2  notes, translation, attention and the Transformer (states no number of its own)
"""

import functools
import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seqloom.config.schema.model import ModelConfig
from seqloom.core.signature import NoSource, Signature, Tokens
from seqloom.decoding.beam import Beam
from seqloom.decoding.exhaustive import Exhaustive
from seqloom.decoding.forced import force
from seqloom.decoding.rules import Rules
from seqloom.decoding.search import Search, SearchRequest
from seqloom.decoding.trace import Fate, Reason
from seqloom.decoding.tracer import Tracer
from seqloom.inference.options import TEXT_ONLY
from seqloom.inference.predictor import Predictor
from seqloom.models.build import build_model
from seqloom.models.interface import DecoderOutput
from seqloom.models.seq2seq import Model
from seqloom.nn.attention import DotScore, RbfScore, attention_weights
from seqloom.nn.embedding import Readout
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.positions import Frequencies, angular_frequencies, sinusoid
from seqloom.tasks.build import learn_task
from seqloom.tasks.token_task import TokenTask
from seqloom.text.vocabulary import END, PAD, SPECIAL_TOKENS, START
from support.tiny_runs import LANGUAGE_MODEL, tiny_config
from support.toy_decoders import TableDecoder, random_memory

seeds = st.integers(0, 10**6)
no_deadline = settings(deadline=None)
Scale = Literal["one", "sqrt", "width"]


def language_model(words: int, seed: int = 0) -> Model:
    """A small recurrent decoder without an encoder, with this many words."""
    torch.manual_seed(seed)
    decoder = {
        "kind": "recurrent",
        "width": 6,
        "initial_state": "zeros",
        "attention": {"kind": "none"},
    }
    config = ModelConfig.model_validate({"encoder": {"kind": "none"}, "decoder": decoder})
    signature = Signature(NoSource(), Tokens(len(SPECIAL_TOKENS) + words), shared=False)
    return build_model(config, signature).double().eval()


# L4, section 2: self-attention by hand


def lecture_attention() -> MultiHeadAttention:
    attention = MultiHeadAttention(
        2, score=DotScore("one", 2), output_projection=False, selection="argmax"
    )
    weights = [
        (attention.to_query, [[1.0, 0.0], [2.0, 9.0]]),
        (attention.to_key, [[0.0, 1.0], [6.0, 0.0]]),
        (attention.to_value, [[4.0, 3.0], [9.0, 1.0]]),
    ]
    for part, weight in weights:
        part.load_state_dict({"weight": torch.tensor(weight), "bias": torch.zeros(2)})
    return attention


STATES = torch.tensor([[[5.0, 1.0], [4.0, 3.0], [-2.0, 6.0]]])  # h1, h2, h3: (1, 3, 2)


def test_l4_the_scores_of_h2_are_1054_852_and_minus_396() -> None:
    attention = lecture_attention()
    queries = attention.to_query(STATES[:, 1:2]).unsqueeze(1)  # (1, 1, 1, 2)
    keys = attention.project_keys_values(STATES).keys  # (1, 1, 3, 2)
    scores = attention.score.compare(queries, keys)
    assert scores.flatten().tolist() == [1054, 852, -396]


def test_l4_with_argmax_the_context_of_h2_is_23_46() -> None:
    attention = lecture_attention()
    context, weights = attention(STATES[:, 1:2], STATES)
    assert weights.flatten().tolist() == [1, 0, 0]
    assert context.flatten().tolist() == [23, 46]
    memory = attention.project_keys_values(STATES)
    assert attention.attend(STATES[:, 1:2], memory).flatten().tolist() == [23, 46]


# L4: positions


@no_deadline
@given(st.lists(st.integers(0, 5000), min_size=1, max_size=5), st.integers(1, 40))
def test_l4_positions_are_sines_and_cosines_of_decreasing_frequency(
    times: list[int], width: int
) -> None:
    """PE(t) = [sin(ω_1 t), cos(ω_1 t), sin(ω_2 t), …], ω_k = 10000^(-2k/d)"""
    rows = sinusoid(torch.tensor(times), width)
    assert rows.shape == (len(times), width)
    for row, t in zip(rows.tolist(), times, strict=True):
        expected = []
        for k in range(1, width + 1):
            frequency = 1 / 10_000 ** (2 * k / width)
            expected += [math.sin(frequency * t), math.cos(frequency * t)]
        assert row == pytest.approx(expected[:width], abs=1e-9)


def test_l4_wavelengths_run_from_2_pi_to_10000_times_2_pi_only_with_another_formula() -> None:
    """ "PE forms a geometric progression from 2π to 10000·2π on the wavelengths", for d = 64.

    With ω_k = 10000^(-2k/d), k from 1 misses the first wavelength and k from 0 the last.
    """
    circle, ends = 2 * math.pi, {}
    for form in get_args(Frequencies):
        wavelengths = circle / angular_frequencies(64, form)
        ratios = wavelengths[1:] / wavelengths[:-1]
        torch.testing.assert_close(ratios, torch.full_like(ratios, float(ratios[0])))
        ends[form] = [float(wavelengths[0]) / circle, float(wavelengths[-1]) / circle]
    assert ends["lecture"] == pytest.approx([10_000 ** (2 / 64), 10_000])
    assert ends["vaswani"] == pytest.approx([1, 10_000 ** (62 / 64)])
    assert ends["fairseq"] == pytest.approx([1, 10_000])


# L1: beam search


TRANSLATIONS = {
    "he hit me with a pie": (-4.5, [-0.7, -1.0, -0.8, -0.7, -0.4, -0.5, -0.4]),
    "he threw a pie": (-3.2, [-0.7, -1.1, -0.6, -0.5, -0.3]),
    "I was hit with a pie that he threw": (
        -7.2,
        [-0.9, -1.0, -0.8, -0.9, -0.5, -0.6, -1.0, -0.6, -0.5, -0.4],
    ),
}
"""log p of each output, as the lecture gives it; and log p of each word and of END, such that they
add up to it"""
WORDS = list(dict.fromkeys(" ".join(TRANSLATIONS).split()))


def token_ids(text: str) -> tuple[int, ...]:
    return tuple(len(SPECIAL_TOKENS) + WORDS.index(word) for word in text.split())


def translations_decoder() -> TableDecoder:
    """A decoder with three possible outputs. PAD has the rest of the probability at each step; no
    search generates it."""
    only_pad = [1.0, *[0.0] * (len(SPECIAL_TOKENS) + len(WORDS) - 1)]
    table: dict[tuple[int, ...], list[float]] = {}
    for text, (_, log_probabilities) in TRANSLATIONS.items():
        output = (*token_ids(text), END)
        for position, value in enumerate(log_probabilities):
            row = table.setdefault(output[:position], list(only_pad))
            row[output[position]] = math.exp(value)
            row[PAD] = 1 - sum(row[1:])
    return TableDecoder(table, only_pad)


@pytest.mark.parametrize("build_search", [partial(Beam, 3), partial(Exhaustive, 10**11)])
@pytest.mark.parametrize(
    ("changes", "scores"),
    [
        ({"length_penalty": 0.0}, [-4.5, -3.2, -7.2]),
        ({}, [-0.75, -0.8, -0.8]),
        ({"length_counts_end": True}, [-4.5 / 7, -0.64, -0.72]),
    ],
)
def test_l1_the_four_words_win_by_log_p_and_the_six_words_win_per_word(
    build_search: Callable[..., Search], changes: dict[str, Any], scores: list[float]
) -> None:
    """If END counts as a word, the four words win again: -0.643 against -0.64."""
    memory = random_memory(0, [1])
    request = SearchRequest([11], n_best=9)
    [hypotheses] = build_search(**changes)(translations_decoder(), memory, request)
    found = {one.tokens: one for one in hypotheses if one.finished}
    assert set(found) == {token_ids(text) for text in TRANSLATIONS}
    for (text, (log_probability, _)), score in zip(TRANSLATIONS.items(), scores, strict=True):
        assert found[token_ids(text)].log_probability == pytest.approx(log_probability)
        assert found[token_ids(text)].score == pytest.approx(score)
    assert len(hypotheses[0].tokens) == (4 if changes else 6)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(6, 9), seeds)
def test_l1_after_one_step_of_width_k_there_are_k_times_k_candidates(
    k: int, words: int, seed: int
) -> None:
    model, tracer = language_model(words, seed), Tracer(min_candidates=1)
    request = SearchRequest([4], n_best=k, tracer=tracer)
    Beam(k, rules=Rules(min_length=3))(model.decoder, model.encode(None, 1), request)
    forbidden = (Reason.SPECIAL, Reason.UNKNOWN, Reason.MIN_LENGTH)
    [trace] = tracer.traces
    for step in trace.steps[1:3]:
        compared = [one for one in step if one.reason not in forbidden]
        assert len({(one.parent, one.token) for one in compared}) == k * k
        assert Counter(one.parent for one in compared) == dict.fromkeys(
            {one.parent for one in compared}, k
        )
        best = sorted(compared, key=lambda one: -one.total)[:k]
        assert {one.fate for one in best} == {Fate.KEPT}
        assert {one.reason for one in compared if one not in best} <= {Reason.OUTSCORED}


@pytest.mark.parametrize(("words", "length"), [(2, 3), (3, 2), (3, 3), (5, 2)])
def test_l1_over_m_words_there_are_m_to_the_t_outputs_of_length_t(words: int, length: int) -> None:
    model = language_model(words)
    request = SearchRequest([length], n_best=10**6)
    [hypotheses] = Exhaustive()(model.decoder, model.encode(None, 1), request)
    assert sum(not one.finished for one in hypotheses) == words**length
    assert sum(one.finished for one in hypotheses) == sum(words**t for t in range(length))
    # A beam of this width finds all of them.
    [beam] = Beam(words**length, finished=10**6)(model.decoder, model.encode(None, 1), request)
    assert {one.tokens for one in beam if not one.finished} == {
        one.tokens for one in hypotheses if not one.finished
    }


# L0: scores


@no_deadline
@given(seeds, st.integers(2, 64), st.floats(0.01, 10), st.sampled_from(["one", "sqrt", "width"]))
def test_l0_rbf_and_dot_product_rank_unit_vectors_equally(
    seed: int, width: int, gamma: float, scale: Scale
) -> None:
    """‖q - k‖² = 2 - 2 q·k, so one score is an increasing function of the other."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(1, 1, 10, width, generator=generator, dtype=torch.float64)
    vectors = drawn / drawn.norm(dim=-1, keepdim=True)
    queries, keys = vectors[:, :, :1], vectors[:, :, 1:]
    rbf, dot = RbfScore(gamma)(queries, keys), DotScore(scale, width)(queries, keys)
    assert rbf.argsort().tolist() == dot.argsort().tolist()
    product = DotScore("one", width)(queries, keys)
    torch.testing.assert_close(rbf, -gamma * (2 - 2 * product))


@pytest.mark.parametrize("width", [16, 64, 256, 1024])
def test_l0_the_product_of_random_vectors_has_standard_deviation_root_d(width: int) -> None:
    generator = torch.Generator().manual_seed(width)
    queries, keys = torch.randn(2, 1, 1, 200, width, generator=generator)
    products = DotScore("one", width)(queries, keys)  # 40,000 of them
    assert float(products.std()) == pytest.approx(math.sqrt(width), rel=0.1)
    assert float(DotScore("sqrt", width)(queries, keys).std()) == pytest.approx(1, rel=0.1)


def largest_weights(scale: Scale, queries: Tensor, keys: Tensor) -> Tensor:
    """(T, D), (S, D) -> (T,) the largest attention weight of each query."""
    width = queries.shape[-1]
    scores = DotScore(scale, width)(queries[None, None], keys[None, None])
    return (
        attention_weights(scores, torch.ones_like(scores, dtype=torch.bool), "softmax")
        .amax(-1)
        .flatten()
    )


def test_l0_dividing_by_one_saturates_by_d_caps_and_by_root_d_keeps_the_softmax_soft() -> None:
    width, count = 1024, 10
    generator = torch.Generator().manual_seed(0)
    queries = torch.randn(500, width, generator=generator)
    unrelated = torch.randn(count, width, generator=generator)
    # Among unrelated keys, no key should get nearly all the weight.
    assert largest_weights("one", queries, unrelated).median() > 0.99
    assert 0.15 < largest_weights("sqrt", queries, unrelated).median() < 0.5
    assert largest_weights("width", queries, unrelated).median() < 0.15
    # A key equal to the query should get nearly all the weight. Divided by d its score is about 1,
    # and with 9 other scores near 0 its weight is at most e / (e + 9) = 0.23.
    for query in queries[:20]:
        keys = torch.cat((query[None], unrelated[1:]))
        assert largest_weights("sqrt", query[None], keys) > 0.99
        assert largest_weights("width", query[None], keys) < 0.3


# L3: the probability of an output


def test_l3_the_probability_of_class_two_is_0_3_and_its_loss_minus_log_0_3() -> None:
    """y = (0.1, 0.3, 0.4, 0.2), v = class 2: y_v = 0.3"""
    readout = Readout(width=1, vocabulary=4, hidden=None, tied=None)
    y = torch.tensor([0.1, 0.3, 0.4, 0.2])
    with torch.no_grad():
        readout.output.bias.copy_(y.log())
    output = DecoderOutput(torch.zeros(1, 1, 1), readout)  # logits are the biases
    torch.testing.assert_close(output.logits().softmax(-1).flatten(), y)
    loss = output.loss(torch.tensor([[2 - 1]]), smoothing=0.0, padding=-1).detach()
    assert math.exp(-float(loss)) == pytest.approx(0.3)


@functools.cache
def untrained_predictor() -> Predictor:
    """A language model of the letters a to d, with random weights."""
    config = tiny_config(*LANGUAGE_MODEL)
    task = learn_task(config)
    assert isinstance(task, TokenTask)
    torch.manual_seed(0)
    model = build_model(config.model, task.signature).double().eval()
    return Predictor(model, task, torch.device("cpu"))


@settings(max_examples=25, deadline=None)
@given(st.text("abcd", max_size=6))
def test_l3_the_probability_of_a_sentence_is_the_product_over_its_steps(sentence: str) -> None:
    predictor = untrained_predictor()
    model, tokenizer = predictor.model, predictor.task.target_tokenizer
    tokens = tokenizer.encode(sentence)
    memory = model.encode(None, 1)
    with torch.no_grad():
        output = model.decoder(torch.tensor([[START, *tokens]]), memory)
        y = output.logits()[0].softmax(-1)  # (T, V)
        targets = torch.tensor([[*tokens, END]])
        loss = output.loss(targets, smoothing=0.0, padding=PAD)
    steps = [float(y[t, token]) for t, token in enumerate([*tokens, END])]
    [(_, scored)] = predictor.score([""], [sentence], TEXT_ONLY)
    assert [math.exp(one) for one in scored.log_probabilities] == pytest.approx(steps)
    assert math.exp(sum(scored.log_probabilities)) == pytest.approx(math.prod(steps))
    assert math.exp(-float(loss)) == pytest.approx(math.prod(steps))
    [forced] = force(model.decoder, memory, [tokens])
    assert math.exp(forced.log_probability) == pytest.approx(math.prod(steps))
