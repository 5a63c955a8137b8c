"""Routes that the page needs beside everybody's: trees of searches, trainings, reports."""

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from seqloom.serving.beginnings import made_up_window
from seqloom.serving.journals import describe_training, has_journal, read_journal
from seqloom.serving.looking import Look, finite
from seqloom.serving.problems import Problem
from seqloom.serving.reports import find_reports, read_report
from seqloom.serving.routes import REFUSALS, Served, asking
from seqloom.serving.schema_inside import SearchRequest
from seqloom.serving.schema_page import (
    ExampleAnswer,
    JournalAnswer,
    ReportAnswer,
    ReportsAnswer,
    TrainingsAnswer,
    TreeAnswer,
)
from seqloom.serving.service import Service, admitted_by_key, aside
from seqloom.serving.showing import shown
from seqloom.viz.search_tree_page import search_tree_data

router = APIRouter(prefix="/api", responses=REFUSALS, tags=["page"])
reading = [Depends(admitted_by_key)]


@router.post("/search/tree", dependencies=asking)
async def post_tree(request: SearchRequest, service: Served) -> TreeAnswer:
    """A search as a tree, laid out to be drawn."""
    look = Look(service, request)
    service.check_most("n_best", request.n_best, service.limits.beam)
    question = look.question(request.n_best or 1)
    found = await look.answered(lambda: question.search(request.n_best))
    return TreeAnswer(
        run=look.served.name,
        kind=found.record.kind,
        width=found.record.width,
        length_exponent=found.record.length_exponent,
        outputs=[shown(one) for one in found.outputs],
        tree=finite(search_tree_data(found)),
    )


@router.get("/trainings", dependencies=reading)
async def get_trainings(service: Served) -> TrainingsAnswer:
    """How the trainings of the runs stand."""
    folders = _folders(service)
    return TrainingsAnswer(
        trainings=await aside(
            lambda: [
                describe_training(name, folder)
                for name, folder in folders.items()
                if has_journal(folder)
            ]
        )
    )


@router.get("/trainings/{run}", dependencies=reading)
async def get_training(
    run: str, service: Served, after: Annotated[int, Query(ge=0, lt=2**53)] = 0
) -> JournalAnswer:
    """What a training has written, from a place on; ask again to follow it."""
    folder = service.catalogue.named(run).run.folder
    if not has_journal(folder):
        raise Problem(404, "not-found", f"the run '{run}' has kept no journal of its training")
    return await aside(lambda: read_journal(run, folder, after))


@router.get("/lab", dependencies=reading)
async def get_reports(service: Served) -> ReportsAnswer:
    """The claims that were put to the test, each with its verdict."""
    folders = list(_folders(service).values())
    found = await aside(lambda: find_reports(folders))
    return ReportsAnswer(reports=[line for line, _ in found])


@router.get("/lab/{claim}", dependencies=reading)
async def get_report(claim: str, service: Served) -> ReportAnswer:
    """One report, with its tables and charts."""
    folders = list(_folders(service).values())
    return ReportAnswer(report=finite(await aside(lambda: read_report(folders, claim))))


@router.get("/forecast/example", dependencies=reading)
async def get_example(service: Served, run: str | None = None) -> ExampleAnswer:
    """A made-up beginning that a run could go on from."""
    served = service.catalogue.choose(("forecast",), run)
    observed, context = made_up_window(served.forecaster)
    return ExampleAnswer(run=served.name, observed=observed.tolist(), context=context.tolist())


def _folders(service: Service) -> dict[str, Path]:
    return {served.name: served.run.folder for served in service.catalogue.runs}
