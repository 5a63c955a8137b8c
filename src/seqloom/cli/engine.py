"""Loads the inference engine and prints a note about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqloom.cli.output import print_message

if TYPE_CHECKING:
    from seqloom.config.schema.decoding import DecodingConfig
    from seqloom.inference.engine.select import EngineChoice
    from seqloom.inference.options import PredictionOptions
    from seqloom.inference.run import Run

COMPILED_NOTE = (
    "It is compiled when a single text is decoded, which takes about half a minute; several texts are "
    "decoded without compilation"
)


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
