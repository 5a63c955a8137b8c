"""What is said about the engine that answers."""

from seqloom.cli.output import tell
from seqloom.runs.engine.choose import Choice
from seqloom.runs.run import Run


def tell_of_compiling(run: Run) -> None:
    """Before a silence of half a minute."""
    if run.engine.kind == "compiled":
        tell("compiling, which takes about half a minute …")


def tell_engine(choice: Choice) -> None:
    """One line, if there is anything to say: nobody expects another engine than torch where torch
    was asked for, or where the model is no Transformer."""
    if choice.why and not choice.expected:
        tell(choice.note)
