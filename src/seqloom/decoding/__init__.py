"""Search algorithms. They generate outputs with any decoder, whatever the kind of model.

A search is called with a decoder, the encoder output and a `SearchRequest`:

    search = Beam(width=5)
    hypotheses = search(model.decoder, memory, SearchRequest(max_lengths=[50]))
"""

from seqloom.decoding.beam import Beam
from seqloom.decoding.build import build_rules, build_search
from seqloom.decoding.exhaustive import Exhaustive
from seqloom.decoding.fast.select import select_fastest
from seqloom.decoding.forced import force
from seqloom.decoding.generation import roll_out
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis, LengthNormalisation
from seqloom.decoding.rules import Rule, Rules, default_max_length
from seqloom.decoding.sampling import Sampling
from seqloom.decoding.search import Search, SearchRequest, StepDecoder
from seqloom.decoding.streaming import StreamingCallback, StreamingDecoder
from seqloom.decoding.trace import SearchTrace, TracedCandidate, replay
from seqloom.decoding.tracer import Tracer

__all__ = [
    "Beam",
    "Exhaustive",
    "Greedy",
    "Hypothesis",
    "LengthNormalisation",
    "Rule",
    "Rules",
    "Sampling",
    "Search",
    "SearchRequest",
    "SearchTrace",
    "StepDecoder",
    "StreamingCallback",
    "StreamingDecoder",
    "TracedCandidate",
    "Tracer",
    "build_rules",
    "build_search",
    "default_max_length",
    "force",
    "replay",
    "roll_out",
    "select_fastest",
]
