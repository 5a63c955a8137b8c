"""Claims about every decoder, whatever its settings."""

import functools
import gc
import itertools
import random
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from zoo import (
    BOTTLENECK,
    EVERY_DECODER,
    EVERY_VALUE,
    FAMILIES,
    LABELS,
    OTHER_TRANSFORMER,
    POSITIONAL,
    RECURRENT,
    TRANSFORMER,
    UNFED,
    VOCABULARY,
    Specimen,
    every_decoder,
    every_value,
    shared_model,
)

from seqloom.config.schema.decoding import BeamConfig, ExhaustiveConfig, GreedyConfig, SearchConfig
from seqloom.core.batch import Padded
from seqloom.decoding.beam import Beam
from seqloom.decoding.build import build_search
from seqloom.decoding.fast import captured
from seqloom.decoding.fast.captured import CapturedSearch
from seqloom.decoding.forced import force
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.rules import Rules
from seqloom.decoding.search import SearchRequest
from seqloom.models.interface import Memory, StaticDecoder
from seqloom.models.seq2seq import Model
from seqloom.text.vocabulary import END, PAD, START

LENGTHS = (5, 2, 4)


def random_inputs(rows: int = 3, length: int = 6) -> Tensor:
    tokens = torch.randint(
        4, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(2)
    )
    tokens[:, 0] = START
    return tokens


def teacher_forced_logits(model: Model, inputs: Tensor, memory: Memory) -> Tensor:
    """(B, T, V) from `forward`"""
    return model.decoder(inputs, memory).logits()


def stepwise_logits(model: Model, inputs: Tensor, memory: Memory) -> Tensor:
    """(B, T, V) from `start` and `step`"""
    state = model.decoder.start(memory, inputs.shape[1])
    logits = []
    for tokens in inputs.unbind(1):
        step = model.decoder.step(tokens, state)
        state = step.state
        logits.append(step.logits)
    return torch.stack(logits, dim=1)


def search(
    config: SearchConfig,
    model: Model,
    memory: Memory,
    max_lengths: Sequence[int],
    n_best: int = 1,
) -> list[list[Hypothesis]]:
    with torch.no_grad():
        return build_search(config)(
            model.decoder, memory, SearchRequest(max_lengths, n_best=n_best)
        )


def test_the_zoo_covers_every_value_of_every_setting() -> None:
    """The zoo silently omits values that are part of no valid model."""
    families: dict[tuple[str, bool], Mapping[str, Sequence[Any]]] = {
        ("recurrent", True): RECURRENT,
        ("recurrent", False): BOTTLENECK,
        ("transformer", True): TRANSFORMER,
        ("labels", False): LABELS,
    }
    more = [("recurrent", UNFED), ("recurrent", POSITIONAL), ("transformer", OTHER_TRANSFORMER)]
    cases = [*families.items(), *(((kind, True), values) for kind, values in more)]
    for (kind, has_attention), values in cases:
        family = [
            one
            for one in EVERY_DECODER
            if one.config.decoder.kind == kind and (one.attention is not None) == has_attention
        ]
        covered = {part for one in family for part in one.name.split("-")}
        for value in itertools.chain.from_iterable(values.values()):
            name = "+".join(value) or "0" if isinstance(value, tuple) else str(value)
            assert set(name.split("-")) <= covered, (kind, name)


def test_the_decoders_of_all_claims_cover_every_value_with_soft_and_hard_attention() -> None:
    for family in FAMILIES:
        covered = {
            (one.is_hard, value) for one in family if one in EVERY_VALUE for value in one.values
        }
        assert covered == {(one.is_hard, value) for one in family for value in one.values}


@every_decoder
def test_stepping_equals_teacher_forcing(specimen: Specimen) -> None:
    # In float32, rounding may decide which of two keys argmax selects.
    model = shared_model(specimen, torch.float64 if specimen.is_hard else torch.float32)
    memory, inputs = specimen.memory(model), random_inputs()
    expected = teacher_forced_logits(model, inputs, memory)
    torch.testing.assert_close(stepwise_logits(model, inputs, memory), expected, rtol=0, atol=1e-5)


@every_decoder
def test_padding_does_not_change_outputs(specimen: Specimen) -> None:
    model, inputs = shared_model(specimen), random_inputs()
    source = specimen.source(LENGTHS)
    if source is None:
        pytest.skip("a model without a source has no padding")
    memory = model.encode(source, 3)
    other_ids = torch.where(source.mask, source.values, VOCABULARY - 1)
    wider = torch.nn.functional.pad(other_ids, (0, 3), value=VOCABULARY - 2)
    other_padding = model.encode(Padded(wider, source.lengths), 3)
    garbage = memory.states.masked_fill(~memory.mask.unsqueeze(-1), 1e4)
    expected = teacher_forced_logits(model, inputs, memory)
    for other in (other_padding, replace(memory, states=garbage)):
        torch.testing.assert_close(teacher_forced_logits(model, inputs, other), expected)
        torch.testing.assert_close(stepwise_logits(model, inputs, other), expected)


