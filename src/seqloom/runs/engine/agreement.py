"""Does a converted model compute what ours computes? Asked right after the conversion."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from seqloom.config.decoding import GreedyConfig
from seqloom.core.errors import StorageError
from seqloom.data.collate import pad_ids
from seqloom.decoding.build import build_search
from seqloom.decoding.search import Request
from seqloom.models.seq2seq import Model
from seqloom.runs.engine.convert import embedders, vocabulary_size
from seqloom.runs.engine.search import CTranslate2Engine
from seqloom.tasks.task import ModelInput
from seqloom.text.vocabulary import END, SPECIAL

PROBES = 32
LONGEST_PROBE = 24
EXACT = 1e-4
"""|Δ log p| of a token in float32; also what counts as a tie between two outputs."""
CLOSE = 0.05
"""The mean |Δ log p| of a token up to which int8 is taken for granted."""
FILE = "agreement.json"


@dataclass(frozen=True)
class Agreement:
    """How alike two engines are on the probes.

    largest: |Δ log p| of the token they differ most in
    mean:    |Δ log p| of a token
    same:    probes with the same best output, ties apart
    answered: probes that CTranslate2 did not leave to torch
    """

    largest: float
    mean: float
    same: int
    answered: int

    @property
    def exact(self) -> bool:
        """Is it the same model? Asked of float32."""
        return self.largest < EXACT and self.same == self.answered

    @property
    def close(self) -> bool:
        """Is it near enough to be used unasked? Asked of int8."""
        return self.mean <= CLOSE

    def __str__(self) -> str:
        return (
            f"mean |Δ log p| {self.mean:.1e} a token, at most {self.largest:.1e}; "
            f"the same best output for {self.same} of {self.answered} probes"
        )

    def write(self, folder: Path) -> None:
        (folder / FILE).write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Agreement":
        try:
            return cls(**json.loads((folder / FILE).read_bytes()))
        except (OSError, ValueError, TypeError) as error:
            raise StorageError(f"{folder / FILE}: cannot be read: {error}") from error


def probes(model: Model) -> list[ModelInput]:
    """Sentences of the model's own vocabulary, the same every time."""
    source, _ = embedders(model)
    size = vocabulary_size(source)
    longest = min(LONGEST_PROBE, (model.max_source_length or LONGEST_PROBE + 1) - 1)
    random = np.random.default_rng(0)
    first = min(len(SPECIAL), size - 1)
    return [
        ModelInput(tuple(random.integers(first, size, length).tolist()), ())
        for length in random.integers(1, longest + 1, PROBES)
    ]


@torch.inference_mode()
def compare(model: Model, engine: CTranslate2Engine) -> Agreement:
    """Let both engines search, and both judge what torch has found."""
    batch = probes(model)
    decoding = GreedyConfig()
    limit = min(LONGEST_PROBE, model.max_target_length or LONGEST_PROBE)
    request = Request(max_lengths=[limit] * len(batch))
    rows = [np.array(one.source, np.int32) for one in batch]
    device = next(model.parameters()).device
    memory = model.encode(pad_ids(rows, last=END).to(device), len(batch))
    ours = [best for [best] in build_search(decoding)(model.decoder, memory, request)]
    room = engine.longest_target - 1  # it scores END behind every target, which needs a position
    scored = engine.score(
        [(one.source or (), best.tokens[:room]) for one, best in zip(batch, ours, strict=True)]
    )
    differences = [
        abs(mine - other)
        for best, theirs in zip(ours, scored, strict=True)
        # What was cut off has no END of its own.
        for mine, other in zip(
            best.log_probabilities, theirs if best.finished else theirs[:-1], strict=False
        )
    ]
    found = engine.search(batch, request, decoding, "score")
    answered = [(best, other[0]) for best, other in zip(ours, found, strict=True) if other]
    same = sum(
        best.tokens == other.tokens or abs(best.score - other.score) < EXACT
        for best, other in answered
    )
    return Agreement(max(differences), float(np.mean(differences)), same, len(answered))
