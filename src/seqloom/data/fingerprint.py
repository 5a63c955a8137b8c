"""What a split is made of, as a digest: the same examples, the same digest."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from importlib.resources import as_file
from pathlib import Path
from typing import Any, assert_never

from seqloom.config.schema.corpora import (
    BundledConfig,
    BundledLabelsConfig,
    CaptionsConfig,
    CorpusConfig,
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
from seqloom.data.bundled import bundled_file
from seqloom.data.bundled_labels import PAIRS
from seqloom.data.bundled_labels import VERSION as LABELS_VERSION
from seqloom.data.digests import file_digest
from seqloom.data.example import Split
from seqloom.data.files import locate
from seqloom.data.images import images_digest
from seqloom.data.splits import (
    corpora_of,
    held_out_share,
    refuse_missing,
    training_corpora,
)
from seqloom.data.synthetic import VERSION

_SAID = {*TaggedCorpusConfig.model_fields}


def digest_of(facts: Any) -> str:
    """Of anything that JSON can say."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def fingerprint(config: DataConfig, split: Split) -> str:
    """Of the content of the files, not of their names or places."""
    refuse_missing(config, split)
    corpora = corpora_of(config, split)
    if split == "train" or any(isinstance(corpus, HoldOutConfig) for corpus in corpora):
        shares = [held_out_share(config, "dev"), held_out_share(config, "test")]
        held_out = [_facts(corpus, config.folder, "train") for corpus in training_corpora(config)]
    else:
        shares, held_out = [], []
    own = [
        "held out" if isinstance(corpus, HoldOutConfig) else _facts(corpus, config.folder, split)
        for corpus in corpora
        if split != "train"
    ]
    return digest_of([split, shares, held_out, own])


def _bundled_digests(pairs: Sequence[BundledConfig], split: Split) -> Iterator[str]:
    for pair in pairs:
        with as_file(bundled_file(pair, split)) as path:
            yield file_digest(path)


def _facts(corpus: CorpusConfig, folder: str, split: Split) -> Any:
    """What is read and what is said of it; a corpus that says nothing has no word for that."""
    said = corpus.model_dump(include=_SAID, exclude_none=True)
    read = _read(corpus, folder, split)
    return [read, said] if said else read


def _read(corpus: CorpusConfig, folder: str, split: Split) -> Any:
    match corpus:
        case ParallelConfig(source=source, target=target, references=references):
            texts = (source, target, *references)
            settings = corpus.model_dump(mode="json", include={"first_line", "last_line"})
            return [settings, *(file_digest(locate(name, folder)) for name in texts)]
        case TsvConfig() | CsvConfig() | JsonlConfig() | LinesConfig():
            settings = corpus.model_dump(mode="json", exclude={"path", *_SAID})
            return [settings, file_digest(locate(corpus.path, folder))]
        case CaptionsConfig(images=places, captions=captions, names=names):
            files = [captions, *([] if names is None else [names])]
            return [
                [file_digest(locate(name, folder)) for name in files],
                [images_digest(Path(folder).expanduser() / name) for name in places],
            ]
        case SeriesConfig() | TracksConfig():
            return corpus.model_dump(mode="json")
        case LongTextConfig():
            # Windows are looked through later; the text is the same.
            part = corpus.model_dump(mode="json", include={"kind", "begin", "end"})
            return [part, file_digest(locate(corpus.path, folder))]
        case BundledConfig():
            settings = corpus.model_dump(mode="json", exclude=_SAID)
            return [settings, *_bundled_digests([corpus], split)]
        case BundledLabelsConfig():
            settings = corpus.model_dump(mode="json")
            return [settings, LABELS_VERSION, *_bundled_digests(PAIRS, split)]
        case SyntheticConfig():
            return [corpus.model_dump(mode="json"), VERSION, split]
        case _:
            assert_never(corpus)
