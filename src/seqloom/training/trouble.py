"""Where in the data a training went wrong."""

from collections.abc import Iterator
from contextlib import contextmanager

from seqloom.core.errors import TrainingError
from seqloom.training.session import Session

SHOWN = 10
"""Examples that are named."""


@contextmanager
def explained_trouble(session: Session, place: tuple[int, int]) -> Iterator[None]:
    """Say at which step training failed, and on which examples. place: that of the first."""
    step = session.step + 1
    try:
        yield
    except TrainingError as error:
        examples = examples_from(session, place)
        more = f" and {len(examples) - SHOWN:,} more" if len(examples) > SHOWN else ""
        named = ", ".join(str(example) for example in examples[:SHOWN])
        raise TrainingError(
            f"{session.folder}: step {step:,}: {error}. The step saw these training examples, "
            f"counted from 0 after filters: {named}{more}"
        ) from error


def examples_from(session: Session, place: tuple[int, int]) -> list[int]:
    """The training examples that all ranks together see in the step that starts here."""
    batches = session.config.training.accumulate * session.world.size
    return session.stream.examples_from(place, batches)