@every_decoder
def test_padding_of_targets_does_not_change_logits_or_gradients(specimen: Specimen) -> None:
    model, inputs = specimen.build(torch.float64).requires_grad_(), random_inputs()
    lengths = torch.tensor([2, 6, 4])
    is_real = torch.arange(6) < lengths.unsqueeze(1)
    memory = specimen.memory(model)
    weights = [each for each in model.decoder.parameters() if each.requires_grad]
    coefficients = torch.randn(VOCABULARY, dtype=torch.float64)

    def logits_and_gradients(tokens: Tensor) -> tuple[Tensor, Sequence[Tensor | None]]:
        logits = teacher_forced_logits(model, tokens, memory)[is_real]
        total = (logits.clamp(min=-1e3) * coefficients).sum()
        return logits, torch.autograd.grad(total, weights, retain_graph=True, allow_unused=True)

    expected, gradients = logits_and_gradients(inputs)
    padded, padded_gradients = logits_and_gradients(inputs.masked_fill(~is_real, PAD))
    torch.testing.assert_close(padded, expected)
    for gradient, other in zip(padded_gradients, gradients, strict=True):
        assert (gradient is None) == (other is None)
        if gradient is not None:
            torch.testing.assert_close(gradient, other)


@every_decoder
def test_a_training_step_leaves_no_reference_cycles(specimen: Specimen) -> None:
    """The autograd graph in a cycle would stay in memory until Python's garbage collector runs."""

    class Marker:
        pass

    def train() -> "weakref.ref[Marker]":
        memory = specimen.memory(model)
        factor = torch.ones((), requires_grad=True) * 1
        marker = Marker()
        factor.grad_fn.metadata["marker"] = marker  # type: ignore[union-attr,index]
        used = replace(memory, states=memory.states * factor, summary=memory.summary * factor)
        teacher_forced_logits(model, inputs, used).clamp(min=-1e3).sum().backward()
        return weakref.ref(marker)

    model, inputs = specimen.build().requires_grad_(), random_inputs()
    gc.disable()
    try:
        assert train()() is None
    finally:
        gc.enable()


@every_decoder
def test_outputs_do_not_depend_on_later_inputs(specimen: Specimen) -> None:
    model, inputs = shared_model(specimen), random_inputs()
    memory = specimen.memory(model)
    changed = inputs.clone()
    changed[:, 4:] = 4 + (inputs[:, 4:] - 3) % (VOCABULARY - 4)
    before, after = (
        teacher_forced_logits(model, inputs, memory),
        teacher_forced_logits(model, changed, memory),
    )
    torch.testing.assert_close(after[:, :4], before[:, :4])
    if not specimen.reads_its_output:
        torch.testing.assert_close(after, before)
    # Argmax may select the same key for both, and labels hardly depend on earlier labels.
    elif not specimen.is_hard and not specimen.gives_labels:
        assert not torch.allclose(after[:, 4:], before[:, 4:])  # the inputs differ


@every_decoder
def test_attention_is_zero_at_padding_and_sums_to_one(specimen: Specimen) -> None:
    model = shared_model(specimen)
    memory = specimen.memory(model)
    step = model.decoder.step(random_inputs()[:, 0], model.decoder.start(memory, 1))
    if specimen.config.encoder.kind == "none" or specimen.attention is None:
        assert step.attention is None
        return
    assert step.attention is not None
    rows, _, heads, positions = step.attention.shape
    assert (rows, positions) == (3, 5)
    assert heads == specimen.attention.heads
    assert step.attention.masked_fill(memory.mask[:, None, None], 0).abs().max() == 0
    sums = step.attention.sum(-1)
    if specimen.attention.selection == "exact":  # no key may match the query
        assert set(sums.unique().tolist()) <= {0.0, 1.0}
    else:
        torch.testing.assert_close(sums, torch.ones_like(sums))


@every_value
def test_beam_of_width_one_is_greedy(specimen: Specimen) -> None:
    model = shared_model(specimen)
    memory = specimen.memory(model)
    greedy = search(GreedyConfig(), model, memory, [6, 6, 6])
    beam = search(BeamConfig(width=1), model, memory, [6, 6, 6])
    for (expected,), (hypothesis,) in zip(greedy, beam, strict=True):
        assert hypothesis.tokens == expected.tokens
        assert hypothesis.score == pytest.approx(expected.score)


