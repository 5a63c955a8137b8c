"""One training in a process of its own, watched from inside. Prints a JSON object.

python -m bench.growth.worker pairs.tsv run-folder steps
"""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any


def memory() -> dict[str, int]:
    """Bytes in RAM: all, and those that no file stands behind."""
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    names = {"resident": "VmRSS", "anonymous": "RssAnon"}
    return {name: int(fields[field].split()[0]) * 1024 for name, field in names.items()}


PART = {"kind": "transformer", "width": 32, "layers": 1, "feedforward": 64}
RECIPE: dict[str, Any] = {
    "text": {"tokenizer": {"kind": "subwords", "size": 8_000}, "shared": True},
    "model": {"encoder": PART, "decoder": PART, "tie": "all"},
}


class Watch:
    """When what happened, and the most memory there was until then."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.happened: dict[str, float] = {}
        self.peaks: dict[str, dict[str, int]] = {}
        self.phase = "tokenising"
        self.steps: list[float] = []
        threading.Thread(target=self._sample, daemon=True).start()

    def _sample(self) -> None:
        while True:
            now, peak = memory(), self.peaks.setdefault(self.phase, {})
            for name, value in now.items():
                peak[name] = max(peak.get(name, 0), value)
            time.sleep(0.02)

    def hear(self, event: Any) -> None:
        now = time.monotonic() - self.began
        self.happened.setdefault(event.kind, now)
        if event.kind == "start":
            self.phase = "training"
        if event.kind == "step":
            self.steps.append(now)


def main() -> None:
    data, folder, steps = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    watch = Watch()
    import torch

    from seqloom.config.run import RunConfig
    from seqloom.training import loop

    torch.set_num_threads(1)
    config = RunConfig.model_validate(
        RECIPE
        | {
            "data": {
                "train": {"kind": "tsv", "path": str(data)},
                "dev": {"kind": "tsv", "path": str(data.with_suffix(".dev"))},
            },
            "training": {
                "steps": steps,
                "batch_tokens": 2_048,
                "evaluate_every": steps,
                "evaluate_examples": 1,
            },
        }
    )
    before = memory()
    take_step = loop._take_step
    ends: list[float] = []

    def timed(session: Any) -> Any:
        result = take_step(session)
        ends.append(time.monotonic() - watch.began)
        return result

    loop._take_step = timed
    loop.train(config, folder, report=watch.hear)
    later = ends[len(ends) // 4 :]
    print(
        json.dumps(
            {
                "imported": before,
                "to_start": watch.happened["start"],
                "to_first_step": ends[0],
                "steps_per_second": (len(later) - 1) / (later[-1] - later[0]),
                "peaks": watch.peaks,
            }
        )
    )


if __name__ == "__main__":
    main()
