"""Shard jobs: which examples each shard of a corpus contains.

A shard is a folder with a part of a corpus. Uncompressed text files are cut into parts, one per
shard. The worker process that writes a shard reads this part itself. Other corpora are read by the
calling process, which passes the examples to the workers in temporary files.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from seqloom.config.schema.corpora import (
    CorpusConfig,
    CorpusOrHoldOutConfig,
    HoldOutConfig,
)
from seqloom.data.example import InvalidLine
from seqloom.data.preparation.file_parts import FileParts, cut_corpus
from seqloom.data.preparation.records import Records, held_out_file, read_records, write_records
from seqloom.data.preparation.request import CorpusRequest
from seqloom.data.readers.splits import (
    corpora_of,
    read_share,
    read_split,
    read_with_group,
    reader_of,
    refuse_missing_files,
    split_files,
    with_one_hold_out,
)
from seqloom.text.long_text import LongTextTokenizer

TEMPORARY_RECORDS = ".records-"
"""Start of the names of the temporary files that pass records to workers."""
SHARD_RECORDS = 2**17
"""Maximum number of examples and invalid lines per shard, if the files of the corpus are not cut
into parts."""


@dataclass(frozen=True)
class SplitSource:
    """A corpus of a split, and how its examples are read.

    corpus:  the corpus; None if the examples of all corpora of the split are read together
    read:    function that yields all examples and invalid lines
    parts:   for each shard, the parts of files that it contains; None if files are not cut into
             parts
    lines:   total number of lines in the parts
    assigns: True for a training corpus: the examples held out for dev and test are still among its
             examples. They are separated when the shards are written
    is_one_shard: True if all examples must be in one shard
    """

    corpus: CorpusOrHoldOutConfig | None
    read: Callable[[], Records]
    parts: Sequence[FileParts] | None = None
    lines: int = 0
    assigns: bool = False
    is_one_shard: bool = False


@dataclass(frozen=True)
class ShardJob:
    """A shard to write.

    The examples of the shard are in parts of data files or in a temporary file. If `corpus` and
    `temporary` are both None, the job does not contain the examples: `shard_jobs` yields them
    together with the job.

    index:     index of the shard among all shards of the split
    source:    index of the corpus among all corpora of the split
    assigns:   True if examples held out for dev and test must be separated from the others
    corpus:    the corpus to which the data files belong
    parts:     the parts of data files
    temporary: the temporary file
    """

    index: int
    source: int
    assigns: bool
    corpus: CorpusConfig | None = None
    parts: FileParts = ()
    temporary: Path | None = None

    def read(self, request: CorpusRequest) -> Records:
        if self.temporary is not None:
            return read_records(self.temporary)
        assert self.corpus is not None
        return read_with_group(request.data, self.corpus, request.split, self.parts)

    @property
    def name(self) -> str:
        """Name of the folder of the shard."""
        return f"{self.index:05d}"


def split_sources(request: CorpusRequest, training_shards: Sequence[Path]) -> list[SplitSource]:
    """Return the corpora of a split, each with a function that reads it, in reading order.

    training_shards: the shards of the training split, which contain the examples held out for dev
                     and test. Empty if the training split has not been prepared
    """
    data, split = request.data, request.split
    is_replay = split == "train" and data.replay is not None
    is_one_shard = isinstance(request.target, LongTextTokenizer) or (
        request.source is not None and request.source.is_one_shard
    )
    corpora = corpora_of(data, split)
    if is_replay or is_one_shard or not corpora:
        return [SplitSource(None, lambda: _read_whole_split(request), is_one_shard=is_one_shard)]
    refuse_missing_files(data, split)
    return [_source(request, corpus, training_shards) for corpus in with_one_hold_out(corpora)]


def _source(
    request: CorpusRequest, corpus: CorpusOrHoldOutConfig, training_shards: Sequence[Path]
) -> SplitSource:
    data, split = request.data, request.split
    if isinstance(corpus, HoldOutConfig):
        files = [held_out_file(shard, split) for shard in training_shards]
        if files and all(path.exists() for path in files):
            return SplitSource(corpus, lambda: chain.from_iterable(map(read_records, files)))
        return SplitSource(corpus, lambda: read_share(data, corpus, split))

    def read() -> Records:
        return read_with_group(data, corpus, split)

    cut = cut_corpus(reader_of(data, corpus, split))
    parts, lines = (None, 0) if cut is None else cut
    return SplitSource(corpus, read, parts, lines, assigns=split == "train")


def _read_whole_split(request: CorpusRequest) -> Records:
    """Yield all examples and invalid lines of a split."""
    skipped: list[InvalidLine] = []
    for example in read_split(request.data, request.split, skipped.append):
        yield from skipped
        skipped.clear()
        yield example
    yield from skipped


def input_bytes(request: CorpusRequest) -> int:
    """Return the size of a split's data files in bytes. Bundled and generated data count as 0."""
    return sum(path.stat().st_size for path in split_files(request.data, request.split))


def shard_jobs(
    request: CorpusRequest, sources: Sequence[SplitSource], folder: Path, uses_files: bool
) -> Iterator[tuple[ShardJob, Records]]:
    """Yield (job, records) for each shard that is not yet in `folder`, in order.

    A record is an example or an invalid line.

    uses_files: True if other processes write the shards. These processes read the records from
                parts of the data files, or from temporary files that this function writes. False
                if the caller writes the shards. The caller must then read the records of a job
                before it requests the next job
    """
    index = 0
    for number, source in enumerate(sources):
        if source.parts is not None:
            assert source.corpus is not None
            assert not isinstance(source.corpus, HoldOutConfig)
            for parts in source.parts:
                job = ShardJob(index, number, source.assigns, source.corpus, parts)
                if not (folder / job.name).exists():
                    yield job, job.read(request)
                index += 1
            continue
        records = source.read()
        while (first := next(records, None)) is not None:
            shard = chain(
                [first], islice(records, None if source.is_one_shard else SHARD_RECORDS - 1)
            )
            job = ShardJob(index, number, source.assigns)
            index += 1
            if (folder / job.name).exists():
                for _ in shard:
                    pass
            elif uses_files:
                path = folder / f"{TEMPORARY_RECORDS}{job.name}"
                write_records(path, shard)
                yield ShardJob(job.index, number, source.assigns, temporary=path), iter(())
            else:
                yield job, shard
