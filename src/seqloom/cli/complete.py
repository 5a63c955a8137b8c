"""seqloom complete"""

from typing import Annotated

import typer

from seqloom.cli.later import work
from seqloom.cli.options import DecodingSettings, Partners, RunFolder, existing_runs


def complete(
    run: RunFolder,
    prompts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROMPT]...", help="How to begin. Left out: begin with nothing."),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, max=1000, help="Outputs for each prompt.")] = 1,
    temperature: Annotated[
        float | None, typer.Option(help="Below 1: safer; above 1: wilder.")
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(min=0, help="Draw from the k likeliest tokens; 0: from all.")
    ] = None,
    top_p: Annotated[
        float | None, typer.Option(help="Draw from the likeliest tokens that hold this share.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Repeat earlier draws. Left out: new ones.")
    ] = None,
    settings: DecodingSettings = None,
    partners: Partners = None,
) -> None:
    """Finish beginnings, or make sentences up, with a language model."""
    runs = existing_runs(run, partners)
    chosen = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    drawn = {key: value for key, value in chosen.items() if value is not None}
    work("complete")(runs, prompts or [""], samples, drawn, settings or [])
