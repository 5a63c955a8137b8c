"""Search traces: complete, consistent, and sufficient to compute the outputs again."""

import functools
import json
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from zoo import EVERY_DECODER, Specimen, every_value

from seqloom.core.errors import DataError
from seqloom.decoding.beam import Beam
from seqloom.decoding.exhaustive import Exhaustive
from seqloom.decoding.fast.captured import CapturedSearch
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.rules import Rules
from seqloom.decoding.sampling import Sampling
from seqloom.decoding.search import Search, SearchRequest
from seqloom.decoding.trace import NO_PARENT, Fate, Reason, SearchTrace, replay
from seqloom.decoding.tracer import Tracer
from seqloom.models.interface import Memory
from seqloom.models.seq2seq import Model
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN

LENGTHS = (5, 2, 4)
few_examples = settings(max_examples=25, deadline=None)


@dataclass(frozen=True)
class Case:
    """A beam search over one of the decoders that can be built, and a request."""

    specimen: Specimen
    beam: Beam
    request: SearchRequest
    min_candidates: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    specimen = draw(st.sampled_from(EVERY_DECODER))
    beam = Beam(
        draw(st.integers(1, 5)),
        draw(st.sampled_from([None, 1, 2, 7])),
        length_penalty=draw(st.sampled_from([0.0, 0.6, 1.0])),
        rules=draw(st.builds(Rules, st.integers(0, 3), st.integers(0, 2), st.booleans())),
        length_counts_end=draw(st.booleans()),
        stopping=draw(st.sampled_from(["count", "estimate", "bound"])),
        extra_candidate=draw(st.booleans()),
        rank_unfinished=draw(st.booleans()),
    )
    prefix = st.lists(st.integers(4, 7), max_size=2)
    prefixes = draw(st.lists(prefix, min_size=3, max_size=3))
    # A decoder of labels fixes the number of labels, so that some prefixes have probability 0.
    request = SearchRequest(
        [6, 4, 5], None if specimen.gives_labels else prefixes, draw(st.integers(1, 6))
    )
    return Case(specimen, beam, request, draw(st.sampled_from([0, 3, 8])))


@functools.cache
def build(name: str) -> tuple[Model, Memory]:
    specimen = next(specimen for specimen in EVERY_DECODER if specimen.name == name)
    model = specimen.build()
    with torch.no_grad():
        return model, specimen.memory(model, LENGTHS)


def search_with_trace(
    search: Search, specimen: Specimen, request: SearchRequest, min_candidates: int = 5
) -> tuple[list[list[Hypothesis]], list[SearchTrace]]:
    """The hypotheses and the traces of a search."""
    model, memory = build(specimen.name)
    tracer = Tracer(min_candidates)
    hypotheses = search(model.decoder, memory, replace(request, tracer=tracer))
    without_tracer = search(model.decoder, memory, request)
    assert hypotheses == without_tracer
    return hypotheses, tracer.traces


def trace_beam(case: Case) -> list[SearchTrace]:
    return search_with_trace(case.beam, case.specimen, case.request, case.min_candidates)[1]


@few_examples
@given(case=cases())
def test_replay_of_a_trace_gives_the_n_best_list(case: Case) -> None:
    length_penalty, rules = case.beam.length_penalty, case.beam.rules
    score: dict[str, Any] = {
        "length_penalty": length_penalty,
        "rules": rules,
        "length_counts_end": case.beam.length_counts_end,
    }
    short_request = replace(case.request, max_lengths=[3, 3, 3])
    searches: list[tuple[Search, SearchRequest]] = [
        (case.beam, case.request),
        (Greedy(**score), case.request),
        (Sampling(samples=3, length_penalty=length_penalty, rules=rules), case.request),
        (Exhaustive(10**6, **score), short_request),
    ]
    for search, request in searches:
        hypotheses, traces = search_with_trace(search, case.specimen, request, case.min_candidates)
        assert [replay(trace) for trace in traces] == hypotheses
        texts = [json.dumps(trace.to_json()) for trace in traces]
        assert [SearchTrace.from_json(json.loads(text)) for text in texts] == traces


@pytest.mark.parametrize("content", [{}, [], {"steps": [1]}, {"steps": [], "prefix": []}])
def test_reading_something_else_than_a_trace_raises_an_error(content: Any) -> None:
    with pytest.raises(DataError, match="this is not a search trace"):
        SearchTrace.from_json(content)


