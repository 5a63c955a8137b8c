"""Small configs of forecasting runs, and the series and tracks that they use."""

from pathlib import Path
from typing import Any

import numpy as np

from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.recipe import RunConfig


def write_series(folder: Path, rows: int = 240) -> None:
    """A random walk `level` and its increments `push`, which determine the level."""
    push = np.random.default_rng(5).normal(size=rows)
    level = 10 + np.cumsum(push)
    lines = ["time,level,push,unused"]
    lines += [f"{n},{a:.6f},{b:.6f},x" for n, (a, b) in enumerate(zip(level, push, strict=True))]
    (folder / "tide.csv").write_text("\n".join(lines) + "\n")


def write_tracks(folder: Path) -> None:
    """Two straight walks, one that is too short, and one without min_pedestrians at the end."""
    lines = []
    for frame in range(30):
        lines.append(f"{10 * frame}\t1\t{0.5 * frame:.3f}\t1.0")
        lines.append(f"{10 * frame}\t2\t{8 - 0.3 * frame:.3f}\t{0.2 * frame:.3f}")
        if frame < 3:
            lines.append(f"{10 * frame}\t3\t0\t0")
    for frame in range(100, 112):
        lines.append(f"{10 * frame}\t4\t{frame:.3f}\t0")
    (folder / "walk.txt").write_text("\n".join(lines) + "\n")


def series(**settings: Any) -> dict[str, Any]:
    """The config of the series that `write_series` writes."""
    return {
        "kind": "series",
        "path": "tide.csv",
        "columns": "level",
        "context": "push",
        **settings,
    }


TRACKS = {"kind": "tracks", "recordings": "walk.txt"}
"""The config of the tracks that `write_tracks` writes."""


def forecast_config(
    folder: Path, *settings: str, corpus: dict[str, Any] | None = None
) -> RunConfig:
    """Six observed rows, four predicted rows, and a GRU of width 16.

    corpus: data of every split. Default: consecutive rows of the series
    """
    splits = (
        dict.fromkeys(("train", "dev", "test"), corpus)
        if corpus
        else {
            "train": series(rows=[0, 180]),
            "dev": series(rows=[180, 210]),
            "test": series(rows=[210, 240]),
        }
    )
    tables = {
        "task": {"kind": "forecast", "observe": 6, "predict": 4, "representation": "relative"},
        "data": {"folder": str(folder), **splits},
        "model": {
            "encoder": {"kind": "recurrent", "width": 16, "direction": "forward"},
            "decoder": {
                "kind": "recurrent",
                "width": 16,
                "initial_state": "copy",
                "attention": {"kind": "none"},
            },
        },
        "training": {
            "steps": 150,
            "batch_tokens": 600,
            "evaluate_every": 50,
            "checkpoint_every": 150,
            "optimizer": {"learning_rate": 1e-2},
            "schedule": {"kind": "cosine", "warmup": 10},
        },
    }
    return load_recipe(tables, list(settings)).config
