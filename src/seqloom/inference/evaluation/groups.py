"""Scores of each group of a split, and their mean. A group is, for example, a language pair."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from seqloom.data.example import Example
from seqloom.data.readers.splits import indices_by_group
from seqloom.metrics.score import Score
from seqloom.tasks.token_task import TokenTask


@dataclass(frozen=True)
class GroupScores:
    """The scores of a run on one group of a split, for example on one language pair.

    part:      name of the group
    sentences: number of examples in the group
    """

    part: str
    sentences: int
    scores: tuple[Score, ...]


def score_groups(
    task: TokenTask, examples: Sequence[Example], outputs: Sequence[str]
) -> tuple[GroupScores, ...]:
    """Compute the scores of each group of examples. A group is, for example, a language pair.

    Returns an empty tuple if there is only one group or if there are no outputs.
    """
    groups = indices_by_group(examples)
    if len(groups) < 2 or not outputs:
        return ()
    return tuple(
        GroupScores(
            name,
            len(indices),
            tuple(task.scores([outputs[i] for i in indices], [examples[i] for i in indices])),
        )
        for name, indices in groups.items()
    )


def mean_scores(groups: Sequence[GroupScores]) -> list[Score]:
    """Return the mean of each score over the groups. Every group has the same weight."""
    if not groups:
        return []
    columns = zip(*(group.scores for group in groups), strict=True)
    return [
        replace(column[0], value=sum(score.value for score in column) / len(column))
        for column in columns
    ]
