"""What is true of every decoder that can be built, whatever its switches."""

import functools
import gc
import itertools
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from zoo import BOTTLENECK, EVERY_DECODER, LABELS, RECURRENT, TRANSFORMER, VOCABULARY, Specimen

from seqloom.config.schema.decoding import BeamConfig, ExhaustiveConfig, GreedyConfig, SearchConfig
from seqloom.core.batch import Padded
from seqloom.decoding.beam import Beam
from seqloom.decoding.build import build_search
from seqloom.decoding.fast.captured import CapturedSearch
from seqloom.decoding.forced import force
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.rules import Rules
from seqloom.decoding.search import SearchRequest
from seqloom.models.interface import Memory
from seqloom.models.seq2seq import Model
from seqloom.text.vocabulary import START

every_decoder = pytest.mark.parametrize("specimen", EVERY_DECODER, ids=lambda one: one.name)
LENGTHS = (5, 2, 4)


def some_inputs(rows: int = 3, length: int = 6) -> Tensor:
    tokens = torch.randint(
        4, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(2)
    )
    tokens[:, 0] = START
    return tokens


def taught(model: Model, inputs: Tensor, memory: Memory) -> Tensor:
    return model.decoder(inputs, memory).logits()


def stepped(model: Model, inputs: Tensor, memory: Memory) -> Tensor:
    state = model.decoder.start(memory, inputs.shape[1])
    answers = []
    for tokens in inputs.unbind(1):
        step = model.decoder.step(tokens, state)
        state = step.state
        answers.append(step.logits)
    return torch.stack(answers, dim=1)


