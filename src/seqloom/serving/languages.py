"""Which languages a run translates, as far as its recipe or its owner says so."""

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
from seqloom.serving.language_names import NAMES

_CODE = r"[A-Za-z][A-Za-z0-9_-]*"


@dataclass(frozen=True, order=True)
class Pair:
    """From one language to another, by their codes."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"


def name_of(code: str) -> str:
    """In English; the code itself where there is no name for it."""
    return NAMES.get(code, code)


def pairs_of(config: RunConfig) -> tuple[Pair, ...]:
    """What the recipe says: bundled pairs, tagged pairs, and files that are named by their
    languages, as train.de and train.en. Empty if it does not say."""
    if not isinstance(config.task, TranslationConfig):
        return ()
    found = [_pair_of(corpus) for corpus in expand_corpora(config.data.train)]
    if None in found:  # what is known of some would be a guess about the rest
        return ()
    return tuple(dict.fromkeys(pair for pair in found if pair is not None))


def _pair_of(corpus: CorpusOrHoldOutConfig) -> Pair | None:
    named = _named_pair(corpus)
    if named is not None:
        return named
    match corpus:
        case BundledConfig(source=source, target=target):
            return Pair(source, target)
        case ParallelConfig(source=source, target=target):
            return _known(_suffix(source), _suffix(target))
        case JsonlConfig(source=source, target=target):
            return _known(source, target)
        case _:
            return None


def _named_pair(corpus: CorpusOrHoldOutConfig) -> Pair | None:
    """The name 'en-de' of a corpus that is tagged with '<2de>'."""
    if not isinstance(corpus, TaggedCorpusConfig) or corpus.tag is None or corpus.name is None:
        return None
    source, _, target = corpus.name.partition("-")
    return Pair(source, target) if source and target == tag_display_name(corpus.tag) else None


def _suffix(path: str) -> str:
    """data/train.de.gz -> de"""
    name = PurePath(path).name
    parts = [part for part in name.split(".")[1:] if part not in ("gz", "txt")]
    return parts[-1] if parts else ""


def _known(source: str, target: str) -> Pair | None:
    return Pair(source, target) if source in NAMES and target in NAMES else None


def named_pairs(settings: Sequence[str], runs: Sequence[str]) -> dict[str, Pair]:
    """What --languages says: de:en for the only run, or NAME=de:en for each."""
    found: dict[str, Pair] = {}
    for setting in settings:
        match = re.fullmatch(
            rf"(?:(?P<run>[^=]+)=)?(?P<source>{_CODE}):(?P<target>{_CODE})", setting
        )
        if match is None:
            raise ConfigError(
                f"--languages {setting}: must look like de:en, or NAME=de:en where there are "
                "several runs"
            )
        if match["run"] is None and len(runs) > 1:
            raise ConfigError(
                f"--languages {setting}: there are several runs, so say of which: "
                f"--languages {runs[0]}={setting}"
            )
        run = match["run"] or runs[0]
        if run not in runs:
            raise ConfigError(
                f"--languages {setting}: there is no run '{run}', but {', '.join(runs)}"
            )
        found[run] = Pair(match["source"], match["target"])
    return found
