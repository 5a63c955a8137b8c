"""The workload of the comparison: a model, a tokenised corpus and a batch size.

Peers run in environments of their own, so this module uses only the standard library.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from string import Template
from typing import Literal, NamedTuple

Side = Literal["source", "target"]
ModelKind = Literal["transformer", "recurrent", "recurrent-feeding"]
MODEL_KINDS: tuple[ModelKind, ...] = ("transformer", "recurrent", "recurrent-feeding")
"""recurrent-feeding: the context vector is also an input of the next step (input feeding)."""

CONFIGS = Path(__file__).parents[1] / "peers" / "configs"
PAD, START, END, UNKNOWN = 0, 1, 2, 3


@dataclass(frozen=True)
class Workload:
    """One training job.

    Each direction of the recurrent encoder has half of `width`. `folder` contains the prepared
    corpus (`prepare.py`). The mean lengths include END.
    """

    kind: ModelKind
    folder: Path
    vocabulary: int
    width: int = 256
    layers: int = 3
    heads: int = 4
    feedforward: int = 1024
    dropout: float = 0.1
    batch_tokens: int = 4096
    clip: float = 1.0
    learning_rate: float = 5e-4
    seed: int = 1
    mean_source: float = 0.0
    mean_target: float = 0.0

    @property
    def is_recurrent(self) -> bool:
        return self.kind != "transformer"

    @property
    def family(self) -> str:
        return "recurrent" if self.is_recurrent else "transformer"

    def fill(self, name: str, temporary: str = "") -> str:
        """A configuration file of a peer, with the values of this workload.

        name:      a file in bench/peers/configs
        temporary: folder for what the peer writes
        """
        feeds = self.kind == "recurrent-feeding"
        values = {
            **asdict(self),
            "temporary": temporary,
            "never": 10**9,
            "half_width": self.width // 2,
            "input_feed": int(feeds),
            "input_feeding": str(feeds).lower(),
            "context": '["input", "readout"]' if feeds else '["readout"]',
        }
        return Template((CONFIGS / name).read_text(encoding="utf-8")).substitute(values)

    def write_vocabulary(self, folder: Path) -> None:
        """Write the pieces for a peer that adds four special tokens."""
        text = "".join(f"{piece}\n" for piece in self.pieces()[4:])
        (folder / "vocabulary.txt").write_text(text, encoding="utf-8")

    def save(self, path: Path) -> None:
        path.write_text(json.dumps({**asdict(self), "folder": str(self.folder)}, indent=2))

    @classmethod
    def load(cls, path: Path) -> "Workload":
        content = json.loads(path.read_text())
        return cls(**{**content, "folder": Path(content["folder"])})

    def ids(self, side: Side) -> list[list[int]]:
        """The training corpus as ids, without START and END."""
        lines = (self.folder / f"train.{side}.ids").read_text().splitlines()
        return [[int(token) for token in line.split()] for line in lines]

    def pieces(self) -> list[str]:
        """The vocabulary in the order of the ids. The four special tokens come first."""
        return (self.folder / "vocabulary.txt").read_text(encoding="utf-8").split("\n")[:-1]


def default_workload(kind: ModelKind, folder: Path, vocabulary: int) -> Workload:
    """The model of the comparison, small enough to train on a laptop."""
    if kind == "transformer":
        return Workload(kind, folder, vocabulary)
    return Workload(kind, folder, vocabulary, width=512, layers=1, heads=1, feedforward=0)


def matmul_flops(workload: Workload, source_tokens: int, target_tokens: int) -> float:
    """Floating point operations of the matrix products of training on so many tokens.

    6 x weights x tokens, and 12 x width x keys x queries for attention. 6 = 2 for a multiplication
    and an addition, times 3 for the forward product and the two products of backward. Only real
    tokens count, not padding.
    """
    weights = weights_per_token(workload)
    attention = 12 * workload.width * workload.layers
    query_key_pairs = (
        source_tokens * workload.mean_source  # self-attention of the encoder
        + target_tokens * workload.mean_target  # self-attention of the decoder
        + target_tokens * workload.mean_source  # cross-attention
        if workload.kind == "transformer"
        else target_tokens * workload.mean_source
    )
    projections = weights.source * source_tokens + weights.target * target_tokens
    return 6 * projections + attention * query_key_pairs


class WeightsPerToken(NamedTuple):
    """How many weights multiply each source token and each target token."""

    source: int
    target: int


def weights_per_token(workload: Workload) -> WeightsPerToken:
    sizes = {"source": 0, "target": 0}
    for matrix in weight_matrices(workload):
        sizes[matrix.side] += matrix.inputs * matrix.outputs
    return WeightsPerToken(**sizes)


class WeightMatrix(NamedTuple):
    """A matrix of the model, and the side whose tokens it multiplies."""

    side: Side
    inputs: int
    outputs: int


def weight_matrices(workload: Workload) -> Iterator[WeightMatrix]:
    """Every matrix of the model that multiplies tokens."""
    width, vocabulary = workload.width, workload.vocabulary
    if workload.kind == "transformer":
        sides: tuple[Side, ...] = ("source", "target")
        for _ in range(workload.layers):
            for side in sides:
                # queries, keys, values and the output projection of self-attention
                yield from [WeightMatrix(side, width, width)] * 4
                yield WeightMatrix(side, width, workload.feedforward)
                yield WeightMatrix(side, workload.feedforward, width)
            # Cross-attention: queries and output projection, keys and values.
            yield from [WeightMatrix("target", width, width)] * 2
            yield from [WeightMatrix("source", width, width)] * 2
    else:
        half = width // 2
        for _ in range(2):  # two directions: three gates, from the input and from the state
            yield WeightMatrix("source", width, 3 * half)
            yield WeightMatrix("source", half, 3 * half)
        input_width = 2 * width if workload.kind == "recurrent-feeding" else width
        yield WeightMatrix("target", input_width, 3 * width)
        yield WeightMatrix("target", width, 3 * width)
        yield WeightMatrix("target", width, width)  # bilinear attention score
        yield WeightMatrix("target", 2 * width, width)  # readout of state and context
    yield WeightMatrix("target", width, vocabulary)
