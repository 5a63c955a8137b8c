"""Forecasts of numbers.

POST /api/forecast continues time series. A time series is a list of rows, one per time step. The
request contains windows of observed rows, and the response contains the predicted next rows.
GET /api/forecast/example returns an example window.
"""

import math
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query

from seqloom.data.modalities.series import SeriesWindow
from seqloom.data.readers.csv_cells import Numbers
from seqloom.inference.forecaster import Forecaster
from seqloom.serving.api.schemas.predictions import (
    ForecastExample,
    ForecastRequest,
    ForecastResponse,
    ForecastWindow,
)
from seqloom.serving.errors import ERROR_RESPONSES, invalid_field
from seqloom.serving.server.jobs import ForecastJobType
from seqloom.serving.server.service import WITH_KEY, WITH_KEY_AND_JSON, ServiceDependency

MAX_MAGNITUDE = 1e30
EXAMPLE_AMPLITUDE = 0.8
"""Amplitude of each column of the example, in standard deviations of the column in the training
split."""

router = APIRouter(prefix="/api", responses=ERROR_RESPONSES)


@router.post("/forecast", dependencies=WITH_KEY_AND_JSON, tags=["predict"])
async def forecast(request: ForecastRequest, service: ServiceDependency) -> ForecastResponse:
    """Predict the rows that follow each window of a time series."""
    service.limits.check_count("windows", len(request.windows))
    loaded = service.catalogue.choose(("forecast",), request.run)
    forecaster = loaded.forecaster
    windows = [
        _to_window(forecaster, f"windows[{index}]", window)
        for index, window in enumerate(request.windows)
    ]
    sizes = [forecaster.task.config.observe] * len(windows)
    async with service.admission.admit():
        forecasts = await loaded.batcher.submit(ForecastJobType(forecaster), windows, sizes)
    return ForecastResponse(
        run=loaded.name,
        columns=list(forecaster.columns[0]),
        forecasts=[rows.tolist() for rows in forecasts],
    )


@router.get("/forecast/example", dependencies=WITH_KEY, tags=["page"])
async def get_forecast_example(
    service: ServiceDependency,
    run: Annotated[
        str | None,
        Query(description="Name of the run. Default: the only run that supports the request."),
    ] = None,
) -> ForecastExample:
    """Return an example input for a forecast: a synthetic time series that fits the run."""
    loaded = service.catalogue.choose(("forecast",), run)
    observed, context = example_window(loaded.forecaster)
    return ForecastExample(run=loaded.name, observed=observed.tolist(), context=context.tolist())


def example_window(forecaster: Forecaster) -> tuple[Numbers, Numbers]:
    """Return a synthetic input: the observed rows, and the context columns of the rows to predict.

    Context columns are known in advance and are not predicted.

    Every column, whether context or not, is a sine wave with one period over all rows. It is
    shifted by a quarter period relative to the previous column. If the run predicts differences
    between rows, each column is the cumulative sum of its wave.
    """
    task = forecaster.task
    columns = len(task.scale.errors)
    rows = np.arange(task.config.observe + task.config.predict)
    phases = rows[:, None] / len(rows) + np.arange(len(task.scale.mean)) / 4
    waves = task.scale.mean + task.scale.deviation * EXAMPLE_AMPLITUDE * np.sin(2 * np.pi * phases)
    match task.config.representation:
        case "differences":
            values = np.cumsum(waves, axis=0)
        case "relative" | "values":
            values = waves
    return values[: task.config.observe], values[task.config.observe :, columns:]


def _to_window(forecaster: Forecaster, field: str, window: ForecastWindow) -> SeriesWindow:
    """Check the shape of a window of a request and convert it to a `SeriesWindow`.

    field: name of the window in error messages
    """
    columns, context = forecaster.columns
    task = forecaster.task.config
    _check_rows(f"{field}.observed", window.observed, task.observe, (*columns, *context))
    future_context = window.context or []
    if context:
        _check_rows(f"{field}.context", future_context, task.predict, context)
    elif future_context not in ([], [[]] * task.predict):
        raise invalid_field(f"{field}.context", "the run has no context columns; omit context")
    return SeriesWindow(
        np.array(window.observed),
        np.zeros((task.predict, len(columns))),
        np.array(future_context).reshape(task.predict, len(context)),
        field,
    )


def _check_rows(field: str, rows: list[list[float]], count: int, columns: tuple[str, ...]) -> None:
    names = ", ".join(columns)
    if len(rows) != count:
        raise invalid_field(
            field, f"has {len(rows)} rows; the run expects {count} rows (columns: {names})"
        )
    for index, row in enumerate(rows):
        if len(row) != len(columns):
            raise invalid_field(
                f"{field}[{index}]",
                f"has {len(row)} numbers; the run expects {len(columns)}: {names}",
            )
        if not all(math.isfinite(value) and abs(value) < MAX_MAGNITUDE for value in row):
            raise invalid_field(
                f"{field}[{index}]",
                f"numbers must be finite, with an absolute value below {MAX_MAGNITUDE:g}",
            )
