"""The rows that follow."""

import json as json_format
from pathlib import Path

from seqloom.cli.output import put
from seqloom.data.files import locate
from seqloom.runs.forecaster import load_forecaster


def forecast(folder: Path, file: Path, json: bool) -> None:
    run = load_forecaster(folder)
    rows = run.forecast_file(locate(file.name, str(file.parent)))
    names = run.columns[0]
    if json:
        put(json_format.dumps([dict(zip(names, row, strict=True)) for row in rows.tolist()]))
        return
    put(",".join(names))
    for row in rows.tolist():
        put(",".join(f"{value:.6g}" for value in row))
