"""CorpusRequest: everything that determines a tokenised corpus, and its cache key. The fingerprint of a
split is the part of the key that depends on its data.
"""

from dataclasses import dataclass
from typing import Any, Literal

from seqloom.config.schema.corpora import HoldOutConfig, ReaderExtensionConfig
from seqloom.config.schema.data import DataConfig
from seqloom.data.corpus.digests import json_digest
from seqloom.data.example import Split
from seqloom.data.modalities.modality import Modality
from seqloom.data.readers.reader import TAG_FIELDS, ExtensionReader, Reader
from seqloom.data.readers.splits import (
    corpora_of,
    held_out_share,
    reader_of,
    refuse_missing_files,
    refuse_missing_replay,
    training_corpora,
)
from seqloom.extensions.identity import extension_version
from seqloom.text.tokenizer import Tokenizer


def fingerprint(config: DataConfig, split: Split) -> str:
    """Return a digest of a split's data and settings.

    Each reader states what identifies its corpus (`Reader.identity`).
    """
    refuse_missing_files(config, split)
    corpora = corpora_of(config, split)
    if split == "train" or any(isinstance(corpus, HoldOutConfig) for corpus in corpora):
        shares = [held_out_share(config, "dev"), held_out_share(config, "test")]
        training = [
            _identity(reader_of(config, corpus, "train")) for corpus in training_corpora(config)
        ]
    else:
        shares, training = [], []
    evaluation = [
        "held out"
        if isinstance(corpus, HoldOutConfig)
        else _identity(reader_of(config, corpus, split))
        for corpus in corpora
        if split != "train"
    ]
    parent = config.parent_data if split == "train" and config.replay is not None else None
    if parent is None:
        return json_digest([split, shares, training, evaluation])
    refuse_missing_replay(parent)
    replayed = fingerprint(parent, "train")
    return json_digest([split, shares, training, evaluation, "replay", replayed])


def _identity(reader: Reader[Any]) -> Any:
    """Return a JSON value that identifies a corpus: its content and, if the recipe sets them, its tag
    and its name. For a reader outside seqloom, its settings or its code are part of the value."""
    corpus, content = reader.corpus, reader.identity()
    if isinstance(reader, ExtensionReader):
        return [content, corpus.model_dump()]
    if isinstance(corpus, ReaderExtensionConfig):
        content = [content, extension_version(corpus.extension_target).sha256]
    settings = corpus.model_dump()
    tags = {name: settings[name] for name in TAG_FIELDS if settings.get(name) is not None}
    return [content, tags] if tags else content


DIGEST_VERSION = 2
"""Part of the digest. Do not change it without need: a run folder stores the digest of its training
data, and a run whose digest differs cannot be resumed."""


@dataclass(frozen=True)
class CorpusRequest:
    """Everything that determines a tokenised corpus: its examples, tokenizers and other settings.

    source:   what the sources are; None if there are none
    target:   tokenizer of the targets
    tag_side: "source": a tag (such as the target language) stays at the start of the source;
              "target": it is moved to the start of the target
    """

    data: DataConfig
    split: Split
    source: Modality | None
    target: Tokenizer
    tag_side: Literal["source", "target"] = "source"

    def digest(self) -> str:
        """Return the cache key of the corpus."""
        filters = self.data.filter.model_dump(mode="json") if self.split == "train" else {}
        tokenizer = None if self.source is None else self.source.tokenizer
        source = None if tokenizer is None else tokenizer.digest
        examples = fingerprint(self.data, self.split)
        corpora = len(corpora_of(self.data, self.split))
        # A feature that is not used adds nothing to the key. The strings below must not be changed:
        # existing caches would become invalid.
        extra: list[Any] = [f"{corpora} parts"] if corpora > 1 else []
        extra += [] if self.source is None else self.source.identity
        extra += ["tagged targets"] if self.tag_side == "target" else []
        return json_digest([DIGEST_VERSION, examples, source, self.target.digest, filters, *extra])
