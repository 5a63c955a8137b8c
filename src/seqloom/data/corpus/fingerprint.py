"""Fingerprint of a split: a digest of its data and settings, used as part of cache keys.

The digest of a large file is cached until the file changes.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.resources import as_file
from pathlib import Path
from typing import Any, assert_never

from seqloom.config.schema.corpora import (
    ArrowConfig,
    BundledConfig,
    BundledLabelsConfig,
    CaptionsConfig,
    CorpusConfig,
    CsvConfig,
    FileNames,
    FramesConfig,
    GesturesConfig,
    HoldOutConfig,
    ImportedConfig,
    JsonlConfig,
    LinesConfig,
    LongTextConfig,
    ParallelConfig,
    ParquetConfig,
    ReaderExtensionConfig,
    RobotConfig,
    ScenesConfig,
    SeriesConfig,
    SyntheticConfig,
    TaggedCorpusConfig,
    TmxConfig,
    TracksConfig,
    TsvConfig,
)
from seqloom.config.schema.data import DataConfig
from seqloom.core.errors import StorageError
from seqloom.core.storage import sha256, write_file
from seqloom.data.corpus.disk_cache import cache_root
from seqloom.data.example import Split
from seqloom.data.modalities.images import image_container, image_names
from seqloom.data.readers.bundled import LABELLED_PAIRS, LABELS_VERSION, bundled_file
from seqloom.data.readers.extension import read_extension
from seqloom.data.readers.formats.tables import arrow_paths
from seqloom.data.readers.generated.gestures import GESTURES_VERSION
from seqloom.data.readers.generated.scenes import SCENE_VERSION
from seqloom.data.readers.parallel_files import parallel_paths
from seqloom.data.readers.splits import (
    corpora_of,
    held_out_share,
    no_imported_data,
    refuse_missing_files,
    refuse_missing_replay,
    training_corpora,
)
from seqloom.data.readers.synthetic import VERSION
from seqloom.data.readers.text_files import locate, locate_all

MIN_CACHED_BYTES = 2**24
"""Minimum size of a file whose digest is cached."""
MIN_AGE = 2.0
"""The digest of a file is cached only if the file last changed more than this number of seconds
ago. If a file changes twice in quick succession, both changes can have the same timestamp, so the
second change would not be detected."""


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content.

    The digest of a large file is cached under its size, device, inode, modification time and
    status change time. Programs cannot set the status change time, so it reveals every change.
    """
    status = os.stat(path)
    if status.st_size < MIN_CACHED_BYTES:
        return sha256(path)
    identity = [
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    ]
    name = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
    cache_file = cache_root() / "digests" / name
    try:
        cached = cache_file.read_text()
    except OSError:
        cached = ""
    if len(cached) == hashlib.sha256().digest_size * 2:
        return cached
    is_settled = time.time() - max(status.st_mtime, status.st_ctime) > MIN_AGE
    digest = sha256(path)
    if is_settled:
        # If the cache folder is not writable, ignore the error here. `build_corpus` reports it.
        with suppress(OSError, StorageError):
            cache_file.parent.mkdir(parents=True, exist_ok=True)
            write_file(cache_file, digest.encode())
    return digest


_TAG_FIELDS = {*TaggedCorpusConfig.model_fields}


