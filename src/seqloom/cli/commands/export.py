"""The command `seqloom export`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from seqloom.cli.options import RunFolder, option
from seqloom.cli.output import print_message


def export(
    run_folder: RunFolder,
    to: Annotated[
        Literal["huggingface", "ctranslate2", "argos"],
        option(
            "FORMAT",
            "Format: huggingface (a Marian model for transformers), ctranslate2, or argos (a "
            "package for Argos Translate and LibreTranslate).",
            "--to",
        ),
    ],
    out: Annotated[
        Path,
        option(
            "PATH",
            "Folder to write, or the file NAME.argosmodel for argos. It must not exist.",
            "--out",
        ),
    ],
    licence: Annotated[
        str | None,
        option(
            "NAME", "Licence of the model, for its model card, for example apache-2.0.", "--license"
        ),
    ] = None,
    languages: Annotated[
        str | None,
        option(
            "SOURCE:TARGET",
            "For argos: codes of the two languages, for example de:en.",
            "--languages",
        ),
    ] = None,
) -> None:
    """Export a translation run to the format of another toolkit, with a model card.

    Before the folder or file appears, the command loads the exported model and compares it with the run:
    tokens, logits and outputs. If the format cannot express the run, the command lists all reasons.
    Runs of the preset "exportable" can be exported to every format.
    """
    if (to == "argos") != (languages is not None):
        raise typer.BadParameter(
            "--to argos requires --languages; with other formats, remove --languages."
        )

    from seqloom.inference.run import load
    from seqloom.interop.argos_export import export_argos, parse_languages
    from seqloom.interop.exporter import export_run

    if to == "argos":
        pair = parse_languages(languages or "")
        verified = export_argos(load(run_folder, engine="torch"), out, pair, licence)
    else:
        verified = export_run(load(run_folder, engine="torch"), to, out, licence)
    print_message(verified)
    print_message(f"wrote {out}")
