"""CorpusRequest: everything that determines a tokenised corpus, and its cache key."""

from dataclasses import dataclass
from typing import Any, Literal

from seqloom.config.schema.data import DataConfig
from seqloom.data.corpus.digests import json_digest
from seqloom.data.corpus.fingerprint import fingerprint
from seqloom.data.example import Split
from seqloom.data.modalities.modality import Modality
from seqloom.data.readers.splits import corpora_of
from seqloom.text.tokenizer import Tokenizer

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