@every_decoder
def test_a_static_search_equals_the_plain_search(specimen: Specimen) -> None:
    """With tensors at fixed addresses, padded rows and sources, and caches that are not reordered."""
    model = shared_model(specimen)
    memory = specimen.memory(model)
    request = SearchRequest([6, 8, 7], n_best=2)
    beams = [Beam(3), Beam(4, rules=Rules(min_length=2, no_repeat_ngram=2))]
    searches: list[Greedy | Beam] = [Greedy(), beams[EVERY_DECODER.index(specimen) % 2]]
    # Argmax makes hypotheses tie, and either of two may stay in a narrow beam.
    if specimen.is_hard:
        request, searches = SearchRequest([3, 2, 3], n_best=2), [Greedy(), Beam(80)]
    for plain in searches:
        expected_hypotheses = plain(model.decoder, memory, request)
        hypotheses = CapturedSearch(plain)(model.decoder, memory, request)
        for of_source, expected in zip(hypotheses, expected_hypotheses, strict=True):
            assert_same_hypotheses(of_source, expected)


@every_value
def test_sources_that_continue_in_a_smaller_batch_have_the_results_of_the_plain_search(
    specimen: Specimen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(captured, "SMALLER_BATCHES", range(1, 100))
    monkeypatch.setattr(captured, "SMALLER_SHARE", 0.99)
    model = shared_model(specimen)
    memory = specimen.memory(model)
    request = SearchRequest([5, 1, 3], n_best=2)
    for plain in (Greedy(), Beam(3)):
        expected_hypotheses = plain(model.decoder, memory, request)
        hypotheses = CapturedSearch(plain)(model.decoder, memory, request)
        for of_source, expected in zip(hypotheses, expected_hypotheses, strict=True):
            assert_same_hypotheses(of_source, expected)


class NoHostTransfer(TorchDispatchMode):
    """Rejects operations that copy between host and device: a CUDA graph cannot capture them."""

    FORBIDDEN = ("_local_scalar_dense", "nonzero", "lift_fresh", "masked_select", "_unique")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        assert name not in self.FORBIDDEN, f"a CUDA graph cannot capture {name}"
        if name in ("index", "index_put", "index_put_"):
            assert not any(one is not None and one.dtype == torch.bool for one in args[1])
        return func(*args, **(kwargs or {}))


@every_value
def test_a_static_step_copies_nothing_between_host_and_device(specimen: Specimen) -> None:
    model = shared_model(specimen)
    if not isinstance(model.decoder, StaticDecoder):
        pytest.skip("the decoder has no static step")
    memory = specimen.memory(model)
    request = SearchRequest([6, 8, 7], prefixes=[[], [4], [4, 5]])
    rules = Rules(min_length=2, no_repeat_ngram=2)
    searches: list[Greedy | Beam] = [Greedy(rules=rules), Beam(3, rules=rules)]
    with torch.inference_mode():
        for plain in searches:
            program = CapturedSearch(plain).program(model.decoder, memory, request)
            with NoHostTransfer():  # type: ignore[no-untyped-call]
                program.begin()
                addresses = [tensor.data_ptr() for tensor in program.tensors()]
                program.advance()
                program.advance()
            assert [tensor.data_ptr() for tensor in program.tensors()] == addresses


@pytest.mark.parametrize("precision", [torch.float64, torch.float32])
def test_a_static_search_uses_the_current_weights(precision: torch.dtype) -> None:
    """Also if it uses a copy of them in another precision."""
    specimen = next(one for one in EVERY_DECODER if not one.is_hard and one.source([1]) is not None)
    model = specimen.build()
    decoder = model.decoder
    decoder.step = functools.wraps(decoder.step)(  # type: ignore[method-assign]
        lambda tokens, state, original=decoder.step: original(tokens, state)
    )  # like a compiled method, which belongs to this decoder and not to a copy
    static, request = CapturedSearch(Greedy(), precision), SearchRequest([6, 6, 6])
    for _ in range(3):
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
        memory = specimen.memory(model)
        plain = Greedy()(model.decoder, memory, request)
        hypotheses = static(model.decoder, memory, request)
        for [hypothesis], [expected] in zip(hypotheses, plain, strict=True):
            assert hypothesis.score == pytest.approx(expected.score, abs=1e-4)
            assert hypothesis.tokens == expected.tokens


def test_static_programs_do_not_keep_their_decoder_alive() -> None:
    specimen = EVERY_DECODER[0]
    model = specimen.build()
    decoder = weakref.ref(model.decoder)
    CapturedSearch(Greedy())(model.decoder, specimen.memory(model), SearchRequest([3, 3, 3]))
    del model
    gc.collect()
    assert decoder() is None


@every_value
def test_steps_without_attention_weights_have_the_same_logits(specimen: Specimen) -> None:
    model, inputs = shared_model(specimen), random_inputs()
    memory = specimen.memory(model)
    state = model.decoder.start(memory, inputs.shape[1], need_attention=False)
    expected = teacher_forced_logits(model, inputs, memory)
    for t, tokens in enumerate(inputs.unbind(1)):
        step = model.decoder.step(tokens, state)
        state = step.state
        assert step.attention is None
        torch.testing.assert_close(step.logits, expected[:, t])


@every_value
def test_a_beam_as_wide_as_the_search_tree_equals_exhaustive_search(specimen: Specimen) -> None:
    model = shared_model(specimen)
    memory = specimen.memory(model, (3, 1))
    # Four words and END, at most three tokens: 4 x 4 x 5 candidates in the last step.
    best = search(ExhaustiveConfig(), model, memory, [3, 3], n_best=4)
    beam = search(BeamConfig(width=80), model, memory, [3, 3], n_best=4)
    for expected, hypotheses in zip(best, beam, strict=True):
        assert_same_hypotheses(hypotheses, expected)


@every_value
def test_the_score_of_a_hypothesis_is_its_log_probability_under_the_model(
    specimen: Specimen,
) -> None:
    model = shared_model(specimen)
    memory = specimen.memory(model)
    results = search(BeamConfig(width=3), model, memory, [6, 6, 6])
    for source, (hypothesis,) in enumerate(results):
        inputs = torch.tensor([[START, *hypothesis.tokens]])
        source_memory = memory.only(source)
        logits = teacher_forced_logits(model, inputs, source_memory)
        log_probabilities = logits[0].log_softmax(-1)  # (T, V)
        targets = [*hypothesis.tokens, END] if hypothesis.finished else list(hypothesis.tokens)
        expected = [float(log_probabilities[t, token]) for t, token in enumerate(targets)]
        assert list(hypothesis.log_probabilities) == pytest.approx(expected)
        assert hypothesis.score == pytest.approx(sum(expected) / max(1, len(hypothesis.tokens)))
        if hypothesis.finished:
            (forced,) = force(model.decoder, source_memory, [hypothesis.tokens], None)
            assert forced.log_probabilities == pytest.approx(hypothesis.log_probabilities)


@every_value
def test_an_output_does_not_depend_on_its_batch(specimen: Specimen) -> None:
    """Neither on the other sources in it, nor on their order, nor on the padding."""
    model = shared_model(specimen)
    draw = random.Random(specimen.name)  # another batch for each decoder
    lengths = draw.sample(range(1, 6), draw.randint(2, 4))
    order = draw.sample(range(len(lengths)), len(lengths))
    searches: list[SearchConfig] = [GreedyConfig()]
    # With argmax the hypotheses of a beam tie, and rounding decides which one stays.
    if not specimen.is_hard:
        searches.append(BeamConfig(width=3))
    config = draw.choice(searches)
    source = specimen.source(lengths, seed=draw.randint(0, 99))
    limits = [length + 3 for length in lengths]
    batched = search(config, model, model.encode(source, len(lengths)), limits, n_best=2)

    shuffled = None if source is None else Padded(source.values[order], source.lengths[order])
    memory = model.encode(shuffled, len(lengths))
    results = search(config, model, memory, [limits[row] for row in order], n_best=2)
    for row, hypotheses in zip(order, results, strict=True):
        assert_same_hypotheses(hypotheses, batched[row])
    for row, length in enumerate(lengths):
        single = (
            None
            if source is None
            else Padded(source.values[row : row + 1, :length], source.lengths[row : row + 1])
        )
        (hypotheses,) = search(config, model, model.encode(single, 1), [limits[row]], n_best=2)
        assert_same_hypotheses(hypotheses, batched[row])


def assert_same_hypotheses(hypotheses: list[Hypothesis], expected: list[Hypothesis]) -> None:
    """The scores are equal, and so are the tokens of the best hypothesis unless it ties."""
    scores = [hypothesis.score for hypothesis in expected]
    assert [hypothesis.score for hypothesis in hypotheses] == pytest.approx(scores)
    # Without positions, two orders of the same words can have exactly the same score.
    if len(scores) == 1 or scores[0] - scores[1] > 1e-9:
        assert hypotheses[0].tokens == expected[0].tokens
