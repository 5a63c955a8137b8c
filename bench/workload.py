"""What everybody is asked to do: a model, a corpus cut into the same pieces, a batch budget.

Peers run in environments of their own, so this file needs nothing but the standard library.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["transformer", "recurrent", "recurrent-feeding"]
KINDS: tuple[Kind, ...] = ("transformer", "recurrent", "recurrent-feeding")
"""recurrent-feeding: the context also goes into the next step's input (input feeding)."""

PAD, START, END, UNKNOWN = 0, 1, 2, 3


@dataclass(frozen=True)
class Workload:
    """One training job. The recurrent encoder has half the width in each direction."""

    kind: Kind
    folder: Path
    """Where the prepared corpus lies: see `prepare.py`."""
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
    """Tokens of a source, its END included; of a target likewise."""
    mean_target: float = 0.0

    @property
    def recurrent(self) -> bool:
        return self.kind != "transformer"

    def save(self, path: Path) -> None:
        path.write_text(json.dumps({**asdict(self), "folder": str(self.folder)}, indent=2))

    @classmethod
    def load(cls, path: Path) -> "Workload":
        content = json.loads(path.read_text())
        return cls(**{**content, "folder": Path(content["folder"])})

    def ids(self, side: Literal["source", "target"]) -> list[list[int]]:
        """The training corpus as ids, without START and END."""
        lines = (self.folder / f"train.{side}.ids").read_text().splitlines()
        return [[int(one) for one in line.split()] for line in lines]

    def pieces(self) -> list[str]:
        """The vocabulary in the order of its ids; the four special tokens come first."""
        return (self.folder / "vocabulary.txt").read_text(encoding="utf-8").split("\n")[:-1]


def sized(kind: Kind, folder: Path, vocabulary: int) -> Workload:
    """The model of the comparison: small enough that a laptop can train it."""
    if kind == "transformer":
        return Workload(kind, folder, vocabulary)
    return Workload(kind, folder, vocabulary, width=512, layers=1, heads=1, feedforward=0)


def matmul_flops(workload: Workload, source_tokens: int, target_tokens: int) -> float:
    """What a training step must multiply: 6 x weights x tokens, and 12 x width x keys x queries.

    6 = 2 for a multiplication and an addition, times 3 for forward and the two products of
    backward. Only real tokens count: work done on padding is work wasted.
    """
    source, target = weights_met(workload)
    attention = 12 * workload.width * workload.layers
    looks = (
        source_tokens * workload.mean_source  # sources among themselves
        + target_tokens * workload.mean_target  # targets among themselves
        + target_tokens * workload.mean_source
        if workload.kind == "transformer"
        else target_tokens * workload.mean_source
    )
    return 6 * (source * source_tokens + target * target_tokens) + attention * looks


def weights_met(workload: Workload) -> tuple[int, int]:
    """How many weights a source token and a target token is multiplied with."""
    products = [(side, rows * columns) for side, rows, columns in matrices(workload)]
    return tuple(sum(size for one, size in products if one == side) for side in ("s", "t"))  # type: ignore[return-value]


def matrices(workload: Workload) -> Iterator[tuple[str, int, int]]:
    """Every matrix of the model: ("s" or "t" for who meets it, inputs, outputs)."""
    width, vocabulary = workload.width, workload.vocabulary
    if workload.kind == "transformer":
        for _ in range(workload.layers):
            for side in "st":
                yield from [(side, width, width)] * 4  # queries, keys, values, merge
                yield side, width, workload.feedforward
                yield side, workload.feedforward, width
            yield from [("t", width, width)] * 2  # queries and merge of the look at the source
            yield from [("s", width, width)] * 2  # its keys and values
    else:
        half = width // 2
        for _ in range(2):  # two directions: three gates, from the input and from the state
            yield "s", width, 3 * half
            yield "s", half, 3 * half
        fed = 2 * width if workload.kind == "recurrent-feeding" else width
        yield "t", fed, 3 * width
        yield "t", width, 3 * width
        yield "t", width, width  # the bilinear score
        yield "t", 2 * width, width  # state and context, through tanh, before the vocabulary
    yield "t", width, vocabulary
