"""Storage of converted models.

    engines/ctranslate2-int8-…/    in the run folder, or in the user's cache if that is read-only

Each folder has a manifest. A damaged folder is converted again.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from seqloom.core.errors import ConfigError, StorageError
from seqloom.core.storage import atomic_folder, find_damage, remove_folder
from seqloom.data.corpus.cache import cache_root
from seqloom.models.seq2seq import Model
from seqloom.runs.engine.agreement import Agreement, measure_agreement
from seqloom.runs.engine.convert import Precision, convert
from seqloom.runs.engine.package import ctranslate2
from seqloom.runs.engine.translator import CTranslate2Engine

ENGINES = "engines"
CONVERSION_VERSION = 1
"""Increased when the conversion changes."""


@dataclass(frozen=True)
class ModelOrigin:
    """The model that an engine is converted from.

    folder: the run folder
    digest: digest of the weights and of the model settings
    """

    folder: Path
    model: Model
    digest: str

    def engine_name(self, precision: Precision) -> str:
        """The folder name of the converted model."""
        facts = f"{CONVERSION_VERSION} {ctranslate2().__version__} {precision} {self.digest}"
        digest = hashlib.sha256(facts.encode()).hexdigest()[:16]
        return f"ctranslate2-{precision}-{digest}"


def load_or_convert(
    origin: ModelOrigin, precision: Precision
) -> tuple[CTranslate2Engine, Agreement]:
    """The engine and its agreement with torch. Converts the model on first use."""
    name = origin.engine_name(precision)
    paths = [origin.folder / ENGINES / name, cache_root() / ENGINES / name]
    path = next((path for path in paths if not find_damage(path)), None)
    if path is None:
        path = _convert(origin, precision, paths)
    return CTranslate2Engine.load(path, origin.model, precision), Agreement.read(path)


def _convert(origin: ModelOrigin, precision: Precision, paths: list[Path]) -> Path:
    """Convert into the first writable path."""
    first_error: StorageError | None = None
    for path in paths:
        try:
            with atomic_folder(path) as temporary:
                _write_model(origin.model, temporary, precision)
            if path.parent.parent == origin.folder:
                _remove_outdated(path, precision)
            return path
        except StorageError as error:
            if not find_damage(path):  # another process converted it meanwhile
                return path
            first_error = first_error or error
    assert first_error is not None
    raise first_error


def _write_model(model: Model, folder: Path, precision: Precision) -> None:
    """Convert to float32, check that the result is exact, then quantise if requested."""
    convert(model, folder, "float32")
    agreement = measure_agreement(model, CTranslate2Engine.load(folder, model, "float32"))
    if not agreement.is_exact:
        raise ConfigError(
            f"the converted CTranslate2 model differs from the torch model ({agreement}). Use --engine "
            "torch (engine='torch' in Python)"
        )
    if precision != "float32":
        convert(model, folder, precision)
        agreement = measure_agreement(model, CTranslate2Engine.load(folder, model, precision))
    agreement.write(folder)


def _remove_outdated(path: Path, precision: Precision) -> None:
    """Remove the converted models of earlier weights."""
    for other in path.parent.glob(f"ctranslate2-{precision}-*"):
        if other != path:
            remove_folder(other)
