"""Language pairs that a run translates, from its recipe or from --languages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from seqloom.config.schema.corpora import (
    BundledConfig,
    CorpusOrHoldOutConfig,
    JsonlConfig,
    ParallelConfig,
    TaggedCorpusConfig,
)
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.tags import expand_corpora, tag_display_name
from seqloom.config.schema.task import TranslationConfig
from seqloom.core.errors import ConfigError
from seqloom.serving.api.languages.names import LANGUAGE_NAMES

_CODE = r"[A-Za-z][A-Za-z0-9_-]*"


@dataclass(frozen=True, order=True)
class LanguagePair:
    """Source and target language, by their codes."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"

    def matches(self, source: str | None, target: str | None) -> bool:
        """True if both languages agree. None agrees with every language."""
        return source in (None, self.source) and target in (None, self.target)


def recipe_language_pairs(config: RunConfig) -> tuple[LanguagePair, ...]:
    """The language pairs that a recipe names; empty if it does not name all of them.

    Recipes name languages by bundled pairs, by tagged pairs, and by file names such as train.de and
    train.en.
    """
    if not isinstance(config.task, TranslationConfig):
        return ()
    pairs = [_corpus_pair(corpus) for corpus in expand_corpora(config.data.train)]
    if None in pairs:  # the pairs of the other corpora would be an incomplete answer
        return ()
    return tuple(dict.fromkeys(pair for pair in pairs if pair is not None))


def _corpus_pair(corpus: CorpusOrHoldOutConfig) -> LanguagePair | None:
    tagged_pair = _tagged_pair(corpus)
    if tagged_pair is not None:
        return tagged_pair
    match corpus:
        case BundledConfig(source=source, target=target):
            return LanguagePair(source, target)
        case ParallelConfig(source=source, target=target):
            return _pair_of_codes(_file_suffix(source), _file_suffix(target))
        case JsonlConfig(source=source, target=target):
            return _pair_of_codes(source, target)
        case _:
            return None


def _tagged_pair(corpus: CorpusOrHoldOutConfig) -> LanguagePair | None:
    """The pair in the name 'en-de' of a corpus with the tag '<2de>'."""
    if not isinstance(corpus, TaggedCorpusConfig) or corpus.tag is None or corpus.name is None:
        return None
    source, _, target = corpus.name.partition("-")
    return (
        LanguagePair(source, target) if source and target == tag_display_name(corpus.tag) else None
    )


def _file_suffix(path: str) -> str:
    """data/train.de.gz -> de"""
    name = PurePath(path).name
    suffixes = [suffix for suffix in name.split(".")[1:] if suffix not in ("gz", "txt")]
    return suffixes[-1] if suffixes else ""


def _pair_of_codes(source: str, target: str) -> LanguagePair | None:
    """A pair, if both strings are language codes."""
    if source in LANGUAGE_NAMES and target in LANGUAGE_NAMES:
        return LanguagePair(source, target)
    return None


def parse_language_options(settings: Sequence[str], runs: Sequence[str]) -> dict[str, LanguagePair]:
    """Parse --languages: de:en for a single run, NAME=de:en otherwise. Returns pairs by run."""
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
