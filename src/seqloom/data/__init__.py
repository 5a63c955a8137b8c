"""Data loading: from files to examples to batches.

The packages, what they convert to what, and their main functions and classes:

    readers      data files -> Example       read_split
    preparation  Example -> shards           CorpusRequest
    corpus       shards -> Dataset           build_corpus, SeriesDataset, LongTextDataset
    batching     Dataset -> Batch            BatchStream with a BatchLayout
    checks       statistics and warnings     examine

from seqloom.config.loading.loader import load_recipe
from seqloom.data import BatchStream, CorpusRequest, PaddedLayout, TextModality
from seqloom.data import build_corpus, train_tokenizers

config = load_recipe("recipe.toml").config
tokenizers = train_tokenizers(config)
source = TextModality(tokenizers.source)
corpus = build_corpus(CorpusRequest(config.data, "train", source, tokenizers.target))
batch = next(BatchStream(corpus, PaddedLayout(budget=4096), seed=1))
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqloom.data.batching.bucketing import BucketLayout
    from seqloom.data.batching.collate import collate
    from seqloom.data.batching.layout import BatchLayout, PaddedLayout, plan_batches
    from seqloom.data.batching.packing import PackedLayout
    from seqloom.data.batching.prefetch import PrefetchStream
    from seqloom.data.batching.stream import BatchStream
    from seqloom.data.checks.doctor import DatasetCheck, examine
    from seqloom.data.checks.warnings import Finding
    from seqloom.data.corpus.corpus import Corpus, build_corpus
    from seqloom.data.corpus.dataset import CorpusReport, Dataset
    from seqloom.data.corpus.long_text import LongTextDataset, WindowLayout
    from seqloom.data.corpus.vocabularies import Tokenizers, train_tokenizers
    from seqloom.data.example import Example, InvalidLine, Split
    from seqloom.data.modalities.series import SeriesDataset, SeriesWindow, read_windows
    from seqloom.data.modalities.text import TextModality
    from seqloom.data.preparation.request import CorpusRequest
    from seqloom.data.readers.reader import CorpusOrigin, LineReader, Reader
    from seqloom.data.readers.splits import merge_references, read_corpus, read_split

_MODULES = {
    "BatchLayout": "batching.layout",
    "BatchStream": "batching.stream",
    "BucketLayout": "batching.bucketing",
    "Corpus": "corpus.corpus",
    "CorpusOrigin": "readers.reader",
    "CorpusReport": "corpus.dataset",
    "CorpusRequest": "preparation.request",
    "Dataset": "corpus.dataset",
    "DatasetCheck": "checks.doctor",
    "Example": "example",
    "Finding": "checks.warnings",
    "InvalidLine": "example",
    "LineReader": "readers.reader",
    "LongTextDataset": "corpus.long_text",
    "PackedLayout": "batching.packing",
    "PaddedLayout": "batching.layout",
    "PrefetchStream": "batching.prefetch",
    "Reader": "readers.reader",
    "SeriesDataset": "modalities.series",
    "SeriesWindow": "modalities.series",
    "Split": "example",
    "TextModality": "modalities.text",
    "Tokenizers": "corpus.vocabularies",
    "WindowLayout": "corpus.long_text",
    "build_corpus": "corpus.corpus",
    "collate": "batching.collate",
    "examine": "checks.doctor",
    "merge_references": "readers.splits",
    "plan_batches": "batching.layout",
    "read_corpus": "readers.splits",
    "read_split": "readers.splits",
    "read_windows": "modalities.series",
    "train_tokenizers": "corpus.vocabularies",
}

__all__ = [
    "BatchLayout",
    "BatchStream",
    "BucketLayout",
    "Corpus",
    "CorpusOrigin",
    "CorpusReport",
    "CorpusRequest",
    "Dataset",
    "DatasetCheck",
    "Example",
    "Finding",
    "InvalidLine",
    "LineReader",
    "LongTextDataset",
    "PackedLayout",
    "PaddedLayout",
    "PrefetchStream",
    "Reader",
    "SeriesDataset",
    "SeriesWindow",
    "Split",
    "TextModality",
    "Tokenizers",
    "WindowLayout",
    "build_corpus",
    "collate",
    "examine",
    "merge_references",
    "plan_batches",
    "read_corpus",
    "read_split",
    "read_windows",
    "train_tokenizers",
]


def __getattr__(name: str) -> Any:
    """Import an exported name when it is first accessed, so that code that only reads text files
    does not import torch."""
    if name not in _MODULES:
        raise AttributeError(f"module 'seqloom.data' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"seqloom.data.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
