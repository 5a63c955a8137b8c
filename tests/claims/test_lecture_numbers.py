"""Every number in the five lecture documents, computed with the code that users run.

L0  lecture 14, sequence to sequence and attention    L3  applied deep learning, chapter 7
L1  slides, sequence to sequence                      L4  discussion 8, attention
L2  notes, translation, attention and the Transformer (states no number of its own)
"""

import math
from typing import Literal, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seqloom.config.schema.model import ModelConfig
from seqloom.core.signature import NoSource, Signature, Tokens
from seqloom.decoding.beam import Beam, Candidates
from seqloom.decoding.exhaustive import Exhaustive
from seqloom.decoding.forced import force
from seqloom.decoding.hypothesis import normalise_by_length
from seqloom.decoding.search import SearchRequest
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.nn.attention import DotScore, RbfScore, attention_weights
from seqloom.nn.losses import cross_entropy_sum
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.positions import Frequencies, angular_frequencies, sinusoid
from seqloom.text.vocabulary import END, SPECIAL_TOKENS, START

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


def test_l1_the_four_words_have_the_best_log_p_and_the_six_words_the_best_per_word() -> None:
    """he hit me with a pie −4.5, he threw a pie −3.2, I was hit with a pie that he threw −7.2"""
    translations = [(-4.5, 6), (-3.2, 4), (-7.2, 9)]
    plain = [normalise_by_length(log_p, words, 0.0) for log_p, words in translations]
    per_word = [normalise_by_length(log_p, words, 1.0) for log_p, words in translations]
    assert plain.index(max(plain)) == 1
    assert per_word.index(max(per_word)) == 0
    assert per_word == pytest.approx([-0.75, -0.8, -0.8])


@no_deadline
@given(st.integers(1, 6), st.integers(6, 9), st.integers(1, 4), seeds)
def test_l1_after_one_step_of_width_k_there_are_k_times_k_candidates(
    k: int, vocabulary: int, sources: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    totals = torch.randn(sources, k, generator=generator)
    allowed = torch.randn(sources * k, vocabulary, generator=generator).log_softmax(dim=1)
    candidates = Candidates.of(totals, allowed, k)
    parents = torch.arange(k * k) // candidates.per_hypothesis
    assert candidates.totals.shape == (sources, k * k)
    for source in range(sources):
        pairs = zip(parents, candidates.tokens[source], strict=True)
        children = {(int(parent), int(token)) for parent, token in pairs}
        assert len(children) == k * k  # all different
        for parent in range(k):
            best = allowed[source * k + parent].argsort(descending=True)[:k].tolist()
            assert {token for row, token in children if row == parent} == set(best)


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
    y = torch.tensor([[0.1, 0.3, 0.4, 0.2]])
    loss = cross_entropy_sum(y.log(), torch.tensor([2 - 1]))
    assert math.exp(-float(loss)) == pytest.approx(0.3)


@no_deadline
@given(st.lists(st.integers(0, 4), max_size=6), seeds)
def test_l3_the_probability_of_a_sentence_is_the_product_over_its_steps(
    words: list[int], seed: int
) -> None:
    model = language_model(words=5, seed=seed)
    sentence = [len(SPECIAL_TOKENS) + word for word in words]
    memory = model.encode(None, 1)
    with torch.no_grad():
        output = model.decoder(torch.tensor([[START, *sentence]]), memory)
        y = output.logits()[0].softmax(-1)  # (T, V)
    steps = [float(y[t, token]) for t, token in enumerate([*sentence, END])]
    [forced] = force(model.decoder, memory, [sentence])
    assert [math.exp(one) for one in forced.log_probabilities] == pytest.approx(steps)
    assert math.exp(forced.log_probability) == pytest.approx(math.prod(steps))
    loss = cross_entropy_sum(y.log(), torch.tensor([*sentence, END]))
    assert math.exp(-float(loss)) == pytest.approx(math.prod(steps))
