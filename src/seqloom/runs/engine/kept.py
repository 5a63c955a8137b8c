"""Converted models, kept by what they were made from.

    engines/ctranslate2-int8-…/    in the run folder, or in the user's cache if that is read-only

Each is whole and listed in a manifest of its own; one that is damaged is made again.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from seqloom.core.errors import ConfigError, StorageError
from seqloom.core.storage import damage, new_folder, remove_folder
from seqloom.data.cache import cache_root
from seqloom.models.seq2seq import Model
from seqloom.runs.engine.agreement import Agreement, compare
from seqloom.runs.engine.convert import Precision, convert
from seqloom.runs.engine.package import ctranslate2
from seqloom.runs.engine.search import CTranslate2Engine

ENGINES = "engines"
CONVERSION = 1
"""Counts up when the same weights are written down in another way."""


@dataclass(frozen=True)
class Origin:
    """What an engine is made from.

    folder: the run folder
    digest: of its weights and of how they are used
    """

    folder: Path
    model: Model
    digest: str

    def name(self, precision: Precision) -> str:
        facts = f"{CONVERSION} {ctranslate2().__version__} {precision} {self.digest}"
        digest = hashlib.sha256(facts.encode()).hexdigest()[:16]
        return f"ctranslate2-{precision}-{digest}"


def find_or_make(origin: Origin, precision: Precision) -> tuple[CTranslate2Engine, Agreement]:
    """The engine and how well it agrees with torch; converted now if that was not done yet."""
    name = origin.name(precision)
    places = [origin.folder / ENGINES / name, cache_root() / ENGINES / name]
    place = next((place for place in places if not damage(place)), None)
    if place is None:
        place = _made(origin, precision, places)
    return CTranslate2Engine.load(place, origin.model, precision), Agreement.read(place)


def _made(origin: Origin, precision: Precision, places: list[Path]) -> Path:
    """Convert into the first of these places that can be written."""
    trouble: StorageError | None = None
    for place in places:
        try:
            with new_folder(place) as temporary:
                _fill(origin.model, temporary, precision)
            if place.parent.parent == origin.folder:
                _forget_others(place, precision)
            return place
        except StorageError as error:
            if not damage(place):  # another process was quicker
                return place
            trouble = trouble or error
    assert trouble is not None
    raise trouble


def _fill(model: Model, folder: Path, precision: Precision) -> None:
    """Convert, and see that the result is the same model before it is made any coarser."""
    convert(model, folder, "float32")
    agreement = compare(model, CTranslate2Engine.load(folder, model, "float32"))
    if not agreement.exact:
        raise ConfigError(
            f"CTranslate2 does not compute what torch computes ({agreement}); "
            "use --engine torch (engine='torch' in Python)"
        )
    if precision != "float32":
        convert(model, folder, precision)
        agreement = compare(model, CTranslate2Engine.load(folder, model, precision))
    agreement.write(folder)


def _forget_others(place: Path, precision: Precision) -> None:
    """Engines of earlier weights are of no use any more."""
    for other in place.parent.glob(f"ctranslate2-{precision}-*"):
        if other != place:
            remove_folder(other)
