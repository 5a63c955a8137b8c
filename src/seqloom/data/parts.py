"""The parts of a split: pairs of languages, or whatever corpora it is put together from."""

from collections.abc import Iterable, Sequence
from itertools import chain, islice, zip_longest

from seqloom.data.example import Example


def by_part(examples: Sequence[Example]) -> dict[str, list[int]]:
    """The places of each part's examples, in the order of first appearance."""
    places: dict[str, list[int]] = {}
    for place, example in enumerate(examples):
        places.setdefault(example.part, []).append(place)
    return places


def first_of_each_part(examples: Iterable[Example], count: int) -> list[Example]:
    """So many examples, equally many of each part as far as there are: one of each in turn.

    Of every part as many are kept in memory as could be wanted if there were no other.
    """
    parts: dict[str, list[Example]] = {}
    for example in examples:
        some = parts.setdefault(example.part, [])
        if len(some) < count:
            some.append(example)
        if len(some) == count and not example.part:
            break  # there is no other part to wait for
    in_turn = chain.from_iterable(zip_longest(*parts.values()))
    return list(islice((example for example in in_turn if example is not None), count))
