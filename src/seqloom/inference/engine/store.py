"""Stores models that are converted to CTranslate2, and compares them with the original model.

    engines/ctranslate2-int8-…/    in the run folder, or in the user's cache
                                   if the run folder is read-only

Each folder has a manifest. If a folder is damaged, the model is converted again.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from seqloom.config.schema.decoding import GreedyConfig
from seqloom.core.errors import ConfigError, StorageError
from seqloom.core.storage import atomic_folder, find_damage, remove_folder
from seqloom.data.corpus.disk_cache import cache_root
from seqloom.data.modalities.text import TextInput
from seqloom.decoding.build import build_search
from seqloom.decoding.search import SearchRequest
from seqloom.inference.engine.convert import Precision, convert, embedders, vocabulary_size
from seqloom.inference.engine.package import ctranslate2
from seqloom.inference.engine.translator import CTranslate2Engine
from seqloom.models.seq2seq import Model
from seqloom.tasks.task import ModelInput, collate_sources
from seqloom.text.vocabulary import SPECIAL_TOKENS

PROBES = 32
"""Number of probes: random sentences on which CTranslate2 is compared with torch."""
MAX_PROBE_LENGTH = 24
"""Maximum number of tokens of a probe and of its output."""
EXACT_TOLERANCE = 1e-4
"""A float32 conversion counts as exact if |Δ log p| of every token is below this value (see
`Agreement`). Two outputs count as tied if their scores differ by less than this value."""
INT8_TOLERANCE = 0.05
"""int8 is chosen automatically only if the mean |Δ log p| over all tokens is at most this value."""
FILE = "agreement.json"


def _format_difference(value: float) -> str:
    return "less than 0.0001" if value < 0.0001 else f"{value:.2g}"


@dataclass(frozen=True)
class Agreement:
    """How closely a converted model agrees with torch.

    Both are compared on the probes, which are random sentences (see `build_probes`). Δ log p is the
    difference between the log-probabilities that torch and the converted model give to the same
    token.

    largest:  maximum |Δ log p| over all tokens
    mean:     mean |Δ log p| over all tokens
    same:     number of probes for which torch and the converted model have the same best output, or
              different best outputs with equal scores
    answered: number of probes that the converted model decoded. torch decodes the others.
    """

    largest: float
    mean: float
    same: int
    answered: int

    @property
    def is_exact(self) -> bool:
        """True if the converted float32 model equals the original model, up to rounding."""
        return self.largest < EXACT_TOLERANCE and self.same == self.answered

    @property
    def is_close(self) -> bool:
        """True if, on average, the log-probabilities differ little from those of torch.

        If the setting of the precision is "auto", an int8 model is used only if this is True.
        """
        return self.mean <= INT8_TOLERANCE

    def __str__(self) -> str:
        return (
            f"On {self.answered} random sentences, it gives the same best output as torch for "
            f"{self.same}. Its log-probabilities differ by {_format_difference(self.mean)} per "
            f"token on average and by {_format_difference(self.largest)} at most"
        )

    def write(self, folder: Path) -> None:
        (folder / FILE).write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Agreement":
        try:
            return cls(**json.loads((folder / FILE).read_bytes()))
        except (OSError, ValueError, TypeError) as error:
            raise StorageError(
                f"{folder / FILE}: is not readable: {error}. Remove the folder {folder}. seqloom "
                "then converts the model again"
            ) from error


def build_probes(model: Model) -> list[ModelInput]:
    """Return the probes: random source sequences, on which two versions of a model are compared.

    Every call for the same model returns the same probes.
    """
    source, _ = embedders(model)
    size = vocabulary_size(source)
    max_length = min(MAX_PROBE_LENGTH, (model.max_source_length or MAX_PROBE_LENGTH + 1) - 1)
    random = np.random.default_rng(0)
    first = min(len(SPECIAL_TOKENS), size - 1)
    return [
        ModelInput(TextInput(tuple(random.integers(first, size, length).tolist())), ())
        for length in random.integers(1, max_length + 1, PROBES)
    ]


@torch.inference_mode()
def measure_agreement(model: Model, engine: CTranslate2Engine) -> Agreement:
    """Compare the engine with torch on random sources, the probes.

    Decodes the probes with the engine and with torch, and compares the outputs. Also compares the
    log-probabilities that the engine and torch give to each token of the torch outputs.
    """
    batch = build_probes(model)
    decoding = GreedyConfig()
    limit = min(MAX_PROBE_LENGTH, model.max_target_length or MAX_PROBE_LENGTH)
    request = SearchRequest(max_lengths=[limit] * len(batch))
    device = next(model.parameters()).device
    source = collate_sources(batch)
    assert source is not None
    memory = model.encode(source.to(device), len(batch))
    torch_outputs = [best for [best] in build_search(decoding)(model.decoder, memory, request)]
    max_target = engine.max_target_length - 1  # CTranslate2 scores END after every target
    scored = engine.score(
        [
            (one.source_tokens, best.tokens[:max_target])
            for one, best in zip(batch, torch_outputs, strict=True)
        ]
    )
    differences = [
        abs(ours - other)
        for best, theirs in zip(torch_outputs, scored, strict=True)
        # An unfinished output has no END.
        for ours, other in zip(
            best.log_probabilities, theirs if best.finished else theirs[:-1], strict=False
        )
    ]
    searched = engine.search(batch, request, decoding, "score")
    answered = [
        (best, other[0]) for best, other in zip(torch_outputs, searched, strict=True) if other
    ]
    same = sum(
        best.tokens == other.tokens or abs(best.score - other.score) < EXACT_TOLERANCE
        for best, other in answered
    )
    return Agreement(max(differences), float(np.mean(differences)), same, len(answered))


ENGINES = "engines"
CONVERSION_VERSION = 1
"""Version of the conversion. The folder name depends on it, so that models converted by earlier
versions are not used. Increase it when the conversion changes."""


@dataclass(frozen=True)
class ModelOrigin:
    """The original model, before conversion.

    folder: the run folder
    digest: digest of the weights and of the model settings
    """

    folder: Path
    model: Model
    digest: str

    def engine_name(self, precision: Precision) -> str:
        """Return the name of the folder that stores the converted model of this precision."""
        facts = f"{CONVERSION_VERSION} {ctranslate2().__version__} {precision} {self.digest}"
        digest = hashlib.sha256(facts.encode()).hexdigest()[:16]
        return f"ctranslate2-{precision}-{digest}"


def load_or_convert(
    origin: ModelOrigin, precision: Precision
) -> tuple[CTranslate2Engine, Agreement]:
    """Load the converted model. On first use, the original model is converted.

    Returns the loaded model and its agreement with torch.
    """
    name = origin.engine_name(precision)
    paths = [origin.folder / ENGINES / name, cache_root() / ENGINES / name]
    path = next((path for path in paths if not find_damage(path)), None)
    if path is None:
        path = _convert(origin, precision, paths)
    return CTranslate2Engine.load(path, origin.model, precision), Agreement.read(path)


def _convert(origin: ModelOrigin, precision: Precision, paths: list[Path]) -> Path:
    """Convert the model and write it to the first folder in `paths` that is writable.

    Returns this folder.
    """
    first_error: StorageError | None = None
    for path in paths:
        try:
            with atomic_folder(path) as temporary:
                _write_model(origin.model, temporary, precision)
            if path.parent.parent == origin.folder:
                _remove_outdated(path, precision)
            return path
        except StorageError as error:
            if not find_damage(path):  # another process has converted the model
                return path
            first_error = first_error or error
    assert first_error is not None
    raise first_error


def _write_model(model: Model, folder: Path, precision: Precision) -> None:
    """Convert a model to CTranslate2. Write it, and its agreement with torch, to a folder.

    The model is first converted to float32 and compared with torch. Raises a ConfigError if they
    differ by more than rounding. For another precision, the model is then converted again and
    compared again. The result of this comparison is stored and raises no error.
    """
    convert(model, folder, "float32")
    agreement = measure_agreement(model, CTranslate2Engine.load(folder, model, "float32"))
    if not agreement.is_exact:
        raise ConfigError(
            f"the converted CTranslate2 model differs from the torch model. {agreement}. Use --engine "
            "torch (engine='torch' in Python)"
        )
    if precision != "float32":
        convert(model, folder, precision)
        agreement = measure_agreement(model, CTranslate2Engine.load(folder, model, precision))
    agreement.write(folder)


def _remove_outdated(path: Path, precision: Precision) -> None:
    """Remove outdated models: all converted models of this precision except `path`.

    They were converted from other weights or settings, or by another version of CTranslate2 or
    seqloom.
    """
    for other in path.parent.glob(f"ctranslate2-{precision}-*"):
        if other != path:
            remove_folder(other)
