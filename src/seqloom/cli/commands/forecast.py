"""The command `seqloom forecast`."""

from pathlib import Path
from typing import Annotated

from seqloom.cli.options import Json, RunFolder, argument
from seqloom.cli.output import print_json, print_line


def forecast(
    run_folder: RunFolder,
    file: Annotated[
        Path,
        argument(
            "FILE",
            "CSV file with a header. The model reads the last rows that have values in the "
            "columns to forecast. If it reads context columns, which are known in advance, "
            "add a row with only these values for each step to forecast.",
        ),
    ],
    json: Json = False,
) -> None:
    """Forecast the rows that follow a time series in a CSV file."""
    from seqloom.data.readers.text_files import locate
    from seqloom.inference.forecaster import load_forecaster

    forecaster = load_forecaster(run_folder)
    rows = forecaster.forecast_file(locate(file.name, str(file.parent))).tolist()
    names = forecaster.columns[0]
    if json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    print_line(",".join(names))
    for row in rows:
        print_line(",".join(f"{value:.6g}" for value in row))
