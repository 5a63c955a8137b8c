"""Arguments and options that several commands share.

Each `Annotated` type declares one argument or option. Callbacks check its value before the command
imports torch.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from seqloom.cli.parameters.completion import complete_recipe, complete_run
from seqloom.cli.torch_setup import prepare_for_torch
from seqloom.config.loading.bundled import bundled_presets, bundled_recipes
from seqloom.config.schema.names import EngineKind
from seqloom.core.errors import NotFoundError
from seqloom.core.file_kinds import recognise


def existing_run(folder: Path | None) -> Path | None:
    """Option callback that checks a run folder. Returns the folder unchanged.

    Raises NotFoundError if the folder does not exist. Otherwise starts the integrity check of its
    files, which runs in a thread while the command imports torch.
    """
    if folder is None:
        return None
    if not folder.is_dir():
        kind = recognise(folder)
        name = kind.name if kind else "a file"
        problem = f"is {name}, not a run folder" if folder.exists() else "no such run folder"
        raise NotFoundError(f"{folder}: {problem}. Give a folder that `seqloom train` wrote.")
    kind = recognise(folder)
    if kind is not None and not (folder / "config.toml").is_file():
        raise NotFoundError(
            f"{folder}: is {kind.name}, not a run folder. Give a folder that `seqloom train` wrote."
        )
    prepare_for_torch([folder])
    return folder


def existing_runs(folders: list[Path] | None) -> list[Path] | None:
    """Option callback: call `existing_run` for each value of a repeated option."""
    for folder in folders or ():
        existing_run(folder)
    return folders


_RECIPE_HELP = (
    f"Recipe file, or the name of a bundled recipe: {', '.join(sorted(bundled_recipes()))}. "
    'A recipe can extend a preset with preset = "NAME". '
    f"Presets: {', '.join(sorted(bundled_presets()))}."
)
Recipe = Annotated[
    str, typer.Argument(metavar="RECIPE", help=_RECIPE_HELP, autocompletion=complete_recipe)
]
OptionalRecipe = Annotated[
    str | None,
    typer.Argument(metavar="[RECIPE]", help=_RECIPE_HELP, autocompletion=complete_recipe),
]
RunFolder = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="Run folder, written by `seqloom train`.",
        callback=existing_run,
        autocompletion=complete_run,
    ),
]
EnsembleMembers = Annotated[
    list[Path] | None,
    typer.Option(
        "--with",
        metavar="RUN",
        help="Another run folder. The probabilities of all runs are averaged (ensemble). "
        "Can be repeated.",
        callback=existing_runs,
        autocompletion=complete_run,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a setting of the recipe. Can be repeated."
    ),
]
RunSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a decoding setting, for example decoding.max_length=60, or how attention is "
        "computed, for example model.decoder.attention.selection=argmax. Can be repeated.",
    ),
]
BeamWidth = Annotated[
    int | None,
    typer.Option(
        "--beam",
        metavar="N",
        min=1,
        max=1000,
        help="Beam width. Takes precedence over --set. Default: the decoding settings of the run.",
    ),
]
Engine = Annotated[
    EngineKind | None,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        help="Inference engine: auto, torch, compiled or ctranslate2. auto uses ctranslate2 for "
        "Transformers on a CPU where it supports the request, and torch otherwise. compiled "
        "compiles the torch model, which takes half a minute and then about halves the latency of "
        "single texts on a CPU. Default: the engine setting of the run.",
    ),
]
TargetLanguage = Annotated[
    str | None,
    typer.Option("--to", metavar="LANGUAGE", help="Target language, for multilingual runs."),
]
SplitName = Literal["test", "dev", "train"]
Split = Annotated[
    SplitName,
    typer.Option(metavar="SPLIT", help="Split of the recipe's data: test, dev or train."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
