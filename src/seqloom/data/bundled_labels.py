"""Labels that the bundled sentences carry in themselves."""

from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import assert_never

from seqloom.config.schema.corpora import BundledConfig, BundledLabelsConfig, Language
from seqloom.data.bundled import read_bundled
from seqloom.data.example import Example, Split

VERSION = 1
"""Part of the cache key of a corpus: to be raised when the same sentences give other labels."""
PAIRS = (BundledConfig(source="de", target="en"), BundledConfig(source="en", target="fr"))
"""No sentence is in two splits, not even of different pairs."""


def read_bundled_labels(config: BundledLabelsConfig, split: Split) -> Iterator[Example]:
    """In turn from each language, so that the first few are of all of them."""
    each = [_sentences(language, split) for language in sorted(set(config.languages))]
    for language, sentence, where in filter(None, chain.from_iterable(zip_longest(*each))):
        match config.labels:
            case "language":
                source, target = sentence, language
            case "capitals":
                source, target = without_capitals(sentence)
            case _:
                assert_never(config.labels)
        yield Example(source, target, (target,), where)


def without_capitals(text: str) -> tuple[str, str]:
    """The text in lower case, and for each of its characters U (was a capital) or l.

    A character whose lower case is several characters stays as it is: there is one label for each.
    """
    lower = "".join(one.lower() if len(one.lower()) == 1 else one for one in text)
    labels = ("U" if one != other else "l" for one, other in zip(text, lower, strict=True))
    return lower, " ".join(labels)


def _sentences(language: Language, split: Split) -> Iterator[tuple[Language, str, str]]:
    """Each sentence of a language once, with the language and where it stands."""
    seen = set()
    for pair in PAIRS:
        for example in read_bundled(pair, split):
            sides = ((pair.source, example.source), (pair.target, example.target))
            for name, sentence in sides:
                if name == language and sentence not in seen:
                    seen.add(sentence)
                    yield language, sentence, example.where
