"""Loads the run and the inference engine of commands that translate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from seqloom.cli.output import print_message

if TYPE_CHECKING:
    from seqloom.config.schema.decoding import DecodingConfig
    from seqloom.config.schema.names import EngineKind
    from seqloom.inference.engine.select import EngineChoice
    from seqloom.inference.options import PredictionOptions, Probabilities
    from seqloom.inference.run import Run

COMPILED_NOTE = (
    "It is compiled when a single text is decoded, which takes about half a minute; several texts are "
    "decoded without compilation"
)


@dataclass(frozen=True)
class Translator:
    """A loaded run, and how it translates.

    engine: name of the engine and of the device
    """

    run: Run
    options: PredictionOptions
    engine: str


def load_translator(
    folders: Sequence[Path],
    settings: Sequence[str] | None,
    options: PredictionOptions,
    engine: EngineKind | None,
    *,
    attention: bool = False,
    probabilities: Probabilities = "none",
) -> Translator:
    """Load a run or an ensemble and its engine, and print a note about the engine.

    The decoding settings of the run, changed by --set and --beam, become part of the options.

    Raises ConfigError if the options do not fit the run, for example an unknown language.
    """
    from seqloom.cli.recipe_settings import change_recipe, load_run
    from seqloom.inference.search_settings import check_n_best

    run, settings = load_run(folders, settings)
    config = change_recipe(
        run.config, settings, beam=options.beam, engine=engine, sections=("decoding", "engine")
    )
    run.engine = config.engine
    check_n_best(config.decoding, options.n_best)
    run.languages.path(options.to)  # reports an unknown language before any input is read
    options = replace(
        options, decoding=config.decoding, attention=attention, probabilities=probabilities
    )
    choice = prepare_engine(run, options, config.decoding)
    return Translator(run, options, f"{choice.name} on {run.predictor.device.type}")


def prepare_engine(run: Run, options: PredictionOptions, decoding: DecodingConfig) -> EngineChoice:
    """Load the engine for predictions with these options, and print a note about the engine.

    The note says which engine was chosen and why. There is no note if the user chose torch, or if
    the model is not a Transformer, because users expect torch in these cases.

    If the engine is "compiled", this function does not compile the model yet. Compilation starts
    when a single text is decoded for the first time, and takes about half a minute. If several
    texts are decoded together, the model is used without compilation.
    """
    from seqloom.inference.engine.select import EngineChoice

    if run.engine.kind == "compiled":
        run.engines.check_compiled(decoding, options)
        choice = EngineChoice(None, "torch compiled", COMPILED_NOTE, compiled=True)
    else:
        choice = run.choose_engine(options, decoding=decoding)
    if choice.reason and not choice.expected:
        print_message(choice.note)
    return choice
