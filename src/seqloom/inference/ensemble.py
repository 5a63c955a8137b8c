"""Ensembles: several runs loaded as one model."""

from collections.abc import Sequence
from dataclasses import replace

from seqloom.core.errors import ConfigError
from seqloom.models.ensemble import build_ensemble
from seqloom.runs.bundle import Bundle
from seqloom.tasks.token_task import TokenTask


def join_bundles(bundles: Sequence[Bundle]) -> Bundle:
    """Join bundles (loaded run folders) into one. Its model is the ensemble of their models.

    The result has the recipe, the task and the folder of the first bundle. Raises a ConfigError if
    the tasks or tokenizers of the bundles differ.
    """
    first, *others = bundles
    if not others:
        return first
    problems = [problem for other in others for problem in _incompatibilities(first, other)]
    if problems:
        listed = "\n".join(f"  {problem}" for problem in problems)
        raise ConfigError(
            f"these runs cannot form an ensemble:\n{listed}\nAn ensemble averages probabilities "
            "token by token: train all runs for the same task, with the same [text] and training "
            "data"
        )
    return replace(
        first,
        model=build_ensemble([bundle.model for bundle in bundles]),
        partners=tuple(bundle.folder for bundle in others),
    )


def _incompatibilities(first: Bundle, other: Bundle) -> list[str]:
    """List the differences in task and tokenizers that prevent an ensemble of two bundles."""
    if not isinstance(first.task, TokenTask):
        return [f"{first.folder}: a forecasting run cannot be part of an ensemble"]
    first_kind, other_kind = first.config.task.kind, other.config.task.kind
    if first_kind != other_kind:
        return [f"{other.folder}: task '{other_kind}', but {first.folder} has '{first_kind}'"]
    assert isinstance(other.task, TokenTask)
    sides = (
        ("source", first.task.source_tokenizer, other.task.source_tokenizer),
        ("target", first.task.target_tokenizer, other.task.target_tokenizer),
    )
    return [
        f"{other.folder}: its {side} tokenizer ({other_side.size:,} tokens) differs from that of "
        f"{first.folder} ({first_side.size:,} tokens)"
        for side, first_side, other_side in sides
        if first_side is not None
        and other_side is not None
        and first_side.digest != other_side.digest
    ]
