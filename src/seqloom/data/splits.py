"""The examples of a split, whatever they are read from."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import assert_never

from seqloom.config.schema.corpora import (
    BundledConfig,
    BundledLabelsConfig,
    CaptionsConfig,
    CorpusConfig,
    CorpusOrHoldOutConfig,
    CsvConfig,
    HoldOutConfig,
    JsonlConfig,
    LinesConfig,
    LongTextConfig,
    ParallelConfig,
    SeriesConfig,
    SyntheticConfig,
    TaggedCorpusConfig,
    TracksConfig,
    TsvConfig,
)
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.tags import corpus_tag, expand_corpora
from seqloom.core.errors import ConfigError, DataError, NotFoundError
from seqloom.data.bundled import read_bundled
from seqloom.data.bundled_labels import read_bundled_labels
from seqloom.data.captions import read_captions
from seqloom.data.csv import read_csv
from seqloom.data.example import Example, Split
from seqloom.data.files import locate
from seqloom.data.jsonl import read_jsonl
from seqloom.data.lines import read_plain_lines
from seqloom.data.parallel import read_parallel
from seqloom.data.running import read_running_text
from seqloom.data.synthetic import read_synthetic
from seqloom.data.tsv import read_tsv


def read_split(config: DataConfig, split: Split) -> Iterator[Example]:
    """Every example of a split, one corpus after the other, in constant memory."""
    corpora = corpora_of(config, split)
    refuse_missing(config, split)
    if not corpora:
        raise ConfigError(
            f"data.{split}: is not set, so there is nothing to read; add a [data.{split}] table to the "
            "recipe or, for a run that is trained, give the data now: seqloom evaluate RUN "
            f'--set \'data.{split}={{kind="tsv", path="{split}.tsv"}}\''
        )
    for corpus in _one_hold_out(corpora):
        empty = True
        for example in _read_held_out(config, corpus, split):
            empty = False
            yield example
        if empty:
            raise DataError(_nothing(config, corpus, split))


def corpora_of(config: DataConfig, split: Split) -> tuple[CorpusOrHoldOutConfig, ...]:
    """The corpora of a split, every pair of languages by itself."""
    return expand_corpora({"train": config.train, "dev": config.dev, "test": config.test}[split])


def training_corpora(config: DataConfig) -> tuple[CorpusConfig, ...]:
    """The same of the training split, of which nothing can be held out of others."""
    corpora = corpora_of(config, "train")
    return tuple(corpus for corpus in corpora if not isinstance(corpus, HoldOutConfig))


def refuse_missing(config: DataConfig, split: Split) -> None:
    """Name all files of a split that are not there, however many corpora they are of."""
    missing: dict[str, None] = {}
    for corpus in corpora_of(config, split):
        for name in _files_of(corpus):
            try:
                locate(name, config.folder)
            except NotFoundError as error:
                missing[str(error)] = None
    if missing:
        raise NotFoundError("\n".join(missing))


def _files_of(corpus: CorpusOrHoldOutConfig) -> tuple[str, ...]:
    match corpus:
        case ParallelConfig(source=source, target=target, references=references):
            return (source, target, *references)
        case TsvConfig(path=path) | CsvConfig(path=path) | JsonlConfig(path=path):
            return (path,)
        case LinesConfig(path=path) | LongTextConfig(path=path):
            return (path,)
        case CaptionsConfig() | SeriesConfig() | TracksConfig():
            return ()  # they name what is missing by themselves
        case BundledConfig() | BundledLabelsConfig() | SyntheticConfig() | HoldOutConfig():
            return ()
        case _:
            assert_never(corpus)


def _one_hold_out(corpora: tuple[CorpusOrHoldOutConfig, ...]) -> Iterator[CorpusOrHoldOutConfig]:
    """All corpora, but what is held out only once: the largest share holds the others."""
    held_out = [corpus for corpus in corpora if isinstance(corpus, HoldOutConfig)]
    largest = max(held_out, key=lambda corpus: corpus.fraction, default=None)
    seen = False
    for corpus in corpora:
        if not isinstance(corpus, HoldOutConfig):
            yield corpus
        elif not seen and largest is not None:
            seen = True
            yield largest


def held_out_share(config: DataConfig, split: Split) -> float:
    """The share of the training data that dev or test takes away."""
    corpora = corpora_of(config, split)
    shares = [corpus.fraction for corpus in corpora if isinstance(corpus, HoldOutConfig)]
    return max(shares, default=0.0)


def _read_held_out(
    config: DataConfig, corpus: CorpusOrHoldOutConfig, split: Split
) -> Iterator[Example]:
    if split != "train" and not isinstance(corpus, HoldOutConfig):
        yield from _marked(config, corpus, split)
        return
    # Dev is held out from one end of the hashes and test from the other: they never meet, and
    # changing one leaves the other as it was.
    below = held_out_share(config, "dev")
    above = 1 - held_out_share(config, "test")
    low, high = {"dev": (0.0, below), "train": (below, above), "test": (above, 1.0)}[split]
    whole = training_corpora(config) if isinstance(corpus, HoldOutConfig) else (corpus,)
    for training in whole:
        for example in _marked(config, training, "train"):
            # Where nothing is held out nothing need be hashed.
            if (low, high) == (0, 1) or low <= _place(_untagged(example)) < high:
                yield example


def _marked(config: DataConfig, corpus: CorpusConfig, split: Split) -> Iterator[Example]:
    """The examples of a corpus, each with the part it is of, and its tag before its source."""
    table, tag = _table(config, corpus, split), corpus_tag(corpus) or ""
    name = corpus.name if isinstance(corpus, TaggedCorpusConfig) else None
    part = name or tag or (table if len(corpora_of(config, split)) > 1 else "")
    for example in read_corpus(corpus, config.folder, split, table):
        if tag:
            source = f"{tag} {example.source.strip()}" if example.source.strip() else ""
            example = replace(example, source=source, part=part, tag=tag)
        yield example if tag or not part else replace(example, part=part)


def _untagged(example: Example) -> str:
    """What decides whether an example is held out: the text alone, into whatever language."""
    return example.source.removeprefix(f"{example.tag} ") or example.target


def _table(config: DataConfig, corpus: CorpusOrHoldOutConfig, split: Split) -> str:
    """What the recipe calls a corpus: data.dev, or data.dev[1] if there are several.

    Only readers of one file ask: a pair of languages has no settings of its own.
    """
    corpora = corpora_of(config, split)
    places = [place for place, one in enumerate(corpora) if one == corpus]
    return f"data.{split}" if len(corpora) == 1 else f"data.{split}[{places[0]}]"


def _place(text: str) -> float:
    """A number in [0, 1) that depends on the text alone, the same on every machine."""
    digest = hashlib.sha256(text.strip().encode("utf-8")).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def read_corpus(corpus: CorpusConfig, folder: str, split: Split, table: str) -> Iterator[Example]:
    """All examples of one corpus. Only bundled and synthetic ones know which split is asked.

    table: what the recipe calls this corpus, for errors about its settings
    """
    match corpus:
        case ParallelConfig():
            return read_parallel(corpus, folder, table)
        case TsvConfig():
            return read_tsv(corpus, folder, table)
        case CsvConfig():
            return read_csv(corpus, folder, table)
        case JsonlConfig():
            return read_jsonl(corpus, folder, table)
        case LinesConfig():
            return read_plain_lines(corpus, folder)
        case LongTextConfig():
            return read_running_text(corpus, folder)
        case CaptionsConfig():
            return read_captions(corpus, folder)
        case SeriesConfig() | TracksConfig():
            raise ConfigError(
                f"{table}: '{corpus.kind}' holds numbers, not text; task 'forecast' reads it"
            )
        case BundledConfig():
            return read_bundled(corpus, split)
        case BundledLabelsConfig():
            return read_bundled_labels(corpus, split)
        case SyntheticConfig():
            return read_synthetic(corpus, split)
        case _:
            assert_never(corpus)


def _nothing(config: DataConfig, corpus: CorpusOrHoldOutConfig, split: Split) -> str:
    if isinstance(corpus, HoldOutConfig):
        return (
            f"data.{split}: holding out {corpus.fraction:.1%} of the training data leaves none for "
            f"{split}; there is too little of it: raise data.{split}.fraction or give more"
        )
    if isinstance(corpus, ParallelConfig):
        name = f"{corpus.source} and {corpus.target}"
    elif isinstance(corpus, TsvConfig | CsvConfig | JsonlConfig | LinesConfig | LongTextConfig):
        name = corpus.path
    elif isinstance(corpus, CaptionsConfig):
        name = corpus.captions
    else:
        name = corpus.kind
    shares = [held_out_share(config, side) for side in ("dev", "test")] if split == "train" else []
    kept = " once dev and test are held out" if any(shares) else ""
    return f"data.{split}: {name}: there is no example{kept}; is the file empty?"


def merge_references(examples: Iterable[Example]) -> list[Example]:
    """One example per source of a part, with the references of all; in the order of first appearance.

    Examples without a source stay as they are.
    """
    merged: dict[object, Example] = {}
    for place, example in enumerate(examples):
        key = (example.part, example.source) if example.source else place
        first = merged.get(key)
        if first is None:
            merged[key] = replace(example, references=tuple(dict.fromkeys(example.references)))
        else:
            references = tuple(dict.fromkeys((*first.references, *example.references)))
            merged[key] = replace(first, references=references)
    return list(merged.values())