def json_digest(value: Any) -> str:
    """Return the SHA-256 of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def fingerprint(config: DataConfig, split: Split) -> str:
    """Return a digest of a split's data and settings.

    For text files, the digest covers the contents, not the names or folders of the files. For
    series, pedestrian tracks and robot paths, it covers only the settings. For other generated
    data, it covers the settings and the version of the generator. For images, see `images_digest`.
    For a reader that is defined outside seqloom, it covers the examples.
    """
    refuse_missing_files(config, split)
    corpora = corpora_of(config, split)
    if split == "train" or any(isinstance(corpus, HoldOutConfig) for corpus in corpora):
        shares = [held_out_share(config, "dev"), held_out_share(config, "test")]
        training = [
            _identity(corpus, config.folder, "train") for corpus in training_corpora(config)
        ]
    else:
        shares, training = [], []
    evaluation = [
        "held out" if isinstance(corpus, HoldOutConfig) else _identity(corpus, config.folder, split)
        for corpus in corpora
        if split != "train"
    ]
    parent = config.parent_data if split == "train" and config.replay is not None else None
    if parent is None:
        return json_digest([split, shares, training, evaluation])
    refuse_missing_replay(parent)
    replayed = fingerprint(parent, "train")
    return json_digest([split, shares, training, evaluation, "replay", replayed])


def images_digest(container: Path) -> str:
    """Return a digest of the images in an archive or a folder.

    For an archive, the digest covers its content. For a folder, it covers the names, sizes and
    modification times of the images, because reading all images would take long.
    """
    if container.is_file():
        return file_digest(container)
    entries = [
        (name, status.st_size, status.st_mtime_ns)
        for name in image_names(container)
        for status in [(container / name).stat()]
    ]
    return hashlib.sha256(repr(entries).encode()).hexdigest()


def _identity(corpus: CorpusConfig, folder: str, split: Split) -> Any:
    """Return a JSON value that identifies a corpus. It describes the content of the corpus. If the
    recipe sets a tag or a name for the corpus, the value contains them too."""
    tags = corpus.model_dump(include=_TAG_FIELDS, exclude_none=True)
    content = _content_identity(corpus, folder, split)
    return [content, tags] if tags else content


def _content_identity(corpus: CorpusConfig, folder: str, split: Split) -> Any:
    match corpus:
        case ParallelConfig():
            settings = corpus.model_dump(mode="json", include={"first_line", "last_line"})
            rows = [
                [file_digest(path) for path in paths]
                for paths in parallel_paths(corpus, folder, f"data.{split}")
            ]
            # The digest of a single pair of files has this form, so that existing runs can be
            # resumed.
            return [settings, *rows[0]] if len(rows) == 1 else [settings, rows]
        case (
            TsvConfig()
            | CsvConfig()
            | JsonlConfig()
            | LinesConfig()
            | ParquetConfig()
            | TmxConfig()
        ):
            settings = corpus.model_dump(mode="json", exclude={"path", *_TAG_FIELDS})
            return [settings, *_file_digests(corpus.path, folder)]
        case ArrowConfig():
            settings = corpus.model_dump(mode="json", exclude={"path", *_TAG_FIELDS})
            return [settings, *map(file_digest, arrow_paths(corpus.path, folder))]
        case CaptionsConfig(images=containers, captions=captions, names=names):
            files = [captions, *([] if names is None else [names])]
            return [
                [file_digest(locate(name, folder)) for name in files],
                [images_digest(image_container(name, folder)) for name in containers],
            ]
        case ScenesConfig():
            return [corpus.model_dump(mode="json"), SCENE_VERSION, split]
        case FramesConfig():
            settings = corpus.model_dump(mode="json", exclude={"path"})
            return [settings, *_file_digests(corpus.path, folder)]
        case GesturesConfig():
            return [corpus.model_dump(mode="json"), GESTURES_VERSION, split]
        case SeriesConfig() | RobotConfig():
            return corpus.model_dump(mode="json")
        # `companions` and `running-text` are former names of settings. The digest still uses these
        # names, so that existing runs can be resumed.
        case TracksConfig(min_pedestrians=companions):
            settings = corpus.model_dump(mode="json", exclude={"min_pedestrians"})
            return {**settings, "companions": companions}
        case LongTextConfig(begin=begin, end=end):
            # Window settings are left out: they do not change the tokenised text.
            settings = {"kind": "running-text", "begin": begin, "end": end}
            return [settings, *_file_digests(corpus.path, folder)]
        case BundledConfig():
            settings = corpus.model_dump(mode="json", exclude=_TAG_FIELDS)
            pairs = LABELLED_PAIRS if corpus.is_joined else [corpus]
            return [settings, *_bundled_digests(pairs, split)]
        case BundledLabelsConfig():
            settings = corpus.model_dump(mode="json")
            return [settings, LABELS_VERSION, *_bundled_digests(LABELLED_PAIRS, split)]
        case SyntheticConfig():
            settings = corpus.model_dump(mode="json")
            if corpus.part == "start":  # without the setting, existing runs can be resumed
                del settings["part"]
            return [settings, VERSION, split]
        case ImportedConfig():
            raise no_imported_data("data.train")
        case ReaderExtensionConfig():
            return _examples_digest(corpus, folder, split)
        case _:
            assert_never(corpus)


def _file_digests(names: FileNames, folder: str) -> list[str]:
    return [file_digest(path) for path in locate_all(names, folder)]


def _examples_digest(corpus: ReaderExtensionConfig, folder: str, split: Split) -> str:
    """Return a digest of all examples of a reader that is defined outside seqloom.

    The digest cannot cover the data files instead, because seqloom does not know which files such a
    reader reads.
    """
    digest = hashlib.sha256()
    for record in read_extension(corpus, folder, split, f"data.{split}"):
        digest.update(repr(record).encode())
    return digest.hexdigest()


def _bundled_digests(pairs: Sequence[BundledConfig], split: Split) -> Iterator[str]:
    for pair in pairs:
        with as_file(bundled_file(pair, split)) as path:
            yield file_digest(path)
