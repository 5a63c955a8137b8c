"""CorpusRequest: everything that determines a tokenised corpus, and its cache key."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from seqloom.config.schema.data import DataConfig
from seqloom.data.corpus.fingerprint import fingerprint, json_digest
from seqloom.data.example import Split
from seqloom.data.readers.splits import corpora_of
from seqloom.text.tokenizer import Tokenizer

if TYPE_CHECKING:  # imports torch, which takes seconds, and worker processes do not need it
    from seqloom.data.corpus.frame_store import FrameScale

DIGEST_VERSION = 2
"""Part of the digest. Do not change it without need: a run folder stores the digest of its training
data, and a run whose digest differs cannot be resumed."""


@dataclass(frozen=True)
class CorpusRequest:
    """Everything that determines a tokenised corpus: its examples, tokenizers and other settings.

    source:     tokenizer of the sources; None if the sources are not text
    target:     tokenizer of the targets
    image_size: height and width of the images in pixels; None if the sources are not images
    frames:     normalisation of the sources if they are sequences of vectors (frames); otherwise
                None
    tag_side:   "source": a tag (such as the target language) stays at the start of the source;
                "target": it is moved to the start of the target
    """

    data: DataConfig
    split: Split
    source: Tokenizer | None
    target: Tokenizer
    image_size: int | None = None
    tag_side: Literal["source", "target"] = "source"
    frames: "FrameScale | None" = None

    def digest(self) -> str:
        """Return the cache key of the corpus."""
        filters = self.data.filter.model_dump(mode="json") if self.split == "train" else {}
        source = None if self.source is None else self.source.digest
        examples = fingerprint(self.data, self.split)
        corpora = len(corpora_of(self.data, self.split))
        # A feature that is not used adds nothing to the key. The strings below must not be changed:
        # existing caches would become invalid.
        extra: list[Any] = [] if self.image_size is None else [self.image_size]
        extra += [f"{corpora} parts"] if corpora > 1 else []
        extra += [] if self.frames is None else ["frames", self.frames.to_json()]
        extra += ["tagged targets"] if self.tag_side == "target" else []
        return json_digest([DIGEST_VERSION, examples, source, self.target.digest, filters, *extra])
