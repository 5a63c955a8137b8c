"""Several runs loaded as one."""

from collections.abc import Sequence
from dataclasses import replace

from seqloom.core.errors import ConfigError
from seqloom.models.ensemble import ensemble
from seqloom.runs.bundle import Bundle
from seqloom.tasks.token_task import TokenTask


def join(bundles: Sequence[Bundle]) -> Bundle:
    """One bundle whose model is the ensemble of all; recipe, task and folder are the first's."""
    first, *others = bundles
    if not others:
        return first
    problems = [problem for other in others for problem in _misfits(first, other)]
    if problems:
        listed = "\n".join(f"  {problem}" for problem in problems)
        raise ConfigError(
            f"these runs cannot be one ensemble:\n{listed}\nTheir probabilities are averaged token "
            "by token: train all of them for the same task, with the same [text] and training data"
        )
    return replace(
        first,
        model=ensemble([one.model for one in bundles]),
        partners=tuple(one.folder for one in others),
    )


def _misfits(first: Bundle, other: Bundle) -> list[str]:
    """Why the ids of one mean nothing to the other."""
    if not isinstance(first.task, TokenTask):
        return [f"{first.folder}: forecasts numbers, which are not averaged"]
    ours, theirs = first.config.task.kind, other.config.task.kind
    if ours != theirs:
        return [f"{other.folder}: is for {theirs}, but {first.folder} for {ours}"]
    assert isinstance(other.task, TokenTask)
    sides = (
        ("source", first.task.source_tokenizer, other.task.source_tokenizer),
        ("target", first.task.target_tokenizer, other.task.target_tokenizer),
    )
    return [
        f"{other.folder}: its {side} tokenizer ({its.size:,} tokens) is not that of "
        f"{first.folder} ({own.size:,} tokens)"
        for side, own, its in sides
        if own is not None and its is not None and own.digest != its.digest
    ]
