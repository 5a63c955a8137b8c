"""Comparison of a converted model with the original, right after the conversion."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from seqloom.config.schema.decoding import GreedyConfig
from seqloom.core.errors import StorageError
from seqloom.data.batching.collate import pad_ids
from seqloom.decoding.build import build_search
from seqloom.decoding.search import SearchRequest
from seqloom.models.seq2seq import Model
from seqloom.runs.engine.convert import embedders, vocabulary_size
from seqloom.runs.engine.translator import CTranslate2Engine
from seqloom.tasks.task import ModelInput
from seqloom.text.vocabulary import END, SPECIAL_TOKENS

PROBES = 32
MAX_PROBE_LENGTH = 24
EXACT_TOLERANCE = 1e-4
"""Maximum |Δ log p| of a token in float32; two outputs with a smaller score difference are tied."""
INT8_TOLERANCE = 0.05
"""Maximum mean |Δ log p| of a token for which int8 is used automatically."""
FILE = "agreement.json"


@dataclass(frozen=True)
class Agreement:
    """The agreement of two engines on the probes.

    largest:  maximum |Δ log p| of a token
    mean:     mean |Δ log p| of a token
    same:     number of probes with the same best output, or with tied outputs
    answered: number of probes that CTranslate2 did not leave to torch
    """

    largest: float
    mean: float
    same: int
    answered: int

    @property
    def is_exact(self) -> bool:
        """True if the converted float32 model equals the original."""
        return self.largest < EXACT_TOLERANCE and self.same == self.answered

    @property
    def is_close(self) -> bool:
        """True if the int8 model is close enough to be used automatically."""
        return self.mean <= INT8_TOLERANCE

    def __str__(self) -> str:
        return (
            f"mean |Δ log p| {self.mean:.1e} per token, maximum {self.largest:.1e}; "
            f"same best output for {self.same} of {self.answered} probes"
        )

    def write(self, folder: Path) -> None:
        (folder / FILE).write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Agreement":
        try:
            return cls(**json.loads((folder / FILE).read_bytes()))
        except (OSError, ValueError, TypeError) as error:
            raise StorageError(f"{folder / FILE}: is not readable: {error}") from error


def build_probes(model: Model) -> list[ModelInput]:
    """Random sentences over the model's vocabulary, the same every time."""
    source, _ = embedders(model)
    size = vocabulary_size(source)
    max_length = min(MAX_PROBE_LENGTH, (model.max_source_length or MAX_PROBE_LENGTH + 1) - 1)
    random = np.random.default_rng(0)
    first = min(len(SPECIAL_TOKENS), size - 1)
    return [
        ModelInput(tuple(random.integers(first, size, length).tolist()), ())
        for length in random.integers(1, max_length + 1, PROBES)
    ]


@torch.inference_mode()
def measure_agreement(model: Model, engine: CTranslate2Engine) -> Agreement:
    """Search the probes with both engines, and score the torch outputs with both."""
    batch = build_probes(model)
    decoding = GreedyConfig()
    limit = min(MAX_PROBE_LENGTH, model.max_target_length or MAX_PROBE_LENGTH)
    request = SearchRequest(max_lengths=[limit] * len(batch))
    rows = [np.array(one.source, np.int32) for one in batch]
    device = next(model.parameters()).device
    memory = model.encode(pad_ids(rows, last=END).to(device), len(batch))
    torch_outputs = [best for [best] in build_search(decoding)(model.decoder, memory, request)]
    max_target = engine.max_target_length - 1  # CTranslate2 scores END after every target
    scored = engine.score(
        [
            (one.source or (), best.tokens[:max_target])
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
    found = engine.search(batch, request, decoding, "score")
    answered = [(best, other[0]) for best, other in zip(torch_outputs, found, strict=True) if other]
    same = sum(
        best.tokens == other.tokens or abs(best.score - other.score) < EXACT_TOLERANCE
        for best, other in answered
    )
    return Agreement(max(differences), float(np.mean(differences)), same, len(answered))
