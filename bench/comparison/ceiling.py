"""The ceiling of the machine: only the matrix products of a training step.

Each matrix of the workload's model multiplies a full batch of positions in fp32, in the forward
product and the two products of backward. The tables show the speed of a training loop as a share
of this ceiling.
"""

import sys
from pathlib import Path

import torch

from bench.comparison.time_window import TimeWindow, TokenCounts
from bench.comparison.workload import Workload, weight_matrices


def main() -> None:
    window, workload = TimeWindow(), Workload.load(Path(sys.argv[1]))
    torch.manual_seed(workload.seed)
    rows = workload.batch_tokens
    shapes = [(matrix.inputs, matrix.outputs) for matrix in weight_matrices(workload)]
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
        # Source and target have the same number of positions: each matrix multiplies a full batch.
        window.add_batch(TokenCounts(rows, rows, rows, rows))
        for weight in weights:
            inputs, outputs = weight.shape
            torch.mm(states[inputs], weight, out=results[outputs])
            torch.mm(states[outputs], weight.T, out=results[inputs])
            torch.mm(states[inputs].T, states[outputs], out=gradients[(inputs, outputs)])
        window.finish_step()


if __name__ == "__main__":
    main()
