"""seqloom's own training loop, watched where it takes its batches."""

import sys
import tempfile
from pathlib import Path

import torch

import seqloom
from bench.peers.seqloom.recipe import config_for
from bench.prepare import data_section
from bench.window import Counts, Window
from bench.workload import Workload
from seqloom.core.batch import Batch
from seqloom.data.batching.stream import BatchStream
from seqloom.training.event_log import Event


def main() -> None:
    window, workload = Window(), Workload.load(Path(sys.argv[1]))
    watch(window)
    config = config_for(workload, data_section((workload.folder / "data.txt").read_text()))

    def announce(event: Event) -> None:
        if event.kind == "start":
            window.ready(
                version=seqloom.__version__,
                torch=torch.__version__,
                threads=torch.get_num_threads(),
                parameters=event.data["parameters"],
                loop="seqloom.train",
                batching="token budget, like lengths together",
                dropout="embedded target and the readout's input"
                if workload.recurrent
                else "embedded input, sublayers' outputs",
            )

    with tempfile.TemporaryDirectory() as folder:
        seqloom.train(config, Path(folder) / "run", report=announce)


def watch(window: Window) -> None:
    """A batch is taken when the step before it is done."""
    take = BatchStream.__next__

    def taken(stream: BatchStream) -> Batch:
        window.step()
        batch = take(stream)
        window.batch(counts(batch))
        return batch

    BatchStream.__next__ = taken  # type: ignore[method-assign]


def counts(batch: Batch) -> Counts:
    source, targets = batch.source, batch.targets
    assert source is not None
    return Counts(
        int(source.lengths.sum()),
        source.values.numel(),
        int(targets.lengths.sum()),
        targets.values.numel(),
    )


if __name__ == "__main__":
    main()
