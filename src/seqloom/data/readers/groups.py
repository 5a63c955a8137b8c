"""Groups of a split: its language pairs, or the corpora that it consists of."""

from collections.abc import Iterable, Sequence
from itertools import chain, islice, zip_longest

from seqloom.data.example import Example


def indices_by_group(examples: Sequence[Example]) -> dict[str, list[int]]:
    """Map each group to the indices of its examples, in order of first appearance."""
    indices: dict[str, list[int]] = {}
    for index, example in enumerate(examples):
        indices.setdefault(example.group, []).append(index)
    return indices


def first_of_each_group(examples: Iterable[Example], count: int) -> list[Example]:
    """Return the first `count` examples, taken from the groups in alternation.

    Keeps up to `count` examples of each group in memory.
    """
    groups: dict[str, list[Example]] = {}
    for example in examples:
        group = groups.setdefault(example.group, [])
        if len(group) < count:
            group.append(example)
        if len(group) == count and not example.group:
            break  # examples without a group name: there is no other group
    alternating = chain.from_iterable(zip_longest(*groups.values()))
    return list(islice((example for example in alternating if example is not None), count))
