"""Labels of texts, scores of given outputs, forecasts of numbers."""

import math

import numpy as np

from seqloom.core.errors import SeqloomError
from seqloom.data.series import Window as Observed
from seqloom.runs.batching import input_tokens
from seqloom.runs.forecaster import Forecaster
from seqloom.runs.options import PredictionOptions, beam_config
from seqloom.serving.manners import Forecasting, Item, Searching
from seqloom.serving.problems import invalid, unusable
from seqloom.serving.schema import (
    ForecastAnswer,
    ForecastRequest,
    Label,
    LabelAnswer,
    LabelRequest,
    ScoreAnswer,
    ScoreRequest,
    Window,
)
from seqloom.serving.service import Service, aside, too_much
from seqloom.serving.showing import shown
from seqloom.serving.translating import direct
from seqloom.tasks.task import ModelInput
from seqloom.text.vocabulary import SPECIAL_TOKENS


async def label(service: Service, request: LabelRequest) -> LabelAnswer:
    """The label of each text, or the labels of its tokens; a blank text has none."""
    service.check_texts("texts", request.texts)
    service.check_something("texts", request.texts)
    served = service.catalogue.choose(("labels",), request.run)
    run = served.speaker
    count = run.task.target_tokenizer.size - len(SPECIAL_TOKENS) if request.every else 1
    decoding = beam_config(run.config.decoding, count) if request.every else run.config.decoding
    manner = Searching(run, decoding, PredictionOptions(count, attention=False))
    asked = [text for text in request.texts if text.strip()]

    def prepare() -> list[ModelInput]:
        prepared = [run.task.prepare(text) for text in asked]
        run.predictor.check_input_lengths(prepared)
        return prepared

    async with service.gate.admitted():
        prepared = await aside(prepare)
        items = [Item(one, number) for number, one in enumerate(prepared)]
        try:
            found = await served.batcher.ask(manner, items, [input_tokens(one) for one in prepared])
        except SeqloomError as error:
            raise unusable(error) from error
    answers = iter(found)
    return LabelAnswer(
        run=served.name,
        labels=[
            [
                Label(label=one.text, probability=math.exp(sum(one.log_probabilities)))
                for one in next(answers)
            ]
            if text.strip()
            else []
            for text in request.texts
        ],
    )


async def score(service: Service, request: ScoreRequest) -> ScoreAnswer:
    """The model's own probabilities of given targets."""
    service.check_texts("targets", request.targets)
    service.check_texts("sources", request.sources or [])
    if request.sources is None:
        served = service.catalogue.choose(("language-model",), request.run)
        sources, tag = [""] * len(request.targets), None
    else:
        direction = direct(service, request.run, request.source, request.target)
        served = direction.served
        if len(request.sources) != len(request.targets):
            raise invalid(
                "sources",
                f"{len(request.sources)} sources and {len(request.targets)} targets cannot be "
                "paired; give as many of one as of the other",
            )
        service.check_something("sources", request.sources)
        tag = direction.tag
        sources = served.speaker.languages.add_tag(request.sources, tag)
    run = served.speaker
    async with service.gate.admitted():
        found = await served.batcher.call(
            lambda: run.score(sources, request.targets, attention=request.attention)
        )
    return ScoreAnswer(
        run=served.name,
        scores=[
            shown(
                run.languages.without_tag(one, tag),
                attention=request.attention,
                alignment=request.attention,
            )
            for one in found
        ],
    )


async def forecast(service: Service, request: ForecastRequest) -> ForecastAnswer:
    """What comes after each window of numbers."""
    if len(request.windows) > service.limits.texts:
        raise too_much(
            "windows",
            f"{len(request.windows)} at once; at most {service.limits.texts} a request",
        )
    served = service.catalogue.choose(("forecast",), request.run)
    forecaster = served.forecaster
    windows = [_window(forecaster, place, window) for place, window in enumerate(request.windows)]
    observe = forecaster.task.config.observe
    async with service.gate.admitted():
        found = await served.batcher.ask(Forecasting(forecaster), windows, [observe] * len(windows))
    return ForecastAnswer(
        run=served.name,
        columns=list(forecaster.columns[0]),
        forecasts=[one.tolist() for one in found],
    )


def _window(forecaster: Forecaster, place: int, given: Window) -> Observed:
    """As the run takes it in; whatever does not fit is told."""
    columns, context = forecaster.columns
    task = forecaster.task.config
    where = f"windows[{place}]"
    names = ", ".join((*columns, *context))
    _check_rows(f"{where}.observed", given.observed, task.observe, names, len(columns + context))
    later = given.context or []
    if context or later:
        known = ", ".join(context) or "nothing"
        _check_rows(f"{where}.context", later, task.predict, known, len(context))
    return Observed(
        np.array(given.observed),
        np.zeros((task.predict, len(columns))),
        np.array(later).reshape(task.predict, len(context)),
        where,
    )


def _check_rows(where: str, rows: list[list[float]], count: int, names: str, width: int) -> None:
    if len(rows) != count:
        raise invalid(where, f"{len(rows)} rows; the run takes {count}, each with {names}")
    for number, row in enumerate(rows):
        if len(row) != width:
            raise invalid(
                f"{where}[{number}]", f"{len(row)} numbers; there must be {width}: {names}"
            )
        if not all(math.isfinite(value) and abs(value) < 1e30 for value in row):
            raise invalid(f"{where}[{number}]", "numbers must be finite, and smaller than 1e30")
