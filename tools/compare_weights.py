"""Compare the weights and the optimiser state of two run folders bit by bit.

    python tools/compare_weights.py RUN RUN

Tensors are matched by name.
Exits with 1 if a tensor is missing or differs.
"""

import sys
from pathlib import Path

import torch

from seqloom.runs.integrity import checkpoint_store, weights_store
from seqloom.runs.weights import read_tensors


def tensors(run: Path) -> dict[str, torch.Tensor]:
    """All tensors of the best weights and of the last checkpoint, by file and name."""
    found = {}
    for store in (weights_store(run), checkpoint_store(run)):
        folder = store.current()
        for path in sorted(folder.glob("*.safetensors")) if folder else ():
            for name, tensor in read_tensors(path).items():
                found[f"{store.folder.name}/{path.name}: {name}"] = tensor
    return found


def main() -> int:
    first, second = (tensors(Path(argument)) for argument in sys.argv[1:3])
    missing = sorted(first.keys() ^ second.keys())
    shared = sorted(first.keys() & second.keys())
    different = [name for name in shared if not torch.equal(first[name], second[name])]
    for name in missing:
        print(f"only in one run: {name}")
    for name in different:
        print(f"different: {name}")
    print(
        f"{len(shared) - len(different)} of {len(first.keys() | second.keys())} tensors are equal"
    )
    return 1 if missing or different else 0


if __name__ == "__main__":
    sys.exit(main())
