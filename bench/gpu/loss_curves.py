"""Loss curves of fused and of compiled layers on a GPU.

Trains Transformer-base on Multi30k de→en several times: with fused kernels and a bf16 stream between the
layers, and with layers that torch compiles, whose stream is in fp32. Everything else is equal. The
curves should differ no more than those of different seeds.
"""

import argparse
import json
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.gpu.training import BASE, LARGE
from bench.tables import format_spread, markdown
from seqloom.config.loading.loader import load_recipe
from seqloom.runs.recipe import read_events
from seqloom.training.loop import train

KINDS = {"fused": "training.compile=false", "compiled": "training.compile=true"}
NAMES = {"fused": "fused kernels", "compiled": "compiled"}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder with the folder multi30k")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])


def measure(options: Namespace) -> Iterator[dict[str, Any]]:
    runs: dict[str, dict[str, Any]] = {}
    for kind in KINDS:
        # One process per seed: they share the GPU.
        with ProcessPoolExecutor(len(options.seeds), mp_context=get_context("spawn")) as pool:
            futures = {
                str(seed): pool.submit(
                    loss_curve, options.data / "multi30k", kind, seed, options.steps
                )
                for seed in options.seeds
            }
            runs[kind] = {seed: future.result() for seed, future in futures.items()}
        print(kind, {seed: run["dev_loss"] for seed, run in runs[kind].items()}, flush=True)
    yield {"runs": json.loads(json.dumps(runs))}


def loss_curve(multi30k: Path, kind: str, seed: int, steps: int) -> dict[str, Any]:
    """Train once. Returns the mean training loss of every 20 steps and the final dev loss."""
    settings = [
        f"data.folder={multi30k}",
        *(*BASE, LARGE, KINDS[kind], f"training.seed={seed}", f"training.steps={steps}"),
        *(f"training.evaluate_every={steps}", f"training.checkpoint_every={steps}"),
        *("training.r_drop=0.0", "training.averaging={kind='none'}", "decoding={kind='greedy'}"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        train(load_recipe("multi30k-de-en", settings).config, run)
        events = read_events(run)
    losses = {event["step"]: event["loss"] for event in events if event["event"] == "step"}
    (dev,) = (event["loss"] for event in events if event["event"] == "evaluate")
    return {"losses": losses, "dev_loss": dev}


def table(results: dict[str, Any]) -> str:
    runs = results["runs"]
    steps = list(next(iter(runs["fused"].values()))["losses"])
    shown = [steps[round(share * (len(steps) - 1))] for share in (0, 0.25, 0.5, 0.75, 1)]
    rows = []
    for kind, by_seed in runs.items():
        losses = [[run["losses"][step] for run in by_seed.values()] for step in shown]
        losses.append([run["dev_loss"] for run in by_seed.values()])
        rows.append([NAMES[kind], *(format_spread(values, 3) for values in losses)])
    return markdown(["layers", *(f"step {step}" for step in shown), "dev"], rows)
