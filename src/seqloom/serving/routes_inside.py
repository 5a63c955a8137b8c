"""The typed API, part two: how outputs come about."""

from fastapi import APIRouter

from seqloom.inside.lecture import LectureScore
from seqloom.nn.attention import Selection
from seqloom.serving import looking
from seqloom.serving.routes import REFUSALS, Served, asking
from seqloom.serving.schema_inside import (
    AlternativesAnswer,
    AlternativesRequest,
    AttentionAnswer,
    AttentionRequest,
    ContinueAnswer,
    ContinueRequest,
    ExplainAnswer,
    ExplainRequest,
    InsteadAnswer,
    InsteadRequest,
    SearchAnswer,
    SearchRequest,
)

router = APIRouter(prefix="/api", responses=REFUSALS, dependencies=asking, tags=["look inside"])
open_router = APIRouter(prefix="/api", responses=REFUSALS, tags=["look inside"])


@router.post("/attention")
async def post_attention(request: AttentionRequest, service: Served) -> AttentionAnswer:
    """Where every word of an output looked, layer by layer and head by head."""
    return await looking.attention(service, request)


@router.post("/search")
async def post_search(request: SearchRequest, service: Served) -> SearchAnswer:
    """A search step by step: every candidate, its fate, and why."""
    return await looking.search(service, request)


@router.post("/alternatives")
async def post_alternatives(request: AlternativesRequest, service: Served) -> AlternativesAnswer:
    """What else could stand at each step of an output."""
    return await looking.alternatives(service, request)


@router.post("/continue")
async def post_continue(request: ContinueRequest, service: Served) -> ContinueAnswer:
    """Decode on from tokens that are given."""
    return await looking.go_on(service, request)


@router.post("/instead")
async def post_instead(request: InsteadRequest, service: Served) -> InsteadAnswer:
    """What if another word had stood at a step?"""
    return await looking.instead(service, request)


@router.post("/explain")
async def post_explain(request: ExplainRequest, service: Served) -> ExplainAnswer:
    """One step of the decoder: query, keys, scores, weights, context, readout, with numbers."""
    return await looking.explanation(service, request)


@open_router.get("/explain/lecture")
async def get_lecture(score: LectureScore = "dot", choice: Selection = "argmax") -> ExplainAnswer:
    """The same for the example that lectures work out by hand, by any score; no run is asked."""
    return looking.lecture(score, choice)
