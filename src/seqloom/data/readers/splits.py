"""Reads a split: calls the reader of each corpus, holds out dev and test examples, and assigns
each example to a group, such as a language pair.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

from seqloom.config.schema.corpora import (
    CorpusConfig,
    CorpusOrHoldOutConfig,
    HoldOutConfig,
    TaggedCorpusConfig,
)
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.tags import corpus_tag, expand_corpora
from seqloom.core.errors import ConfigError, DataError, NotFoundError
from seqloom.data.example import REPLAY_GROUP, Example, InvalidLine, Split
from seqloom.data.readers.reader import Reader, Records, build_reader
from seqloom.data.readers.text_files import FilePart, locate_all

MAX_LISTED_LINES = 10
"""Maximum number of invalid lines that an error message lists."""


@dataclass
class InvalidLines:
    """Counts invalid lines and keeps the first ones.

    first: the first MAX_LISTED_LINES invalid lines
    """

    count: int = 0
    first: list[InvalidLine] = field(default_factory=list)

    def add(self, line: InvalidLine) -> None:
        self.count += 1
        if self.count <= MAX_LISTED_LINES:
            self.first.append(line)

    def extend(self, other: "InvalidLines") -> None:
        """Add the invalid lines of `other` to these."""
        self.count += other.count
        self.first = (self.first + other.first)[:MAX_LISTED_LINES]

    def error(self) -> DataError:
        """Return an error with the number of invalid lines, the first few lines and advice."""
        skip = "--set data.invalid_lines=skip"
        if self.count == 1:
            return DataError(f"{self.first[0]}. To skip such lines: {skip}")
        more = self.count - len(self.first)
        advice = dict.fromkeys(line.advice for line in self.first if line.advice)
        lines = [
            f"{self.count:,} lines cannot be used:",
            *(f"  {line.where}: {line.problem}" for line in self.first),
            *([f"  … and {more:,} more"] if more else []),
            *([f"To correct them: {'; '.join(advice)}"] if advice else []),
            f"To skip them: {skip}",
        ]
        return DataError("\n".join(lines))


def _ignore_line(line: InvalidLine) -> None:
    """Do nothing. This is the default of the argument `on_skipped` of `read_split`."""


def read_split(
    config: DataConfig, split: Split, on_skipped: Callable[[InvalidLine], None] = _ignore_line
) -> Iterator[Example]:
    """Yield all examples of a split, corpus by corpus, in constant memory.

    If data.replay is set, the training split also contains the training examples of the parent, the
    run from which fine-tuning starts. They come last.

    The setting data.invalid_lines decides what happens to lines that cannot be used: "error" raises
    one DataError about all of them at the end of the split, "skip" skips them.

    on_skipped: called with each skipped line
    """
    parent = config.parent_data if split == "train" and config.replay is not None else None
    if parent is None:
        yield from _read_own_split(config, split, on_skipped)
        return
    refuse_missing_replay(parent)
    for example in _read_own_split(config, split, on_skipped):
        group = example.group or "new data"
        yield replace(example, group=group, corpus=example.corpus or group)
    for example in _read_own_split(parent, split, on_skipped):
        yield replace(example, group=REPLAY_GROUP, corpus=REPLAY_GROUP)


def refuse_missing_replay(parent: DataConfig) -> None:
    """Raise a NotFoundError if training files of the parent are missing.

    The parent is the run from which fine-tuning starts. With the setting data.replay, fine-tuning
    also uses the training data of the parent.

    parent: the data settings of the parent
    """
    try:
        refuse_missing_files(parent, "train")
    except NotFoundError as error:
        raise NotFoundError(
            f"{error}\ndata.replay needs the training data of the parent run. Set "
            "data.parent.folder to the folder of this data, or switch replay off: --set "
            "data.replay=none"
        ) from error


def _read_own_split(
    config: DataConfig, split: Split, on_skipped: Callable[[InvalidLine], None]
) -> Iterator[Example]:
    """Yield the examples of a split, without those that the setting data.replay adds.

    With data.replay, fine-tuning also uses the training examples of the parent, the run from which
    it starts.
    """
    corpora = corpora_of(config, split)
    refuse_missing_files(config, split)
    if not corpora:
        raise ConfigError(
            f"data.{split}: is not set; add a [data.{split}] table to the recipe or, for a trained "
            "run, give the data on the command line: seqloom evaluate RUN "
            f'--set \'data.{split}={{kind="tsv", path="{split}.tsv"}}\''
        )
    invalid = InvalidLines()
    report = on_skipped if config.invalid_lines == "skip" else invalid.add
    for corpus in with_one_hold_out(corpora):
        is_empty = True
        for record in read_share(config, corpus, split):
            if isinstance(record, InvalidLine):
                report(record)
            else:
                is_empty = False
                yield record
        if is_empty and not invalid.count:
            raise empty_corpus_error(config, corpus, split)
    if invalid.count:
        raise invalid.error()


def read_corpus(corpus: CorpusConfig, folder: str, split: Split, table: str) -> Iterator[Example]:
    """Yield all examples of one corpus. If there are invalid lines, raise a DataError at the end.

    split: selects the examples of a bundled or generated corpus. A reader that is defined outside
           seqloom receives it, too. Other corpora ignore it
    table: the corpus' table in the recipe, such as "data.train[1]", for error messages
    """
    invalid = InvalidLines()
    for record in build_reader(corpus, folder, split, table).read():
        if isinstance(record, InvalidLine):
            invalid.add(record)
        else:
            yield record
    if invalid.count:
        raise invalid.error()


def merge_references(examples: Iterable[Example]) -> list[Example]:
    """Merge examples with the same group and the same source into one example with all references.

    The order of first appearance is kept. Examples without a source are not merged.
    """
    merged: dict[object, Example] = {}
    for index, example in enumerate(examples):
        key = (example.group, example.source) if example.source else index
        first = merged.get(key)
        if first is None:
            merged[key] = replace(example, references=tuple(dict.fromkeys(example.references)))
        else:
            references = tuple(dict.fromkeys((*first.references, *example.references)))
            merged[key] = replace(first, references=references)
    return list(merged.values())


def corpora_of(config: DataConfig, split: Split) -> tuple[CorpusOrHoldOutConfig, ...]:
    """Return the corpora of a split. A `languages` table becomes one corpus per language pair."""
    return expand_corpora({"train": config.train, "dev": config.dev, "test": config.test}[split])


def reader_of(config: DataConfig, corpus: CorpusConfig, split: Split) -> Reader[Any]:
    """Return the reader of a corpus of a split."""
    return build_reader(corpus, config.folder, split, table_name(config, corpus, split))


def readers_of(config: DataConfig, split: Split) -> list[Reader[Any]]:
    """Return the readers of the corpora of a split, without hold-outs."""
    corpora = corpora_of(config, split)
    return [
        reader_of(config, corpus, split)
        for corpus in corpora
        if not isinstance(corpus, HoldOutConfig)
    ]


def training_corpora(config: DataConfig) -> tuple[CorpusConfig, ...]:
    """Return the corpora of the training split, without hold-outs.

    A hold-out is a part of the training data that is used as dev or test data. In the training
    split itself, it has no meaning.
    """
    corpora = corpora_of(config, "train")
    return tuple(corpus for corpus in corpora if not isinstance(corpus, HoldOutConfig))


def held_out_share(config: DataConfig, split: Split) -> float:
    """Return the fraction of the training data that is held out for a split (dev or test)."""
    corpora = corpora_of(config, split)
    shares = [corpus.fraction for corpus in corpora if isinstance(corpus, HoldOutConfig)]
    return max(shares, default=0.0)


def refuse_missing_files(config: DataConfig, split: Split) -> None:
    """Raise a NotFoundError that names all missing files of a split.

    Corpora whose readers report missing files themselves are not checked.
    """
    missing: dict[str, None] = {}
    for reader in readers_of(config, split):
        for name in reader.files:
            try:
                locate_all(name, config.folder)
            except NotFoundError as error:
                missing[str(error)] = None
    if missing:
        raise NotFoundError("\n".join(missing))


def split_files(config: DataConfig, split: Split) -> list[Path]:
    """Return the paths of the data files of a split, in the order in which they are read.

    Missing files are left out. Files of some formats, such as image captions, are left out, too.
    """
    paths = (path for reader in readers_of(config, split) for path in reader.existing_paths())
    return list(dict.fromkeys(paths))


def with_one_hold_out(
    corpora: tuple[CorpusOrHoldOutConfig, ...],
) -> Iterator[CorpusOrHoldOutConfig]:
    """Yield the corpora of a split, but at most one hold-out.

    A hold-out is a part of the training data that is used as dev or test data. If there are several
    hold-outs, only the largest is yielded, because it contains the examples of the others.
    """
    hold_outs = [corpus for corpus in corpora if isinstance(corpus, HoldOutConfig)]
    largest = max(hold_outs, key=lambda corpus: corpus.fraction, default=None)
    yielded = False
    for corpus in corpora:
        if not isinstance(corpus, HoldOutConfig):
            yield corpus
        elif not yielded and largest is not None:
            yielded = True
            yield largest


def read_share(config: DataConfig, corpus: CorpusOrHoldOutConfig, split: Split) -> Records:
    """Yield the examples of a corpus that belong to `split`, and its invalid lines.

    If `corpus` is a hold-out, yield the training examples that are held out for `split`, and no
    invalid lines. If `corpus` is a training corpus, leave out the examples that are held out for
    dev or test.
    """
    if split != "train" and not isinstance(corpus, HoldOutConfig):
        yield from read_with_group(config, corpus, split)
        return
    split_of = hold_out_rule(config)
    origins = training_corpora(config) if isinstance(corpus, HoldOutConfig) else (corpus,)
    for origin in origins:
        for record in read_with_group(config, origin, "train"):
            if isinstance(record, InvalidLine):
                if split == "train":
                    yield record
            elif split_of is None or split_of(record) == split:
                yield record


def hold_out_rule(config: DataConfig) -> Callable[[Example], Split] | None:
    """Return a function that decides to which split an example of the training corpora belongs.

    The returned function hashes the text of the example. If nothing is held out, return None.
    """
    # Dev takes the low end of the range of hashes, and test takes the high end. So they do not
    # overlap, and changing the size of one of them does not change the other.
    dev_end = held_out_share(config, "dev")
    test_start = 1 - held_out_share(config, "test")
    if (dev_end, test_start) == (0, 1):
        return None

    def split_of(example: Example) -> Split:
        fraction = _hash_fraction(_untagged(example))
        return "dev" if fraction < dev_end else "test" if fraction >= test_start else "train"

    return split_of


def read_with_group(
    config: DataConfig, corpus: CorpusConfig, split: Split, parts: Sequence[FilePart] | None = None
) -> Records:
    """Yield the examples and the invalid lines of a corpus.

    Sets the group of each example, such as a language pair. If the corpus has a tag, adds it to the
    start of each source.

    parts: the parts of files to read. Default: all files of the corpus
    """
    table, tag = table_name(config, corpus, split), corpus_tag(corpus) or ""
    corpora = corpora_of(config, split)
    group = _corpus_name(corpus) or (table if any(map(_corpus_name, corpora)) else "")
    corpus_id = group or (table if len(corpora) > 1 else "")
    reader = build_reader(corpus, config.folder, split, table)
    records = reader.read() if parts is None else reader.read_part(parts)
    if not tag and not corpus_id:
        yield from records
        return
    for record in records:
        if isinstance(record, InvalidLine):
            yield record
        elif tag:
            source = f"{tag} {record.source.strip()}" if record.source.strip() else ""
            yield replace(record, source=source, group=group, corpus=corpus_id, tag=tag)
        else:
            yield replace(record, group=group, corpus=corpus_id)


def _corpus_name(corpus: CorpusOrHoldOutConfig) -> str:
    """Return the name or the tag of a corpus; "" if it has neither."""
    name = corpus.name if isinstance(corpus, TaggedCorpusConfig) else None
    return name or corpus_tag(corpus) or ""


def _untagged(example: Example) -> str:
    """Return the text whose hash decides the split: the source or, if it is empty, the target.

    A tag such as <2de> is removed, so that all translations of a sentence are in the same split.
    """
    return example.source.removeprefix(f"{example.tag} ") or example.target


def table_name(config: DataConfig, corpus: CorpusOrHoldOutConfig, split: Split) -> str:
    """Return the name of a corpus for error messages, such as "data.dev".

    If the split has several corpora, an index is added: "data.dev[1]". The index counts each
    language pair of a `languages` table as one corpus.
    """
    corpora = corpora_of(config, split)
    indices = [index for index, other in enumerate(corpora) if other == corpus]
    return f"data.{split}" if len(corpora) == 1 else f"data.{split}[{indices[0]}]"


def _hash_fraction(text: str) -> float:
    """Return a hash of the text as a number in [0, 1). It is the same on every machine."""
    digest = hashlib.sha256(text.strip().encode("utf-8")).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def empty_corpus_error(
    config: DataConfig, corpus: CorpusOrHoldOutConfig, split: Split
) -> DataError:
    """Return the error to raise if a corpus has no example in a split."""
    if isinstance(corpus, HoldOutConfig):
        return DataError(
            f"data.{split}: holding out {corpus.fraction:.1%} of the training data selects no "
            f"example for {split}; raise data.{split}.fraction or add training data"
        )
    name = reader_of(config, corpus, split).name
    holds_out = split == "train" and any(held_out_share(config, side) for side in ("dev", "test"))
    remainder = " left after holding out dev and test" if holds_out else ""
    return DataError(
        f"data.{split}: {name}: there is no example{remainder}; check that the file is not empty"
    )


def indices_by_group(examples: Sequence[Example]) -> dict[str, list[int]]:
    """Map each group, such as a language pair, to the indices of its examples.

    The groups are in the order in which they first appear. The indices of a group are ascending.
    """
    indices: dict[str, list[int]] = {}
    for index, example in enumerate(examples):
        indices.setdefault(example.group, []).append(index)
    return indices


def first_of_each_group(examples: Iterable[Example], count: int) -> list[Example]:
    """Return up to `count` examples: the first example of each group, then the second example of
    each group, and so on.

    The groups are those of temperature sampling (`Example.corpus`), such as language pairs. This
    function keeps up to `count` examples of each group in memory.
    """
    groups: dict[str, list[Example]] = {}
    for example in examples:
        name = example.corpus or example.group
        group = groups.setdefault(name, [])
        if len(group) < count:
            group.append(example)
        if len(group) == count and not name:
            break  # there is only one corpus
    alternating = chain.from_iterable(zip_longest(*groups.values()))
    return list(islice((example for example in alternating if example is not None), count))
