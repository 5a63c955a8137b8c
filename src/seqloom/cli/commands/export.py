"""seqloom export"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from seqloom.cli.options import RunFolder
from seqloom.cli.output import print_message


def export(
    run_folder: RunFolder,
    to: Annotated[
        Literal["huggingface", "ctranslate2"],
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="Format: huggingface (a Marian model for transformers) or ctranslate2.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FOLDER", help="Folder to write. It must not exist."),
    ],
    licence: Annotated[
        str | None,
        typer.Option(
            "--license",
            metavar="NAME",
            help="Licence of the model, for its model card, for example apache-2.0.",
        ),
    ] = None,
) -> None:
    """Export a translation run to the format of another toolkit, with a model card.

    Before the folder appears, the command loads the exported model and compares it with the run:
    tokens, logits and outputs. If the format cannot express the run, the command lists all reasons.
    Runs of the preset "exportable" can be exported to every format.
    """
    from seqloom.interop.exporter import export_run
    from seqloom.runs.run import load

    verified = export_run(load(run_folder, engine="torch"), to, out, licence)
    print_message(verified)
    print_message(f"wrote {out}")
