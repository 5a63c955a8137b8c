"""Language pairs that a run translates, from its recipe or from --languages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from seqloom.config.schema.corpora import (
    CorpusOrHoldOutConfig,
    HoldOutConfig,
    ImportedConfig,
    TaggedCorpusConfig,
    tag_display_name,
)
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.tags import expand_corpora
from seqloom.config.schema.task import TranslationConfig
from seqloom.core.errors import ConfigError
from seqloom.text.language_names import LANGUAGE_NAMES

_CODE = r"[A-Za-z][A-Za-z0-9_-]*"


@dataclass(frozen=True, order=True)
class LanguagePair:
    """Source and target language, by their codes."""

    source: Annotated[str, Field(description="Code of the source language.")]
    target: Annotated[str, Field(description="Code of the target language.")]

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"

    def matches(self, source: str | None, target: str | None) -> bool:
        """True if the pair has the given source and target language. None matches any language."""
        return source in (None, self.source) and target in (None, self.target)


def recipe_language_pairs(config: RunConfig) -> tuple[LanguagePair, ...]:
    """Return the language pairs of a recipe's training corpora, each pair once.

    Returns an empty tuple if the task is not translation, or if the pair of one of the corpora is
    unknown. The pair of a corpus is known if one of these is true:
    - It is bundled with seqloom.
    - It has a target language tag such as '<2de>', and its name ends in the same language ('en-de').
    - It has no tag, and its name consists of two language codes ('en-de').
    - The suffixes of its files are language codes (train.de, train.en).
    - The names of its fields (JSONL, Parquet, Arrow) are language codes.
    - It is a translation memory whose languages have known codes.
    - It represents the training data of an imported model, and its section names both languages.
    """
    if not isinstance(config.task, TranslationConfig):
        return ()
    pairs = [_corpus_pair(corpus) for corpus in expand_corpora(config.data.train)]
    if None in pairs:  # without the pair of this corpus, the list would be incomplete
        return ()
    return tuple(dict.fromkeys(pair for pair in pairs if pair is not None))


def _corpus_pair(corpus: CorpusOrHoldOutConfig) -> LanguagePair | None:
    tagged_pair = _tagged_pair(corpus)
    if tagged_pair is not None:
        return tagged_pair
    if isinstance(corpus, TaggedCorpusConfig) and corpus.tag is None and corpus.name is not None:
        source_code, _, target_code = corpus.name.partition("-")
        if named_pair := _pair_of_codes(source_code, target_code):
            return named_pair
    names = None if isinstance(corpus, HoldOutConfig) else corpus.side_names
    if names is None:
        return None
    # The settings of these corpora are codes of languages, which need not be known.
    if isinstance(corpus, ImportedConfig):
        return LanguagePair(*names)
    return _pair_of_codes(*names)


def _tagged_pair(corpus: CorpusOrHoldOutConfig) -> LanguagePair | None:
    """Return the pair of a corpus with a tag: (en, de) for the name 'en-de' and the tag '<2de>'.

    Returns None if the corpus has no tag, or if the name does not end in the language of the tag.
    """
    if not isinstance(corpus, TaggedCorpusConfig) or corpus.tag is None or corpus.name is None:
        return None
    source, _, target = corpus.name.partition("-")
    return (
        LanguagePair(source, target) if source and target == tag_display_name(corpus.tag) else None
    )


def _pair_of_codes(source: str, target: str) -> LanguagePair | None:
    """Return the pair if both strings are language codes, else None."""
    if source in LANGUAGE_NAMES and target in LANGUAGE_NAMES:
        return LanguagePair(source, target)
    return None


def parse_language_options(settings: Sequence[str], runs: Sequence[str]) -> dict[str, LanguagePair]:
    """Parse the values of --languages. Returns a dictionary from run names to language pairs.

    settings: values such as "NAME=de:en". If there is only one run, "NAME=" can be left out.
    runs:     names of all runs
    """
    pairs: dict[str, LanguagePair] = {}
    for setting in settings:
        match = re.fullmatch(
            rf"(?:(?P<run>[^=]+)=)?(?P<source>{_CODE}):(?P<target>{_CODE})", setting
        )
        if match is None:
            raise ConfigError(
                f"--languages {setting}: must have the form de:en, or NAME=de:en for several runs"
            )
        if match["run"] is None and len(runs) > 1:
            raise ConfigError(
                f"--languages {setting}: there are several runs; name one of them, for example "
                f"--languages {runs[0]}={setting}"
            )
        run = match["run"] or runs[0]
        if run not in runs:
            raise ConfigError(
                f"--languages {setting}: there is no run '{run}'; the runs are {', '.join(runs)}"
            )
        pairs[run] = LanguagePair(match["source"], match["target"])
    return pairs
