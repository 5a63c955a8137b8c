"""A recorded search can be read like a book: nothing is missing, and it ends as the search did."""

import functools
import json
from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from zoo import EVERY_DECODER, Specimen

from seqloom.decoding.beam import Beam
from seqloom.decoding.captured import Captured
from seqloom.decoding.exhaustive import Exhaustive
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.record import ROOT, Fate, Reason, Record, replay
from seqloom.decoding.recorder import Recorder
from seqloom.decoding.rules import Rules
from seqloom.decoding.sample import Sample
from seqloom.decoding.search import Request, Search
from seqloom.models.interface import Memory
from seqloom.models.seq2seq import Model
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN

LENGTHS = (5, 2, 4)


@dataclass(frozen=True)
class Case:
    """A search over one of the decoders that can be built, and what is asked of it."""

    specimen: Specimen
    beam: Beam
    request: Request
    least: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    specimen = draw(st.sampled_from(EVERY_DECODER))
    beam = Beam(
        draw(st.integers(1, 5)),
        draw(st.sampled_from([None, 1, 2, 7])),
        draw(st.sampled_from([0.0, 0.6, 1.0])),
        draw(st.builds(Rules, st.integers(0, 3), st.integers(0, 2), st.booleans())),
    )
    beginning = st.lists(st.integers(4, 7), max_size=2)
    prefixes = draw(st.lists(beginning, min_size=3, max_size=3))
    # A decoder of labels says how many there are: some beginnings have no probability at all.
    request = Request(
        [6, 4, 5], None if specimen.gives_labels else prefixes, draw(st.integers(1, 6))
    )
    return Case(specimen, beam, request, draw(st.sampled_from([0, 3, 8])))


few = settings(max_examples=25, deadline=None)


@functools.cache
def built(name: str) -> tuple[Model, Memory]:
    specimen = next(one for one in EVERY_DECODER if one.name == name)
    model = specimen.build()
    with torch.no_grad():
        return model, specimen.memory(model, LENGTHS)


def recorded(
    search: Search, specimen: Specimen, request: Request, least: int = 5
) -> tuple[list[list[Hypothesis]], list[Record]]:
    """What a search finds, and what its recorder noted."""
    model, memory = built(specimen.name)
    recorder = Recorder(least)
    found = search(model.decoder, memory, replace(request, recorder=recorder))
    plain = search(model.decoder, memory, request)
    assert found == plain, "to be watched changes nothing"
    return found, recorder.records


@few
@given(case=cases())
def test_a_replayed_record_is_the_n_best_list(case: Case) -> None:
    exponent, rules = case.beam.length_exponent, case.beam.rules
    small = replace(case.request, max_lengths=[3, 3, 3])
    searches: list[tuple[Search, Request]] = [
        (case.beam, case.request),
        (Greedy(exponent, rules), case.request),
        (Sample(samples=3, length_exponent=exponent, rules=rules), case.request),
        (Exhaustive(length_exponent=exponent, rules=rules), small),
    ]
    for search, request in searches:
        found, records = recorded(search, case.specimen, request, case.least)
        assert [replay(record) for record in records] == found
        written = [json.dumps(record.to_json()) for record in records]
        assert [Record.from_json(json.loads(text)) for text in written] == records


def test_the_path_of_graphs_steps_aside_for_a_recorder() -> None:
    specimen, request = EVERY_DECODER[0], Request([6, 4, 5], n_best=3)
    plain, captured = Recorder(), Recorder()
    model, memory = built(specimen.name)
    found = Beam(3)(model.decoder, memory, replace(request, recorder=plain))
    assert Captured(Beam(3))(model.decoder, memory, replace(request, recorder=captured)) == found
    assert captured.records == plain.records


@pytest.mark.parametrize("specimen", EVERY_DECODER, ids=lambda one: one.name)
def test_a_record_of_any_decoder_leads_to_its_outputs(specimen: Specimen) -> None:
    for search in (Beam(3), Greedy(), Sample(samples=4)):
        found, records = recorded(search, specimen, Request([6, 4, 5], n_best=3))
        assert [replay(record) for record in records] == found


@few
@given(case=cases())
def test_every_candidate_has_a_parent_a_sum_and_a_fate(case: Case) -> None:
    _, records = recorded(case.beam, case.specimen, case.request, case.least)
    for record in records:
        for length, step in enumerate(record.steps, start=1):
            assert sum(one.fate is Fate.KEPT for one in step) <= case.beam.width
            assert len({(one.parent, one.token) for one in step}) == len(step)
            assert list(step) == sorted(step, key=lambda one: -one.total)
            for one in step:
                parent = None if one.parent == ROOT else record.steps[length - 2][one.parent]
                assert (length == 1) == (parent is None)
                assert parent is None or parent.fate is Fate.KEPT
                total = (0.0 if parent is None else parent.total) + one.log_probability
                assert one.total == pytest.approx(total)
                assert one.score == pytest.approx(total / length**record.length_exponent)
                assert (one.reason is None) == (one.fate in (Fate.KEPT, Fate.FINISHED))
        assert not any(one.fate is Fate.KEPT for one in record.steps[-1])


@few
@given(case=cases())
def test_who_is_outscored_was_outscored(case: Case) -> None:
    """By as many as the beam is wide: in the whole step, or among those with the same parent."""
    _, records = recorded(case.beam, case.specimen, case.request, case.least)
    width, by_score = case.beam.width, (Reason.OUTSCORED, Reason.END_OUTSCORED)
    for step in (step for record in records for step in record.steps):
        fair = [one for one in step if one.fate is not Fate.DROPPED or one.reason in by_score]
        alive = [one for one in fair if one.fate in (Fate.KEPT, Fate.STOPPED)]
        for place, one in enumerate(fair):
            if one.reason is Reason.OUTSCORED:
                siblings = [better for better in fair[:place] if better.parent == one.parent]
                better = [kept for kept in alive if kept.total >= one.total - 1e-9]
                assert max(len(siblings), len(better)) >= width
            if one.reason is Reason.END_OUTSCORED:
                assert place >= width


@few
@given(case=cases())
def test_what_a_rule_forbids_is_named_with_the_rule(case: Case) -> None:
    rules = case.beam.rules
    _, records = recorded(case.beam, case.specimen, case.request, least=8)
    for record in records:
        for position, step in enumerate(record.steps):
            for place, one in enumerate(step):
                path = [record.candidate(each).token for each in record.path((position, place))]
                forced = position < len(record.prefix)
                assert (one.reason is Reason.PREFIX) == (
                    forced and one.token != record.prefix[position]
                )
                if one.reason is Reason.MIN_LENGTH:
                    assert one.token == END
                    assert position < rules.min_length
                if one.reason is Reason.REPEAT:
                    grams = list(
                        zip(*(path[i:] for i in range(rules.no_repeat_ngram)), strict=False)
                    )
                    assert len(set(grams)) < len(grams)
                if one.reason is Reason.UNKNOWN:
                    assert one.token == UNKNOWN
                if one.token in (PAD, START):
                    assert one.reason in (Reason.SPECIAL, Reason.PREFIX)
