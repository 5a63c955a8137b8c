"""Reads sentencepiece models."""

from pathlib import Path

import sentencepiece

from seqloom.core.errors import ConfigError, DataError
from seqloom.interop.huggingface_files import read_bytes


def read_sentencepiece(path: Path) -> bytes:
    """Return the content of a sentencepiece model file.

    Raises an error if the file is not a sentencepiece model, or if the model uses byte fallback,
    which seqloom cannot import.
    """
    model = read_bytes(path)
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError as error:
        raise DataError(f"{path}: is not a sentencepiece model. Download it again.") from error
    if any(processor.is_byte(id_) for id_ in range(processor.get_piece_size())):
        raise ConfigError(
            f"{path}: seqloom cannot import models that split unknown characters into bytes "
            "(byte_fallback)."
        )
    return model
