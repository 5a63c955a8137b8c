"""Arguments and options that several commands share.

Each `Annotated` type declares one argument or option. Callbacks check its value before the command
imports torch.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from seqloom.cli.parameters.completion import complete_recipe, complete_run
from seqloom.cli.torch_setup import prepare_for_torch
from seqloom.config.loading.bundled import bundled_presets, bundled_recipes
from seqloom.config.schema.names import EngineKind
from seqloom.core.errors import NotFoundError
from seqloom.core.file_kinds import recognise


def locate_run(path: Path) -> Path:
    """Return the run folder at a path. For a packed run, return its extracted copy.

    Raises NotFoundError if there is no run.
    """
    from seqloom.runs.archive import is_packed_run, open_run

    if is_packed_run(path):
        return open_run(path)
    if not path.is_dir():
        kind = recognise(path)
        name = kind.name if kind else "a file"
        problem = f"is {name}, not a run folder" if path.exists() else "no such run folder"
        raise NotFoundError(f"{path}: {problem}. {_WRITTEN_BY}")
    kind = recognise(path)
    if kind is not None and not (path / "config.toml").is_file():
        advice = f"{kind.advice[0].upper()}{kind.advice[1:]}."
        raise NotFoundError(f"{path}: is {kind.name}, not a run folder. {advice}")
    return path


_WRITTEN_BY = "Give a folder that `seqloom train` wrote, or a file that `seqloom pack` wrote."


def existing_run(path: Path | None) -> Path | None:
    """Option callback: return the run folder at a path. Raises NotFoundError if there is none.

    Also starts a thread that checks the integrity of the run's files while the command imports
    torch.
    """
    if path is None:
        return None
    folder = locate_run(path)
    prepare_for_torch([folder])
    return folder


def existing_parent(path: Path | None) -> Path | None:
    """Option callback: raise NotFoundError if there is no run at the path that --from gives.

    Returns the path unchanged, because the new run stores the path as the user gave it.
    """
    if path is not None:
        locate_run(path)
    return path


def existing_runs(folders: list[Path] | None) -> list[Path] | None:
    """Option callback for a repeated option: return the run folder at each path."""
    if folders is None:
        return None
    return [found for folder in folders if (found := existing_run(folder)) is not None]


def known_format(out: Path | None) -> Path | None:
    """Option callback: raise ConfigError if a figure cannot be written to this file."""
    from seqloom.viz.drawing import image_format

    if out is not None and out.suffix.lower() != ".json":
        image_format(out)
    return out


ADVANCED = "Advanced"
"""Panel of the help with the options that are rarely needed."""


def argument(metavar: str, help: str, **settings: Any) -> Any:
    """Declare an argument. The settings are those of `typer.Argument`."""
    return typer.Argument(metavar=metavar, help=help, **settings)


def option(metavar: str, help: str, *names: str, advanced: bool = False, **settings: Any) -> Any:
    """Declare an option with a value.

    names:    names of the option. Default: the name of the parameter
    advanced: list the option in the panel "Advanced" of the help
    settings: settings of `typer.Option`, for example min=1
    """
    panel = ADVANCED if advanced else None
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel, **settings)


def flag(name: str, help: str, *, advanced: bool = False) -> Any:
    """Declare an option without a value."""
    return typer.Option(name, help=help, rich_help_panel=ADVANCED if advanced else None)


_RECIPE_HELP = (
    f"Recipe file, or the name of a bundled recipe: {', '.join(sorted(bundled_recipes()))}. "
    'A recipe can extend a preset with preset = "NAME". '
    f"Presets: {', '.join(sorted(bundled_presets()))}."
)
_RUN_HELP = "Run folder, written by `seqloom train`, or packed run, written by `seqloom pack`."

Recipe = Annotated[str, argument("RECIPE", _RECIPE_HELP, autocompletion=complete_recipe)]
RunFolder = Annotated[
    Path, argument("RUN", _RUN_HELP, callback=existing_run, autocompletion=complete_run)
]
RunPath = Annotated[
    Path, argument("RUN", _RUN_HELP, callback=locate_run, autocompletion=complete_run)
]
"""Like `RunFolder`, for commands that do not import torch."""
OptionalRun = Annotated[
    Path | None,
    argument(
        "[RUN]",
        "Run folder or packed run. Default: a built-in example.",
        callback=existing_run,
        autocompletion=complete_run,
    ),
]
SourceText = Annotated[str, argument("[TEXT]", "Source text; for a language model, the prompt.")]
EnsembleMembers = Annotated[
    list[Path] | None,
    option(
        "RUN",
        "Another run folder. The probabilities of all runs are averaged (ensemble). "
        "Can be repeated.",
        "--with",
        advanced=True,
        callback=existing_runs,
        autocompletion=complete_run,
    ),
]
ParentFolder = Annotated[
    Path | None,
    option(
        "RUN",
        "Fine-tune this run: start from its best weights, with its model and vocabulary. "
        "RECIPE then needs only a data section.",
        "--from",
        callback=existing_parent,
        autocompletion=complete_run,
    ),
]
Settings = Annotated[
    list[str] | None,
    option("KEY=VALUE", "Override a setting of the recipe. Can be repeated.", "--set"),
]
RunSettings = Annotated[
    list[str] | None,
    option(
        "KEY=VALUE",
        "Override a decoding setting such as decoding.max_length=60, or a setting of attention "
        "such as model.decoder.attention.selection=argmax. Can be repeated.",
        "--set",
    ),
]
EngineSettings = Annotated[
    list[str] | None,
    option(
        "KEY=VALUE",
        "Override a setting of decoding, engine or attention, for example decoding.max_length=60, "
        "engine.precision=float32 or model.decoder.attention.selection=argmax. Can be repeated.",
        "--set",
    ),
]
Engine = Annotated[
    EngineKind | None,
    option(
        "ENGINE",
        "Inference engine: auto, torch, compiled or ctranslate2. auto uses ctranslate2 for "
        "Transformers on a CPU where it supports the request, and torch otherwise. compiled "
        "compiles the torch model, which takes half a minute and then about halves the latency of "
        "single texts on a CPU. Default: the engine setting of the run.",
        "--engine",
        advanced=True,
    ),
]
SplitName = Literal["test", "dev", "train"]
Split = Annotated[SplitName, option("SPLIT", "Split of the recipe's data: test, dev or train.")]
FigureFile = Annotated[
    Path | None,
    option(
        "FILE",
        "Write a figure (.svg, .png or .pdf), or all numbers (.json).",
        callback=known_format,
    ),
]
Full = Annotated[bool, flag("--full", "Print all numbers of long vectors.")]
Json = Annotated[bool, flag("--json", "Print JSON.")]
