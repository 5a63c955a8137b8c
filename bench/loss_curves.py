"""Compare the loss curves of fused and of compiled layers on a GPU.

    python -m bench.loss_curves OUT.json --multi30k FOLDER [--steps 400] [--seeds 1 2 3]

Trains Transformer-base on Multi30k de→en several times: with fused kernels and a bf16 stream between the
layers, and with layers that torch compiles, whose stream is in fp32. Everything else is equal. The
curves should differ no more than those of different seeds.
"""

import argparse
import json
import platform
import statistics
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from bench.train_gpu import BASE, LARGE
from seqloom.config.loading.loader import load_recipe
from seqloom.runs.recipe import read_events
from seqloom.training.loop import train

KINDS = {"fused": "training.compile=false", "compiled": "training.compile=true"}


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


def mean_and_deviation(values: list[float]) -> str:
    return f"{statistics.mean(values):.3f} ± {statistics.stdev(values):.3f}"


TEXT = """One {machine}, torch {torch}, Python {python}. Transformer-base on Multi30k de→en with batches of 25,600 tokens and
dropout 0.1, mean ± standard deviation of the seeds {seeds}. Training loss (with label smoothing, mean of 20 steps) and
dev loss after the last step. Written by `python -m bench.loss_curves docs/results/benchmarks/loss-curves.json
--multi30k FOLDER`.

| layers | {columns} | dev |
|---|{lines}---|
{rows}
"""


def table(results: dict[str, Any]) -> str:
    """The section of docs/benchmarks.md."""
    runs = results["runs"]
    seeds = list(next(iter(runs.values())))
    steps = list(runs["fused"][seeds[0]]["losses"])
    shown = [steps[round(share * (len(steps) - 1))] for share in (0, 0.25, 0.5, 0.75, 1)]
    names = {"fused": "fused kernels", "compiled": "compiled"}
    rows = [
        " | ".join(
            (
                f"| {names[kind]}",
                *(
                    mean_and_deviation([run["losses"][step] for run in by_seed.values()])
                    for step in shown
                ),
                mean_and_deviation([run["dev_loss"] for run in by_seed.values()]) + " |",
            )
        )
        for kind, by_seed in runs.items()
    ]
    return TEXT.format(
        **{name: results[name] for name in ("machine", "torch", "python")},
        seeds=", ".join(seeds),
        columns=" | ".join(f"step {step}" for step in shown),
        lines="---|" * len(shown),
        rows="\n".join(rows),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--multi30k", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options = parser.parse_args()
    runs: dict[str, dict[str, Any]] = {}
    for kind in KINDS:
        # One process per seed: they share the GPU.
        with ProcessPoolExecutor(len(options.seeds), mp_context=get_context("spawn")) as pool:
            futures = {
                str(seed): pool.submit(loss_curve, options.multi30k, kind, seed, options.steps)
                for seed in options.seeds
            }
            runs[kind] = {seed: future.result() for seed, future in futures.items()}
        print(kind, {seed: run["dev_loss"] for seed, run in runs[kind].items()}, flush=True)
    results = {
        "machine": torch.cuda.get_device_name()
        if torch.cuda.is_available()
        else platform.machine(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "runs": runs,
    }
    # Read back, so that the keys are strings.
    options.out.write_text(json.dumps(results, indent=1) + "\n")
    print(table(json.loads(options.out.read_text())))


if __name__ == "__main__":
    main()
