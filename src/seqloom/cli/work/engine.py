"""What is said about the engine that answers."""

from seqloom.cli.output import tell
from seqloom.runs.engine.select import EngineChoice
from seqloom.runs.run import Run


def tell_of_compiling(run: Run) -> None:
    """Before a silence of half a minute."""
    if run.engine.kind == "compiled":
        tell("compiling, which takes about half a minute …")


def tell_engine(choice: EngineChoice) -> None:
    """One line, if there is anything to say: nobody expects another engine than torch where torch
    was asked for, or where the model is no Transformer."""
    if choice.reason and not choice.expected:
        tell(choice.note)
