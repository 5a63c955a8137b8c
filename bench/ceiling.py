"""The machine's ceiling: a training step's matrix products and nothing else.

Every matrix of the workload's model is met by a full batch of positions, forward and in the two
products of backward, in fp32. What a training loop reaches of that is its share of the ceiling.
"""

import sys
from pathlib import Path

import torch

from bench.window import Counts, Window
from bench.workload import Workload, matrices


def main() -> None:
    window, workload = Window(), Workload.load(Path(sys.argv[1]))
    torch.manual_seed(workload.seed)
    rows = workload.batch_tokens
    shapes = [(inputs, outputs) for _, inputs, outputs in matrices(workload)]
    weights = [torch.randn(inputs, outputs) for inputs, outputs in shapes]
    states = {width: torch.randn(rows, width) for shape in shapes for width in shape}
    results = {width: torch.empty(rows, width) for width in states}
    gradients = {shape: torch.empty(shape) for shape in shapes}
    window.ready(
        version="",
        torch=torch.__version__,
        threads=torch.get_num_threads(),
        parameters=sum(weight.numel() for weight in weights),
        loop="matrix products alone",
        batching="",
        dropout="",
    )
    while True:
        # As many positions on either side: each matrix is met by one full batch.
        window.batch(Counts(rows, rows, rows, rows))
        for weight in weights:
            inputs, outputs = weight.shape
            torch.mm(states[inputs], weight, out=results[outputs])
            torch.mm(states[outputs], weight.T, out=results[inputs])
            torch.mm(states[inputs].T, states[outputs], out=gradients[(inputs, outputs)])
        window.step()


if __name__ == "__main__":
    main()
