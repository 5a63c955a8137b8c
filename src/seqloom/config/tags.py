"""The tags of a recipe: which of them training shows, and what each asks for."""

from collections.abc import Iterable, Iterator, Sequence

from seqloom.config.corpora import (
    HeldOutConfig,
    HoldOutConfig,
    ParallelConfig,
    SeriesConfig,
    TracksConfig,
)
from seqloom.config.data import DataConfig, SplitConfig
from seqloom.config.languages import LanguagesConfig, TaggedConfig, tag_for


def pairs_of(table: LanguagesConfig) -> list[ParallelConfig]:
    """Each pair by itself, tagged with its target language."""
    return [
        ParallelConfig(
            source=table.file_of(pair, pair.split("-")[0]),
            target=table.file_of(pair, pair.split("-")[1]),
            tag=tag_for(pair.split("-")[1]),
            name=pair,
        )
        for pair in table.pairs
    ]


def each_corpus(split: Iterable[SplitConfig]) -> tuple[HeldOutConfig, ...]:
    """The corpora of a split, every pair of languages by itself."""
    found: list[HeldOutConfig] = []
    for table in split:
        found += pairs_of(table) if isinstance(table, LanguagesConfig) else [table]
    return tuple(found)


def tag_of(corpus: HeldOutConfig) -> str | None:
    return corpus.tag if isinstance(corpus, TaggedConfig) else None


def tags_of(data: DataConfig) -> tuple[str, ...]:
    """The tags that training shows, each once: the only ones that mean anything later."""
    tags = (tag_of(corpus) for corpus in each_corpus(data.train))
    return tuple(dict.fromkeys(tag for tag in tags if tag is not None))


def asked_for(tag: str) -> str:
    """What a user says to choose this tag: the language, if it is one's. <2de> -> de"""
    language = tag.removeprefix("<2").removesuffix(">")
    return language if language and tag == tag_for(language) else tag


def tag_problems(data: DataConfig, declared: Sequence[str]) -> list[str]:
    """Why the tags of this data cannot be used. declared: those that [text] lists by itself"""
    known = tags_of(data)
    problems = [
        f"data.train: the tag {tag!r} must be one word, without spaces, such as '<2de>'"
        for tag in known
        if tag.split() != [tag]
    ]
    if known:
        problems += _untagged(data)
    problems += _undeclared(data, {*known, *declared})
    problems += _unknown_languages(data)
    problems += _held_out_both_ways(data)
    if data.temperature != 1 and len(each_corpus(data.train)) == 1:
        problems.append(
            "data.temperature: there is one part of training data only, so there is nothing to "
            "choose between; leave it out, or give several pairs or corpora"
        )
    if data.temperature != 1 and any(
        isinstance(one, SeriesConfig | TracksConfig) for one in data.train
    ):
        problems.append(
            "data.temperature: series and tracks are seen as often as they are long; leave it out"
        )
    return problems


def _splits(data: DataConfig) -> Iterator[tuple[str, Sequence[SplitConfig]]]:
    yield from (("train", data.train), ("dev", data.dev), ("test", data.test))


def _untagged(data: DataConfig) -> Iterator[str]:
    """Where one corpus is tagged all are: without a tag nobody could say what is wanted."""
    for split, tables in _splits(data):
        for place, table in enumerate(tables):
            bare = not isinstance(table, LanguagesConfig | HoldOutConfig) and tag_of(table) is None
            if bare:
                yield (
                    f"data.{split}: corpus {place} (counted from 0) has no tag, but training has "
                    f"{', '.join(tags_of(data))}; say what is wanted of it, for example "
                    f"tag = '{tags_of(data)[0]}'"
                )


def _undeclared(data: DataConfig, known: set[str]) -> Iterator[str]:
    for split, tables in (("dev", data.dev), ("test", data.test)):
        tags = dict.fromkeys(tag_of(corpus) for corpus in each_corpus(tables))
        for tag in tags:
            if tag is not None and tag not in known:
                listed = ", ".join(sorted(known)) or "none"
                yield (
                    f"data.{split}: the tag {tag!r} is in no training corpus, so the model cannot "
                    f"learn what it means; the tags of data.train are: {listed}"
                )


def _unknown_languages(data: DataConfig) -> Iterator[str]:
    """A pair need not be trained on to be asked for, but each of its languages must."""
    pairs = [
        pair for table in data.train if isinstance(table, LanguagesConfig) for pair in table.pairs
    ]
    known = {language for pair in pairs for language in pair.split("-")}
    for split, tables in (("dev", data.dev), ("test", data.test)):
        for table in tables:
            if known and isinstance(table, LanguagesConfig):
                read = dict.fromkeys(pair.split("-")[0] for pair in table.pairs)
                for language in read:
                    if language not in known:
                        yield (
                            f"data.{split}: '{language}' is in no pair of data.train; its "
                            f"languages are {', '.join(sorted(known))}"
                        )


def _held_out_both_ways(data: DataConfig) -> Iterator[str]:
    """What is held out is chosen by its source, which is a target where languages are reversed."""
    pairs = [
        pair for table in data.train if isinstance(table, LanguagesConfig) for pair in table.pairs
    ]
    reversed_ = {"-".join(reversed(pair.split("-"))) for pair in pairs}
    both = [pair for pair in pairs if pair in reversed_]
    for split, tables in (("dev", data.dev), ("test", data.test)):
        if both and any(isinstance(table, HoldOutConfig) for table in tables):
            yield (
                f"data.{split}: what is held out of '{both[0]}' would be learned the other way "
                f"round; give files, for example {split} = {{ kind = 'languages', "
                f"path = '{split}.{{language}}.gz', pairs = ['{both[0]}'] }}"
            )
