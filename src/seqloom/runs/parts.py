"""Scores of each pair of languages, or other part of a split, by itself, and their mean."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from seqloom.data.example import Example
from seqloom.data.parts import by_part
from seqloom.metrics.score import Score
from seqloom.tasks.token_task import TokenTask


@dataclass(frozen=True)
class PartScores:
    """What a run reaches on one part of a split."""

    part: str
    sentences: int
    scores: tuple[Score, ...]


def score_parts(
    task: TokenTask, examples: Sequence[Example], outputs: Sequence[str]
) -> tuple[PartScores, ...]:
    """Empty if there is one part only, or nothing to compare outputs with."""
    places = by_part(examples)
    if len(places) < 2 or not outputs:
        return ()
    return tuple(
        PartScores(
            part,
            len(own),
            tuple(task.scores([outputs[n] for n in own], [examples[n] for n in own])),
        )
        for part, own in places.items()
    )


def mean_scores(parts: Sequence[PartScores]) -> list[Score]:
    """Of each score the mean over the parts, however many sentences each has."""
    if not parts:
        return []
    columns = zip(*(part.scores for part in parts), strict=True)
    return [
        replace(column[0], value=sum(score.value for score in column) / len(column))
        for column in columns
    ]
