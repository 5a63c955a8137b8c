"""Train once and print memory and times of each phase as a JSON object.

python -m bench.scaling.worker pairs.tsv run-folder steps
"""

import json
import sys
import threading
import time
import tomllib
from pathlib import Path
from typing import Any

from bench.study import RECIPES


def memory_usage() -> dict[str, int]:
    """Bytes in RAM: all (resident), and those without a file behind them (anonymous)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    names = {"resident": "VmRSS", "anonymous": "RssAnon"}
    return {name: int(fields[field].split()[0]) * 1024 for name, field in names.items()}


class PhaseMonitor:
    """The end time and the peak memory of each phase."""

    def __init__(self) -> None:
        self.phase = "importing"
        self.peaks: dict[str, dict[str, int]] = {}
        self.ends: dict[str, dict[str, float]] = {}
        self._start = time.monotonic()
        threading.Thread(target=self._sample, daemon=True).start()

    def _sample(self) -> None:
        while True:
            self._update_peaks()
            time.sleep(0.05)

    def _update_peaks(self) -> None:
        usage, peak = memory_usage(), self.peaks.setdefault(self.phase, {})
        for name, value in usage.items():
            peak[name] = max(peak.get(name, 0), value)

    def enter(self, phase: str) -> None:
        """End the current phase and start the next one."""
        self._update_peaks()
        self.ends[self.phase] = {
            "seconds": time.monotonic() - self._start,
            "processor": time.process_time(),
        }
        self.phase = phase


def main() -> None:
    data, folder, steps = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    monitor = PhaseMonitor()
    import torch

    from seqloom.config.schema.recipe import RunConfig
    from seqloom.data.corpus.vocabularies import train_tokenizers
    from seqloom.training import loop

    torch.set_num_threads(1)
    files = {
        "train": {"kind": "tsv", "path": str(data)},
        "dev": {"kind": "tsv", "path": str(data.with_suffix(".dev"))},
    }
    tables = tomllib.loads((RECIPES / "scaling.toml").read_text(encoding="utf-8"))
    counts = dict.fromkeys(("steps", "evaluate_every", "checkpoint_every"), steps)
    tables |= {"data": files, "training": {**tables["training"], **counts}}
    config = RunConfig.model_validate(tables)
    monitor.enter("vocabulary")
    train_tokenizers(config)
    monitor.enter("opening")
    original_step = loop.take_step
    finished: list[int] = []

    def monitored_step(session: Any) -> Any:
        result = original_step(session)
        finished.append(session.step)
        if len(finished) == 1:
            monitor.enter("warming up")
        elif len(finished) == steps // 4:
            monitor.enter("training")
        elif len(finished) == steps:
            monitor.enter("closing")
        return result

    loop.take_step = monitored_step
    loop.train(config, folder)
    print(json.dumps({"steps": steps, "peaks": monitor.peaks, "ends": monitor.ends}))


if __name__ == "__main__":
    main()
