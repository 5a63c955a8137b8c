"""One training in a process of its own, watched from inside. Prints a JSON object.

python -m bench.growth.worker pairs.tsv run-folder steps
"""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

PART = {"kind": "transformer", "width": 32, "layers": 1, "feedforward": 64}
RECIPE: dict[str, Any] = {
    "text": {"tokenizer": {"kind": "subwords", "size": 8_000}, "shared": True},
    "model": {"encoder": PART, "decoder": PART, "tie": "all"},
}


def memory() -> dict[str, int]:
    """Bytes in RAM: all, and those that no file stands behind."""
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    names = {"resident": "VmRSS", "anonymous": "RssAnon"}
    return {name: int(fields[field].split()[0]) * 1024 for name, field in names.items()}


class Watch:
    """When which phase ended, and the most memory there was in it."""

    def __init__(self) -> None:
        self.phase = "importing"
        self.peaks: dict[str, dict[str, int]] = {}
        self.ends: dict[str, dict[str, float]] = {}
        self._began = time.monotonic()
        threading.Thread(target=self._sample, daemon=True).start()

    def _sample(self) -> None:
        while True:
            self._look()
            time.sleep(0.05)

    def _look(self) -> None:
        now, peak = memory(), self.peaks.setdefault(self.phase, {})
        for name, value in now.items():
            peak[name] = max(peak.get(name, 0), value)

    def enter(self, phase: str) -> None:
        self._look()
        self.ends[self.phase] = {
            "seconds": time.monotonic() - self._began,
            "processor": time.process_time(),
        }
        self.phase = phase


def main() -> None:
    data, folder, steps = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    watch = Watch()
    import torch

    from seqloom.config.schema.recipe import RunConfig
    from seqloom.data.corpus.vocabularies import train_tokenizers
    from seqloom.training import loop

    torch.set_num_threads(1)
    files = {
        "train": {"kind": "tsv", "path": str(data)},
        "dev": {"kind": "tsv", "path": str(data.with_suffix(".dev"))},
    }
    every = {"evaluate_every": steps, "evaluate_examples": 1, "checkpoint_every": steps}
    training = {"steps": steps, "batch_tokens": 2_048, "precision": "fp32", **every}
    config = RunConfig.model_validate({**RECIPE, "data": files, "training": training})
    watch.enter("vocabulary")
    train_tokenizers(config)
    watch.enter("opening")
    take_step = loop.take_step
    taken: list[int] = []

    def watched(session: Any) -> Any:
        result = take_step(session)
        taken.append(session.step)
        if len(taken) == 1:
            watch.enter("warming up")
        elif len(taken) == steps // 4:
            watch.enter("training")
        elif len(taken) == steps:
            watch.enter("closing")
        return result

    loop.take_step = watched
    loop.train(config, folder)
    print(json.dumps({"steps": steps, "peaks": watch.peaks, "ends": watch.ends}))


if __name__ == "__main__":
    main()
