"""What is said about the engine that answers."""

from seqloom.cli.output import tell
from seqloom.runs.engine.choose import Choice


def tell_engine(choice: Choice) -> None:
    """One line, if there is anything to say: torch that was asked for needs no words."""
    if choice.why:
        tell(choice.note)
