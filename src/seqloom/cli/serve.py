"""seqloom serve"""

import gc
from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.later import work
from seqloom.cli.options import Engine, existing_run, known_engine
from seqloom.core.extras import import_optional


def serve(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders that training wrote.")
    ],
    host: Annotated[
        str, typer.Option(help="Where to listen. 0.0.0.0: everybody can come, so think of --keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8000,
    engine: Engine = None,
    languages: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]de:en",
            help="What a run translates, where its recipe does not say. May be repeated.",
        ),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Only who has a key may ask. A SHA-256 a line, as sha256sum writes it.",
        ),
    ] = None,
    limits: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="NAME=VALUE",
            help="Change how much may be asked for, as beam=12 or characters=20000.",
        ),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535, help="Figures for Prometheus, on 127.0.0.1. Left out: none."
        ),
    ] = None,
) -> None:
    """Answer requests over HTTP: a page, a typed API, and the interface of LibreTranslate."""
    for package in ("fastapi", "granian", "prometheus_client", "python_multipart"):
        import_optional(package, "serve", "seqloom serve")
    folders = [existing_run(folder) for folder in runs]
    chosen = known_engine(engine)
    # Until the server opens everything is kept: to look for what is not would cost half a second.
    gc.disable()
    work("serve")(
        (folders, chosen, languages or []), (host, port, metrics_port), keys, limits or []
    )