def test_captured_search_falls_back_to_the_plain_search_for_a_tracer() -> None:
    specimen, request = EVERY_DECODER[0], SearchRequest([6, 4, 5], n_best=3)
    plain, captured = Tracer(), Tracer()
    model, memory = build(specimen.name)
    expected = Beam(3)(model.decoder, memory, replace(request, tracer=plain))
    search = CapturedSearch(Beam(3))
    assert search(model.decoder, memory, replace(request, tracer=captured)) == expected
    assert captured.traces == plain.traces


@every_value
def test_replay_gives_the_outputs_of_every_decoder(specimen: Specimen) -> None:
    for search in (Beam(3), Greedy(), Sampling(samples=4)):
        hypotheses, traces = search_with_trace(search, specimen, SearchRequest([6, 4, 5], n_best=3))
        assert [replay(trace) for trace in traces] == hypotheses


@few_examples
@given(case=cases())
def test_every_candidate_has_a_kept_parent_a_total_and_a_fate(case: Case) -> None:
    for trace in trace_beam(case):
        for length, step in enumerate(trace.steps, start=1):
            assert sum(candidate.fate is Fate.KEPT for candidate in step) <= case.beam.width
            assert len({(candidate.parent, candidate.token) for candidate in step}) == len(step)
            assert list(step) == sorted(step, key=lambda candidate: -candidate.total)
            for candidate in step:
                is_first = candidate.parent == NO_PARENT
                parent = None if is_first else trace.steps[length - 2][candidate.parent]
                assert (length == 1) == (parent is None)
                assert parent is None or parent.fate is Fate.KEPT
                total = (0.0 if parent is None else parent.total) + candidate.log_probability
                assert candidate.total == pytest.approx(total)
                tokens = length if trace.length_counts_end else length - (candidate.token == END)
                score = total / max(1, tokens) ** trace.length_penalty
                assert candidate.score == pytest.approx(score)
                has_no_reason = candidate.fate in (Fate.KEPT, Fate.FINISHED)
                assert (candidate.reason is None) == has_no_reason
        assert not any(candidate.fate is Fate.KEPT for candidate in trace.steps[-1])


@few_examples
@given(case=cases())
def test_outscored_candidates_have_at_least_as_many_better_ones_as_the_beam_is_wide(
    case: Case,
) -> None:
    """In the whole step, or among the candidates with the same parent."""
    width, by_score = case.beam.width, (Reason.OUTSCORED, Reason.END_OUTSCORED)
    for step in (step for trace in trace_beam(case) for step in trace.steps):
        allowed = [
            candidate
            for candidate in step
            if candidate.fate is not Fate.DROPPED or candidate.reason in by_score
        ]
        continuing = [
            candidate for candidate in allowed if candidate.fate in (Fate.KEPT, Fate.STOPPED)
        ]
        for index, candidate in enumerate(allowed):
            if candidate.reason is Reason.OUTSCORED:
                siblings = [
                    better for better in allowed[:index] if better.parent == candidate.parent
                ]
                better = [other for other in continuing if other.total >= candidate.total - 1e-9]
                assert max(len(siblings), len(better)) >= width
            if candidate.reason is Reason.END_OUTSCORED:
                assert index >= width


@few_examples
@given(case=cases())
def test_reason_of_a_forbidden_candidate_is_the_rule_that_forbids_it(case: Case) -> None:
    rules = case.beam.rules
    for trace in trace_beam(replace(case, min_candidates=8)):
        for position, step in enumerate(trace.steps):
            for index, candidate in enumerate(step):
                path = [trace.candidate(each).token for each in trace.path((position, index))]
                is_forced = position < len(trace.prefix)
                assert (candidate.reason is Reason.PREFIX) == (
                    is_forced and candidate.token != trace.prefix[position]
                )
                if candidate.reason is Reason.MIN_LENGTH:
                    assert candidate.token == END
                    assert position < rules.min_length
                if candidate.reason is Reason.REPEAT:
                    ngrams = list(
                        zip(*(path[i:] for i in range(rules.no_repeat_ngram)), strict=False)
                    )
                    assert len(set(ngrams)) < len(ngrams)
                if candidate.reason is Reason.UNKNOWN:
                    assert candidate.token == UNKNOWN
                if candidate.token in (PAD, START):
                    assert candidate.reason in (Reason.SPECIAL, Reason.PREFIX)