def searched(
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


def test_the_zoo_shows_every_value_of_every_switch() -> None:
    """Values that nothing can be built from would drop out of the zoo in silence."""
    families = {
        ("recurrent", True): RECURRENT,
        ("recurrent", False): BOTTLENECK,
        ("transformer", True): TRANSFORMER,
        ("labels", False): LABELS,
    }
    for (kind, attends), switches in families.items():
        family = [
            one
            for one in EVERY_DECODER
            if one.config.decoder.kind == kind and (one.attention is not None) == attends
        ]
        shown = {part for one in family for part in one.name.split("-")}
        for value in itertools.chain.from_iterable(switches.values()):
            name = "+".join(value) or "0" if isinstance(value, tuple) else str(value)
            assert set(name.split("-")) <= shown, (kind, name)


@every_decoder
def test_stepping_and_teaching_agree(specimen: Specimen) -> None:
    # A hard choice between two keys may fall either way on the last bit of float32.
    model = specimen.build(torch.float64 if specimen.is_hard else torch.float32)
    memory, inputs = specimen.memory(model), some_inputs()
    expected = taught(model, inputs, memory)
    torch.testing.assert_close(stepped(model, inputs, memory), expected, rtol=0, atol=1e-5)


@every_decoder
def test_what_lies_under_the_padding_changes_nothing(specimen: Specimen) -> None:
    model, inputs = specimen.build(), some_inputs()
    source = specimen.source(LENGTHS)
    memory = model.encode(source, 3)
    if source is None:
        return  # nothing is read, so nothing is padded
    other_ids = torch.where(source.mask, source.values, VOCABULARY - 1)
    wider = torch.nn.functional.pad(other_ids, (0, 3), value=VOCABULARY - 2)
    padded_otherwise = model.encode(Padded(wider, source.lengths), 3)
    garbage = memory.states.masked_fill(~memory.mask.unsqueeze(-1), 1e4)
    expected = taught(model, inputs, memory)
    for other in (padded_otherwise, replace(memory, states=garbage)):
        torch.testing.assert_close(taught(model, inputs, other), expected)
        torch.testing.assert_close(stepped(model, inputs, other), expected)


@every_decoder
def test_a_decoder_cannot_see_the_future(specimen: Specimen) -> None:
    model, inputs = specimen.build(), some_inputs()
    memory = specimen.memory(model)
    changed = inputs.clone()
    changed[:, 4:] = 4 + (inputs[:, 4:] - 3) % (VOCABULARY - 4)
    before, after = taught(model, inputs, memory), taught(model, changed, memory)
    torch.testing.assert_close(after[:, :4], before[:, :4])
    # A hard choice may fall on the same key all the same, and labels hardly look back.
    if not specimen.is_hard and not specimen.gives_labels:
        assert not torch.allclose(after[:, 4:], before[:, 4:])  # the change was there to be seen


@every_decoder
def test_attention_looks_only_at_the_source_and_sums_to_one(specimen: Specimen) -> None:
    model = specimen.build()
    memory = specimen.memory(model)
    step = model.decoder.step(some_inputs()[:, 0], model.decoder.start(memory, 1))
    if specimen.config.encoder.kind == "none" or specimen.attention is None:
        assert step.attention is None
        return
    assert step.attention is not None
    rows, _, heads, positions = step.attention.shape
    assert (rows, positions) == (3, 5)
    assert heads == specimen.attention.heads
    assert step.attention.masked_fill(memory.mask[:, None, None], 0).abs().max() == 0
    torch.testing.assert_close(step.attention.sum(-1), torch.ones_like(step.attention.sum(-1)))


@every_decoder
def test_a_beam_of_one_is_greedy(specimen: Specimen) -> None:
    model = specimen.build()
    memory = specimen.memory(model)
    greedy = searched(GreedyConfig(), model, memory, [6, 6, 6])
    beam = searched(BeamConfig(width=1), model, memory, [6, 6, 6])
    for (one,), (other,) in zip(greedy, beam, strict=True):
        assert one.tokens == other.tokens
        assert one.score == pytest.approx(other.score)


@every_decoder
def test_a_recorded_search_finds_what_the_plain_one_finds(specimen: Specimen) -> None:
    """With every tensor in its place, rows and source padded, and a past that never moves."""
    model = specimen.build()
    memory = specimen.memory(model)
    request = SearchRequest([6, 8, 7], n_best=2)
    searches: list[Greedy | Beam] = [
        Greedy(),
        Beam(3),
        Beam(4, rules=Rules(min_length=2, no_repeat_ngram=2)),
    ]
    if specimen.is_hard:  # the past is easily forgotten: hypotheses tie, and either may go on
        request, searches = SearchRequest([3, 2, 3], n_best=2), [Greedy(), Beam(80)]
    for search in searches:
        plain = search(model.decoder, memory, request)
        recorded = CapturedSearch(search)(model.decoder, memory, request)
        for found, expected in zip(recorded, plain, strict=True):
            assert_same(found, expected)


class NothingFromTheHost(TorchDispatchMode):
    """Refuses whatever waits for the device, or brings it something: it could not be recorded."""

    FORBIDDEN = ("_local_scalar_dense", "nonzero", "lift_fresh", "masked_select", "_unique")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        assert name not in self.FORBIDDEN, f"{name} cannot be recorded"
        if name in ("index", "index_put", "index_put_"):
            assert not any(one is not None and one.dtype == torch.bool for one in args[1])
        return func(*args, **(kwargs or {}))


@every_decoder
def test_a_recorded_step_asks_nothing_of_the_host(specimen: Specimen) -> None:
    model = specimen.build()
    memory = specimen.memory(model)
    request = SearchRequest([6, 8, 7], prefixes=[[], [4], [4, 5]])
    rules = Rules(min_length=2, no_repeat_ngram=2)
    searches: list[Greedy | Beam] = [Greedy(rules=rules), Beam(3, rules=rules)]
    with torch.inference_mode():
        for search in searches:
            program = CapturedSearch(search).program(model.decoder, memory, request)
            with NothingFromTheHost():  # type: ignore[no-untyped-call]
                program.begin()
                places = [one.data_ptr() for one in program.tensors()]
                program.advance()
                program.advance()
            assert [one.data_ptr() for one in program.tensors()] == places


@pytest.mark.parametrize("precision", [torch.float64, torch.float32])
def test_a_recorded_search_has_the_weights_of_now(precision: torch.dtype) -> None:
    """Also where it works with a copy of them in another precision."""
    specimen = next(one for one in EVERY_DECODER if not one.is_hard and one.source([1]) is not None)
    model = specimen.build()
    decoder = model.decoder
    decoder.step = functools.wraps(decoder.step)(  # type: ignore[method-assign]
        lambda tokens, state, original=decoder.step: original(tokens, state)
    )  # as one that was compiled: it belongs to this decoder, and not to a copy
    captured, request = CapturedSearch(Greedy(), precision), SearchRequest([6, 6, 6])
    for _ in range(3):
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
        memory = specimen.memory(model)
        plain = Greedy()(model.decoder, memory, request)
        for [one], [other] in zip(captured(model.decoder, memory, request), plain, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)
            assert one.tokens == other.tokens


def test_programs_go_when_their_decoder_goes() -> None:
    specimen = EVERY_DECODER[0]
    model = specimen.build()
    decoder = weakref.ref(model.decoder)
    CapturedSearch(Greedy())(model.decoder, specimen.memory(model), SearchRequest([3, 3, 3]))
    del model
    gc.collect()
    assert decoder() is None


@every_decoder
def test_nobody_watching_changes_nothing(specimen: Specimen) -> None:
    model, inputs = specimen.build(), some_inputs()
    memory = specimen.memory(model)
    state = model.decoder.start(memory, inputs.shape[1], need_attention=False)
    expected = taught(model, inputs, memory)
    for place, tokens in enumerate(inputs.unbind(1)):
        step = model.decoder.step(tokens, state)
        state = step.state
        assert step.attention is None
        torch.testing.assert_close(step.logits, expected[:, place])


@every_decoder
def test_a_beam_as_wide_as_the_tree_finds_the_best_sentence_there_is(specimen: Specimen) -> None:
    model = specimen.build()
    memory = specimen.memory(model, (3, 1))
    # Four words and END, at most three tokens: 4 x 4 x 5 candidates in the last step.
    best = searched(ExhaustiveConfig(), model, memory, [3, 3], n_best=4)
    beam = searched(BeamConfig(width=80), model, memory, [3, 3], n_best=4)
    for exact, found in zip(best, beam, strict=True):
        assert_same(found, exact)


@every_decoder
def test_the_score_of_a_hypothesis_is_the_models_own(specimen: Specimen) -> None:
    model = specimen.build()
    memory = specimen.memory(model)
    for (found,), number in zip(
        searched(BeamConfig(width=3), model, memory, [6, 6, 6]), range(3), strict=True
    ):
        inputs = torch.tensor([[START, *found.tokens]])
        alone = memory.only(number)
        own = taught(model, inputs, alone)[0].log_softmax(-1)
        answers = [*found.tokens, 2] if found.finished else list(found.tokens)
        expected = [float(own[place, token]) for place, token in enumerate(answers)]
        assert list(found.log_probabilities) == pytest.approx(expected)
        assert found.score == pytest.approx(sum(expected) / len(expected))
        if found.finished:
            (forced,) = force(model.decoder, alone, [found.tokens], None)
            assert forced.log_probabilities == pytest.approx(found.log_probabilities)


@every_decoder
@settings(max_examples=2, deadline=None, derandomize=True)
@given(data=st.data())
def test_an_output_does_not_depend_on_its_batch(specimen: Specimen, data: st.DataObject) -> None:
    """Neither on what else is in it, nor on the order, nor on the padding."""
    model = specimen.build()
    lengths = data.draw(st.lists(st.integers(1, 5), min_size=2, max_size=4))
    order = data.draw(st.permutations(range(len(lengths))))
    searches: list[SearchConfig] = [GreedyConfig()]
    if not specimen.is_hard:  # there hypotheses of a beam tie, and rounding decides who stays
        searches.append(BeamConfig(width=3))
    config = data.draw(st.sampled_from(searches))
    source = specimen.source(lengths, seed=data.draw(st.integers(0, 99)))
    limits = [length + 3 for length in lengths]
    together = searched(config, model, model.encode(source, len(lengths)), limits, n_best=2)

    shuffled = None if source is None else Padded(source.values[order], source.lengths[order])
    memory = model.encode(shuffled, len(lengths))
    for place, found in zip(
        order, searched(config, model, memory, [limits[i] for i in order], n_best=2), strict=True
    ):
        assert_same(found, together[place])
    for place, length in enumerate(lengths):
        one = (
            None
            if source is None
            else Padded(
                source.values[place : place + 1, :length], source.lengths[place : place + 1]
            )
        )
        (found,) = searched(config, model, model.encode(one, 1), [limits[place]], n_best=2)
        assert_same(found, together[place])


def assert_same(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    scores = [one.score for one in expected]
    assert [one.score for one in found] == pytest.approx(scores)
    # Without positions, two orders of the same words can be exactly as good; ties apart, the
    # words are the same too.
    if len(scores) == 1 or scores[0] - scores[1] > 1e-9:
        assert found[0].tokens == expected[0].tokens
