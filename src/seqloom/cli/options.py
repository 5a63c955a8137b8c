"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated, get_args

import typer

from seqloom.config.loading.bundled import bundled_presets, bundled_recipes
from seqloom.config.schema.names import EngineKind
from seqloom.core.errors import NotFoundError
from seqloom.runs.folder.integrity import start_check

Recipe = Annotated[
    str,
    typer.Argument(
        metavar="RECIPE",
        help=f"A recipe file, or a bundled recipe: {', '.join(sorted(bundled_recipes()))}. A recipe "
        f'may build on a preset (preset = "small"): {", ".join(sorted(bundled_presets()))}.',
    ),
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that training wrote.")]
Partners = Annotated[
    list[Path] | None,
    typer.Option(
        "--with",
        metavar="RUN",
        help="Ask this run too and average the probabilities (an ensemble). May be repeated.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change one setting of the recipe. May be repeated."
    ),
]
DecodingSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a decoding setting, as decoding.max_length=60."
    ),
]
OutputSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a setting of decoding or engine, as decoding.max_length=60 or "
        "engine.precision=float32.",
    ),
]
EvaluationSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a setting of decoding, engine or data, as decoding.max_length=60, "
        "data.folder=/elsewhere or data.test={kind='tsv', path='x.tsv'}.",
    ),
]
BeamWidth = Annotated[
    int | None,
    typer.Option(
        "--beam", min=1, max=1000, help="Beam width; wins over --set. Left out: as the recipe says."
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="auto|torch|compiled|ctranslate2",
        help="What computes. auto: ctranslate2 for Transformers on a CPU, where it can; else torch. "
        "compiled: torch compiled, for one text at a time on a CPU: half a minute once, then half "
        "the wait.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON, for a program to read.")]


def known_engine(name: str | None) -> str | None:
    """Answer a mistyped engine before anything heavy is loaded."""
    if name is not None and name not in get_args(EngineKind):
        raise typer.BadParameter(
            f"there is no engine '{name}'; there are {', '.join(get_args(EngineKind))}",
            param_hint="--engine",
        )
    return name


def existing_run(folder: Path) -> Path:
    """Answer a mistyped folder before anything heavy is loaded, and begin to check any other."""
    if not folder.is_dir():
        what = "is a file, not a run folder" if folder.exists() else "there is no such run folder"
        raise NotFoundError(f"{folder}: {what}; give the folder that `seqloom train` wrote")
    start_check(folder)
    return folder


def existing_runs(folder: Path, partners: list[Path] | None) -> list[Path]:
    """The run and those it is asked with."""
    return [existing_run(each) for each in (folder, *(partners or ()))]
