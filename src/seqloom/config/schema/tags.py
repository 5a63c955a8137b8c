"""Lists the tags and language pairs of a recipe, and checks them.

A tag is a token such as '<2de>' that selects the kind of output, for example the target language.
"""

from collections.abc import Iterable, Iterator, Sequence

from seqloom.config.schema.corpora import (
    CorpusOrHoldOutConfig,
    HoldOutConfig,
    LanguagesConfig,
    TaggedCorpusConfig,
    TrainingDataConfig,
)
from seqloom.config.schema.data import DataConfig, SplitConfig


def expand_corpora(split: Iterable[SplitConfig]) -> tuple[CorpusOrHoldOutConfig, ...]:
    """Return the corpora of a split.

    A `LanguagesConfig` describes several languages. It is replaced by one corpus per language pair.
    An `ImportedConfig` describes the data of an imported model. It is replaced by one corpus per
    language tag.
    """
    corpora: list[CorpusOrHoldOutConfig] = []
    for table in split:
        if isinstance(table, HoldOutConfig):
            corpora.append(table)
        else:
            assert isinstance(table, TrainingDataConfig)
            corpora += table.expand()
    return tuple(corpora)


def corpus_tag(corpus: CorpusOrHoldOutConfig) -> str | None:
    """Return the tag of a corpus, or None if the corpus has no tag."""
    return corpus.tag if isinstance(corpus, TaggedCorpusConfig) else None


def training_tags(data: DataConfig) -> tuple[str, ...]:
    """Return the tags of the training corpora, each once. The model learns no other tags.

    For fine-tuning, the training tags of the original model are included. The fine-tuned model
    knows them, too.
    """
    corpora = expand_corpora(data.train)
    if data.parent is not None:
        corpora += expand_corpora(data.parent.train)
    tags = (corpus_tag(corpus) for corpus in corpora)
    return tuple(dict.fromkeys(tag for tag in tags if tag is not None))


def tag_problems(data: DataConfig, declared: Sequence[str]) -> list[str]:
    """Return error messages about tags, language pairs and the setting data.temperature.

    declared: the tags that the setting text.tags lists
    """
    tags = training_tags(data)
    problems = [
        f"data.train: the tag {tag!r} must be one word without spaces, such as '<2de>'"
        for tag in tags
        if tag.split() != [tag]
    ]
    if tags:
        problems += _untagged_problems(data)
    problems += _undeclared_problems(data, {*tags, *declared})
    problems += _unknown_language_problems(data)
    problems += _hold_out_problems(data)
    if data.temperature != 1 and len(expand_corpora(data.train)) == 1:
        problems.append(
            "data.temperature: there is only one training corpus, so there is nothing to balance; "
            "remove it, or give several pairs or corpora"
        )
    if data.temperature != 1 and any(corpus.modality == "series" for corpus in data.train):
        problems.append(
            "data.temperature: series, tracks and robot paths are always sampled by their size; remove it"
        )
    return problems


def _splits(data: DataConfig) -> Iterator[tuple[str, Sequence[SplitConfig]]]:
    yield from (("train", data.train), ("dev", data.dev), ("test", data.test))


def _untagged_problems(data: DataConfig) -> Iterator[str]:
    """Yield an error message for each corpus without a tag.

    Called only if some training corpus has a tag. The model then needs the tag of each example to
    know which kind of output to produce.
    """
    for split, tables in _splits(data):
        for index, table in enumerate(tables):
            corpora = table.expand() if isinstance(table, TrainingDataConfig) else ()
            if any(corpus_tag(corpus) is None for corpus in corpora):
                yield (
                    f"data.{split}: corpus {index} (counted from 0) has no tag, but training has "
                    f"{', '.join(training_tags(data))}; add its tag, for example "
                    f"tag = '{training_tags(data)[0]}'"
                )


def _undeclared_problems(data: DataConfig, known_tags: set[str]) -> Iterator[str]:
    for split, tables in (("dev", data.dev), ("test", data.test)):
        tags = dict.fromkeys(corpus_tag(corpus) for corpus in expand_corpora(tables))
        for tag in tags:
            if tag is not None and tag not in known_tags:
                listed = ", ".join(sorted(known_tags)) or "none"
                yield (
                    f"data.{split}: the tag {tag!r} is in no training corpus, so the model cannot "
                    f"learn it; the tags of data.train and text.tags are: {listed}"
                )


def _training_pairs(data: DataConfig) -> list[str]:
    return [
        pair for table in data.train if isinstance(table, LanguagesConfig) for pair in table.pairs
    ]


def _unknown_language_problems(data: DataConfig) -> Iterator[str]:
    """Yield an error message for each source language of dev or test that is not in training.

    The language pair itself need not occur in training: after training on de-en and en-fr, a model
    can translate de-fr.
    """
    languages = {language for pair in _training_pairs(data) for language in pair.split("-")}
    for split, tables in (("dev", data.dev), ("test", data.test)):
        for table in tables:
            if languages and isinstance(table, LanguagesConfig):
                sources = dict.fromkeys(pair.split("-")[0] for pair in table.pairs)
                for language in sources:
                    if language not in languages:
                        yield (
                            f"data.{split}: '{language}' is in no pair of data.train; the languages "
                            f"of data.train are {', '.join(sorted(languages))}"
                        )


def _hold_out_problems(data: DataConfig) -> Iterator[str]:
    """Yield an error message if dev or test is held out of data that is used in both directions.

    Only the source sentence decides whether a pair of sentences is held out. In the other
    direction, the other sentence is the source. So a pair that is held out in de-en could be a
    training pair in en-de.
    """
    pairs = _training_pairs(data)
    reversed_pairs = {"-".join(reversed(pair.split("-"))) for pair in pairs}
    both_ways = [pair for pair in pairs if pair in reversed_pairs]
    for split, tables in (("dev", data.dev), ("test", data.test)):
        if both_ways and any(isinstance(table, HoldOutConfig) for table in tables):
            yield (
                f"data.{split}: the pairs held out of '{both_ways[0]}' would be trained on in the "
                f"other direction; give files, for example {split} = {{ kind = 'languages', "
                f"path = '{split}.{{language}}.gz', pairs = ['{both_ways[0]}'] }}"
            )
