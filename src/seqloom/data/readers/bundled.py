"""Reads the Tatoeba sentence pairs that are part of seqloom, and labels derived from them."""

from collections.abc import Iterator, Sequence
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from itertools import chain, zip_longest
from typing import Any, ClassVar, assert_never

from seqloom.config.schema.corpora import BundledConfig, BundledLabelsConfig, Language
from seqloom.data.corpus.digests import file_digest
from seqloom.data.example import Example, Split
from seqloom.data.readers.reader import Reader
from seqloom.data.readers.text_files import read_lines

LABELLED_PAIRS = (BundledConfig(source="de", target="en"), BundledConfig(source="en", target="fr"))
"""Language pairs whose sentences are labelled. If a sentence occurs in both pairs, it is in the
same split in both."""


class BundledReader(Reader[BundledConfig]):
    """Reads sentence pairs."""

    def read(self) -> Iterator[Example]:
        return read_bundled(self.corpus, self.split)

    def identity(self) -> list[Any]:
        pairs = LABELLED_PAIRS if self.corpus.is_joined else [self.corpus]
        return [self.settings(), *_file_digests(pairs, self.split)]


class BundledLabelsReader(Reader[BundledLabelsConfig]):
    """Reads bundled sentences with labels. The setting `labels` selects the labels: one label per
    sentence (its language), or one label per character (whether it was a capital letter).

    Languages alternate, so that the first few examples cover all of them.
    """

    version: ClassVar[int] = 1
    """Part of a corpus' cache key. Increase it when a code change gives other labels to the same
    sentences."""

    def read(self) -> Iterator[Example]:
        names = sorted(set(self.corpus.languages))
        languages = [_sentences(language, self.split) for language in names]
        for language, sentence, where in filter(None, chain.from_iterable(zip_longest(*languages))):
            match self.corpus.labels:
                case "language":
                    source, target = sentence, language
                case "capitals":
                    source, target = without_capitals(sentence)
                case _:
                    assert_never(self.corpus.labels)
            yield Example(source, target, (target,), where)

    def identity(self) -> list[Any]:
        settings = self.corpus.model_dump(mode="json")
        return [settings, self.version, *_file_digests(LABELLED_PAIRS, self.split)]


def _file_digests(pairs: Sequence[BundledConfig], split: Split) -> Iterator[str]:
    for pair in pairs:
        with as_file(bundled_file(pair, split)) as path:
            yield file_digest(path)


def bundled_file(config: BundledConfig, split: Split) -> Traversable:
    """Return the Tatoeba file of a language pair and split. One language must be English."""
    assert not config.is_joined
    pair = "de-en" if "de" in (config.source, config.target) else "en-fr"
    return files("seqloom.bundled") / f"tatoeba-{pair}.{split}.tsv.gz"


def read_bundled(config: BundledConfig, split: Split) -> Iterator[Example]:
    """Yield the sentence pairs of a split. Each split is a separate file. No sentence is in two
    splits."""
    if config.is_joined:
        yield from _read_joined(config, split)
        return
    resource = bundled_file(config, split)
    first_is_source = resource.name.startswith(f"tatoeba-{config.source}-")
    with as_file(resource) as path:
        for number, line in enumerate(read_lines(path), start=1):
            first, second = line.split("\t")
            source, target = (first, second) if first_is_source else (second, first)
            yield Example(source, target, (target,), f"{resource.name}:{number}")


def _read_joined(config: BundledConfig, split: Split) -> Iterator[Example]:
    """Yield pairs of a German and a French sentence that have the same English translation.

    The function joins the German-English and the English-French pairs of the split on the English
    sentence. The dev and test pairs can test a model that is trained only on pairs with English: no
    sentence is in two splits, so the model has not seen these sentences in training.
    """
    translations: dict[str, list[str]] = {}
    for example in read_bundled(BundledConfig(source="en", target=config.target), split):
        translations.setdefault(example.source, []).append(example.target)
    for example in read_bundled(BundledConfig(source=config.source, target="en"), split):
        for target in translations.get(example.target, ()):
            yield Example(example.source, target, (target,), example.where)


def without_capitals(text: str) -> tuple[str, str]:
    """Return the text in lower case, and a string with one label per character.

    The label is U if the character was a capital letter, and l if it was not. Spaces separate the
    labels.

    If the lower-case form of a character has several characters, the character is not changed. So
    the result has as many characters as the text.
    """
    lower = "".join(char.lower() if len(char.lower()) == 1 else char for char in text)
    labels = ("U" if old != new else "l" for old, new in zip(text, lower, strict=True))
    return lower, " ".join(labels)


def _sentences(language: Language, split: Split) -> Iterator[tuple[Language, str, str]]:
    """Yield (language, sentence, file:line) for each distinct sentence of a language."""
    seen = set()
    for pair in LABELLED_PAIRS:
        for example in read_bundled(pair, split):
            sides = ((pair.source, example.source), (pair.target, example.target))
            for name, sentence in sides:
                if name == language and sentence not in seen:
                    seen.add(sentence)
                    yield language, sentence, example.where
