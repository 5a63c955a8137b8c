"""Finds sources and targets that are longer than a model allows."""

from collections.abc import Mapping, Sequence
from typing import Literal

from seqloom.core.errors import DataError
from seqloom.data.batching.planning import size_chunks
from seqloom.data.corpus.dataset import IntArray

Side = Literal["source", "target"]


def max_length_problems(
    split: str,
    lengths: Mapping[Side, IntArray | None],
    limits: Mapping[Side, Mapping[str, int]],
    is_long_text: bool,
) -> list[str]:
    """Return one message for each side of a split that has texts longer than a limit.

    split:        "train", "dev" or "general"
    lengths:      (N,) numbers of tokens without END; None if the side has no lengths
    limits:       maximum numbers of tokens, END included, by the name of the setting
    is_long_text: the lengths are those of windows of a long text
    """
    problems = []
    for side, counts in lengths.items():
        if counts is None or not limits[side]:
            continue
        limit = min(limits[side].values())
        count = sum(int((sizes > limit).sum()) for sizes in size_chunks(None, counts))
        if not count:
            continue
        if is_long_text:
            remedy = f"set data.{split}.length = {limit}"
        elif split == "train":
            remedy = f"drop them with data.filter.max_{side}_tokens = {limit - 1}"
        else:
            remedy = "remove them from the file"  # filters apply to the training split only
        longest = int(counts.max()) + 1
        too_small = [setting for setting, size in limits[side].items() if size < longest]
        changes = " and ".join(f"{setting} = {longest}" for setting in too_small)
        problems.append(
            f"  {split}: {count} {side}s have more than {limit} tokens (END included), the "
            f"longest {longest}; "
            f"set {changes}, or {remedy}"
        )
    return problems


def max_length_error(problems: Sequence[str]) -> DataError | None:
    """Return the error for the messages of `max_length_problems`; None if there are none."""
    if not problems:
        return None
    return DataError(
        "some lines are longer than the model's maximum length:\n" + "\n".join(problems)
    )
