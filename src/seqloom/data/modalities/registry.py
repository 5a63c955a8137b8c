"""The modalities that a recipe can have."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from seqloom.config.schema.recipe import RunConfig
from seqloom.data.modalities.frames import FrameModality
from seqloom.data.modalities.images import ImageModality
from seqloom.data.modalities.modality import Modality, SourceStore
from seqloom.data.modalities.text import TextModality
from seqloom.text.tokenizer import Tokenizer

MODALITIES: dict[str, type[Modality]] = {
    "text": TextModality,
    "images": ImageModality,
    "frames": FrameModality,
}
"""Each modality by the name that `modality` of the corpora and tasks of a recipe has."""


def learn_modality(
    config: RunConfig, tokenizer: Tokenizer | None, sources: Iterable[str]
) -> Modality | None:
    """Return the modality of a new run; None if it reads no sources.

    tokenizer: the tokenizer of the sources, if they are text
    sources:   the sources of the training split. They are read only if the modality needs them
    """
    kind = MODALITIES.get(config.modality)
    return None if kind is None else kind.learn(config, tokenizer, sources)


def load_modality(config: RunConfig, folder: Path) -> Modality | None:
    """Load the modality of a run from its folder; None if it reads no sources."""
    kind = MODALITIES.get(config.modality)
    return None if kind is None else kind.load(config, folder)


def open_sources(folder: Path, shards: Sequence[Path]) -> SourceStore | None:
    """Open the sources of a corpus; None if the corpus has no sources.

    folder: folder of the corpus
    shards: folders of its shards
    """
    for kind in MODALITIES.values():
        if (shards[0] / kind.file).exists():
            return kind.open(folder, shards)
    return None
