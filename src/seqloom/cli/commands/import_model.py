"""The command `seqloom import`."""

from pathlib import Path
from typing import Annotated

from seqloom.cli.options import argument, option
from seqloom.cli.output import print_message


def import_model(
    folder: Annotated[
        Path,
        argument(
            "FOLDER",
            "Model of another toolkit: a Hugging Face folder with a Marian (OPUS-MT), M2M100 or "
            "NLLB model and its tokenizer, or a folder with an .npz file of Marian.",
        ),
    ],
    run_folder: Annotated[Path, option("RUN", "Run folder to write. It must not exist.", "--run")],
    source_language: Annotated[
        str | None,
        option(
            "LANGUAGE",
            "Source language of an M2M100 or NLLB model, for example fra_Latn. Default: that of "
            "the model's settings, else English.",
            "--from",
        ),
    ] = None,
) -> None:
    """Import a translation model of another toolkit as a run folder.

    The outputs are those of the original model. The run can be used with translate, evaluate,
    inspect, search and serve. It has no training data.
    """
    from seqloom.interop.importer import import_model

    foreign = import_model(folder, run_folder, source_language)
    print_message(f"imported: {foreign.kind}, {foreign.target.size:,} target tokens")
    languages = foreign.target.preprocessing.tags.names
    if languages:
        from seqloom.config.schema.corpora import tag_display_name

        names = ", ".join(tag_display_name(tag) for tag in languages[:8])
        more = f" and {len(languages) - 8} more" if len(languages) > 8 else ""
        print_message(f"target languages (--to): {names}{more}")
    to = f" --to {tag_display_name(languages[0])}" if languages else ""
    print_message(f"translate with: seqloom translate {run_folder}{to}")
