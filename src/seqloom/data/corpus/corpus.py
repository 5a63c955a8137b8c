"""Corpus: a tokenised split on disk, built once and read through memory maps."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from seqloom.config.schema.text import SubwordSamplingConfig
from seqloom.core.batch import Batch
from seqloom.core.errors import ConfigError
from seqloom.data.batching.collate import collate_rows
from seqloom.data.corpus.dataset import (
    CorpusReport,
    IntArray,
    ProgressCallback,
    ReadingProgress,
    damage_note,
    ignore_progress,
)
from seqloom.data.corpus.disk_cache import cache_root, changed_files, resumable_folder
from seqloom.data.corpus.filters import INVALID_LINE
from seqloom.data.corpus.token_store import TokenStore
from seqloom.data.example import Example, Split
from seqloom.data.modalities.registry import open_sources
from seqloom.data.modalities.text import TextModality
from seqloom.data.preparation.build import shard_folders, write_corpus
from seqloom.data.preparation.records import held_out_file, read_examples
from seqloom.data.preparation.request import CorpusRequest
from seqloom.data.preparation.shard import REPORT
from seqloom.data.readers.splits import read_split
from seqloom.text.subwords import SampledSubwordTokenizer, SubwordTokenizer
from seqloom.text.tokenizer import Tokenizer

KIND = "prepared"
"""Name of the folder in the cache that contains all corpora. Change the name when the format of the
files changes."""


class Corpus:
    """The examples of a split in the order in which they were read. Texts are stored as token ids
    without START and END. Sources can also be images or sequences of vectors (frames)."""

    def __init__(self, folder: Path, other_folders: Sequence[Path] = ()) -> None:
        """Open a corpus on disk.

        folder:        folder of the corpus used in the first epoch
        other_folders: folders of the same split in other subword segmentations, used in turn in
                       the following epochs
        """
        self.folder = folder
        self._other_folders = tuple(other_folders)
        self._variant: Corpus | None = None
        self.report = CorpusReport(**json.loads((folder / REPORT).read_bytes()))
        self._shards = shard_folders(folder)
        self.targets = TokenStore(folder, self._shards, "target")
        self.sources = open_sources(folder, self._shards)
        self.release()

    def __len__(self) -> int:
        return len(self.target_lengths)

    @property
    def source_lengths(self) -> IntArray | None:
        """The source length of each of the N examples, without END: (N,).

        Text is counted in tokens, other sequences in vectors. None if there are no sources or they
        are images.
        """
        return None if self.sources is None else self.sources.lengths

    @property
    def target_lengths(self) -> IntArray:
        return self.targets.lengths

    def source(self, index: int) -> IntArray:
        """Return the token ids of one source."""
        assert isinstance(self.sources, TokenStore), "the sources are not text"
        return self.sources[index]

    def target(self, index: int) -> IntArray:
        """Return the token ids of one target."""
        return self.targets[index]

    @property
    def digest(self) -> str:
        return self.folder.name

    def gather(self, indices: IntArray) -> Batch:
        sources = None if self.sources is None else self.sources.take(indices)
        return collate_rows(sources, self.targets.take(indices))

    def for_epoch(self, epoch: int) -> "Corpus":
        """Return the corpus to use in an epoch: the same examples, possibly in another subword
        segmentation."""
        index = epoch % (1 + len(self._other_folders))
        if index == 0:
            return self
        folder = self._other_folders[index - 1]
        variant = self._variant  # Another thread may replace it.
        if variant is None or variant.folder != folder:
            variant = self._variant = Corpus(folder)
        return variant

    def variants(self) -> Iterator["Corpus"]:
        return (self.for_epoch(epoch) for epoch in range(1 + len(self._other_folders)))

    def held_out(self, split: Split) -> Iterator[Example] | None:
        """Return the training examples that are held out for a split.

        Return None if this corpus does not contain them. The caller then reads the data files.
        """
        files = [held_out_file(shard, split) for shard in self._shards]
        if not all(path.exists() for path in files):
            return None
        return (record for path in files for record in read_examples(path))

    def release(self) -> None:
        for store in (self.sources, self.targets):
            if store is not None:
                store.release()


def build_corpus(request: CorpusRequest, progress: ProgressCallback = ignore_progress) -> Corpus:
    """Tokenise a split, or load it from the cache. Runs in constant memory.

    Several processes tokenise large files (see data.workers). If other processes request the same
    corpus, they wait. An interrupted build continues with the next call.
    """

    def fill(folder: Path) -> None:
        write_corpus(request, folder, _training_shards(request), progress)

    def report_waiting() -> None:
        progress(ReadingProgress(0, waits=True))

    def report_damage(files: Sequence[str]) -> None:
        progress(damage_note(files))

    folder = resumable_folder(KIND, request.digest(), fill, report_waiting, report_damage)
    corpus = Corpus(folder)
    if request.data.invalid_lines == "error" and INVALID_LINE in corpus.report.dropped:
        # The cached corpus was built with data.invalid_lines = "skip". Reading the split again
        # raises the error that names its invalid lines.
        for _ in read_split(request.data, request.split):
            pass
    return corpus


def corpus_folder(request: CorpusRequest) -> Path:
    """Return the folder in which a corpus is or will be cached."""
    return cache_root() / KIND / request.digest()


def _training_shards(request: CorpusRequest) -> list[Path]:
    """Return the shards of the cached training split, to build the dev or test split from them.

    A shard is a folder with a part of a corpus. The shards of the training split also contain the
    examples that are held out for dev and test. So these examples need not be read from the data
    files again.

    Returns [] if the training split itself is requested, or if it is not in the cache.
    """
    if request.split == "train":
        return []
    folder = corpus_folder(replace(request, split="train"))
    return [] if changed_files(folder) else shard_folders(folder)


def build_variants(
    request: CorpusRequest,
    sampling: SubwordSamplingConfig,
    seed: int,
    progress: ProgressCallback,
) -> Corpus:
    """Build `sampling.variants` corpora, each with a different segmentation. Return the first
    corpus; its method `for_epoch` cycles through all of them.

    All corpora are cached. They depend only on the request, the seed and `sampling.alpha`.
    """
    assert request.split == "train", "only training data is segmented at random"
    folders = []
    for index in range(sampling.variants):
        variant_seed = _variant_seed(seed, index)
        source = request.source
        if isinstance(source, TextModality):
            source = TextModality(_sampled(source.tokenizer, sampling, variant_seed))
        variant = replace(
            request,
            source=source,
            target=_sampled(request.target, sampling, variant_seed),
        )
        folders.append(build_corpus(variant, progress).folder)
    return Corpus(folders[0], folders[1:])


def _sampled(tokenizer: Tokenizer, sampling: SubwordSamplingConfig, seed: int) -> Tokenizer:
    if not isinstance(tokenizer, SubwordTokenizer):
        raise ConfigError(
            "text.sampling: requires a subword tokenizer; remove it, or set "
            "text.tokenizer.kind = 'subwords'"
        )
    return SampledSubwordTokenizer(tokenizer, sampling.alpha, seed)


def _variant_seed(seed: int, variant: int) -> int:
    """Derive the seed of a variant. The seed has 32 bits, because sentencepiece accepts no more."""
    digest = hashlib.sha256(f"{seed} {variant}".encode()).digest()
    return int.from_bytes(digest[:4], "big")
