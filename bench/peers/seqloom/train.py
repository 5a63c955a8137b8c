"""seqloom's training loop, with a hook in its batch stream."""

import sys
import tempfile
from pathlib import Path

import seqloom
from bench.comparison.prepare import data_section
from bench.comparison.time_window import TimeWindow, TokenCounts
from bench.comparison.workload import Workload
from bench.peers.seqloom.recipe import config_for
from seqloom.core.batch import Batch, Padded
from seqloom.data.batching.stream import BatchStream
from seqloom.training.event_log import Event


def main() -> None:
    window, workload = TimeWindow(), Workload.load(Path(sys.argv[1]))
    install_hook(window)
    config = config_for(workload, data_section((workload.folder / "data.txt").read_text()))

    def report(event: Event) -> None:
        # Imported after seqloom, as in the command `seqloom train`: importing seqloom sets an
        # environment variable that torch reads when it is loaded (`seqloom.core.allocator`).
        import torch

        if event.kind == "start":
            window.ready(
                version=seqloom.__version__,
                torch=torch.__version__,
                threads=torch.get_num_threads(),
                parameters=event.data["parameters"],
                loop="seqloom.train",
                batching="token budget, similar lengths together",
                dropout="embedded target and the readout's input"
                if workload.is_recurrent
                else "embedded input, sublayers' outputs",
            )

    with tempfile.TemporaryDirectory() as folder:
        seqloom.train(config, Path(folder) / "run", report=report)


def install_hook(window: TimeWindow) -> None:
    """Replace BatchStream.__next__: the loop requests a batch when the previous step is finished."""
    original_next = BatchStream.__next__

    def next_batch(stream: BatchStream) -> Batch:
        window.finish_step()
        batch = original_next(stream)
        window.add_batch(count_tokens(batch))
        return batch

    BatchStream.__next__ = next_batch  # type: ignore[method-assign,assignment]


def count_tokens(batch: Batch) -> TokenCounts:
    source, targets = batch.source, batch.targets
    assert isinstance(source, Padded)
    return TokenCounts(
        int(source.lengths.sum()),
        source.values.numel(),
        int(targets.lengths.sum()),
        targets.values.numel(),
    )


if __name__ == "__main__":
    main()
