"""How fast seqloom trains on a GPU, over a whole first epoch of real batches.

    python -m bench.train_gpu OUT.json --multi30k FOLDER [--only NAME …]

Every setting runs the product's own loop on Multi30k de→en: planning, packing, copying and all.
Recording (and compiling, where it is on) happens at the first sight of a shape and is stated
apart. `check-…` takes fifty steps in fp32 both ways and compares the losses.
"""

import argparse
import json
import platform
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.peer_gpu import Settings, Shape, time_huggingface_loop
from seqloom.config.loading.loader import load_recipe
from seqloom.core.batch import Batch
from seqloom.data.corpus.corpus import Corpus
from seqloom.runs.device import best_device
from seqloom.training import loop
from seqloom.training.distributed import World
from seqloom.training.session import Session
from seqloom.training.setup import open_session

SIDES = ("encoder", "decoder")
COMMON = ("training.r_drop=0.0", "training.averaging={kind='none'}", "training.compile=false")
"""Nothing that the recipe does for quality: what is left is the work every peer does too."""
BASE = (
    "text.tokenizer.size=10000",
    *(
        f"model.{side}.{change}"
        for side in SIDES
        for change in ("width=512", "layers=6", "feedforward=2048", "attention.heads=8")
    ),
    *(f"model.{side}.dropout=0.1" for side in SIDES),
)
RECURRENT = (
    "text.tokenizer.size=10000",
    "model.tie=none",
    "model.encoder={kind='recurrent', cell='gru', width=512, direction='both', dropout=0.1}",
    "model.decoder={kind='recurrent', cell='gru', width=512, dropout=0.1, readout='tanh', "
    "attention={projection='linear'}, context=['input', 'readout']}",
)
STILL = tuple(f"model.{side}.dropout=0.0" for side in SIDES)
LARGE, SMALL = "training.batch_tokens=25600", "training.batch_tokens=4096"
COMPILED, PLAIN = "training.compile=true", "training.loop=plain"
SETTINGS: dict[str, tuple[str, ...]] = {
    "transformer-25k": (*BASE, LARGE, COMPILED),
    "transformer-4k": (*BASE, SMALL, COMPILED),
    "transformer-25k-uncompiled": (*BASE, LARGE),
    "transformer-4k-uncompiled": (*BASE, SMALL),
    "transformer-4k-plain": (*BASE, SMALL, PLAIN),
    "recurrent-4k": (*RECURRENT, SMALL, COMPILED),
    "recurrent-4k-uncompiled": (*RECURRENT, SMALL),
    "recurrent-4k-plain": (*RECURRENT, SMALL, PLAIN),
}
CHECKS: dict[str, tuple[str, ...]] = {
    "check-transformer": (*BASE, *STILL),
    "check-transformer-compiled": (*BASE, *STILL, "training.compile=true"),
    "check-recurrent": (*RECURRENT, *STILL),
    "check-recurrent-compiled": (*RECURRENT, *STILL, "training.compile=true"),
}


def open_at(folder: Path, multi30k: Path, changes: tuple[str, ...]) -> Session:
    settings = [f"data.folder={multi30k}", *COMMON, *changes]
    config = load_recipe("multi30k-de-en", settings).config
    world = World(0, 1, best_device())
    session = open_session(config, folder, False, world, lambda event: None)
    session.captured_steps = loop.capture_steps(session)
    session.model.train()
    return session


def tokens(batch: Batch) -> tuple[int, int, int, int]:
    """Real and all positions, of source and target."""
    assert batch.source is not None
    return (
        int(batch.source.lengths.sum()),
        batch.source.values.numel(),
        batch.num_targets,
        batch.targets.values.numel(),
    )


def epoch(session: Session, batches: int) -> float:
    """Seconds for so many steps of the product's own loop."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(batches):
        loop.take_step(session)
    torch.cuda.synchronize()
    return time.perf_counter() - began


def measure(folder: Path, multi30k: Path, changes: tuple[str, ...]) -> dict[str, Any]:
    """The first epoch with recording taken off, and the second."""
    session = open_at(folder, multi30k, changes)
    stream = session.stream
    plan = [stream.layout.gather(stream.corpus, each) for each in stream._plan(0).batches]
    counts = [sum(column) for column in zip(*map(tokens, plan), strict=True)]
    torch.cuda.reset_peak_memory_stats()
    first = epoch(session, len(plan))
    recording = session.captured_steps.seconds if session.captured_steps else 0.0
    second = epoch(session, len(plan))
    return {
        "steps": len(plan),
        "target_tokens": counts[2],
        "padding": {"source": 1 - counts[0] / counts[1], "target": 1 - counts[2] / counts[3]},
        "shapes": len({batch.targets.values.shape for batch in plan}),
        "recording_seconds": recording,
        "first_epoch_seconds": first - recording,
        "target_tokens_per_second": counts[2] / (first - recording),
        "second_epoch_target_tokens_per_second": counts[2] / second,
        "peak_memory_gib": torch.cuda.max_memory_allocated() / 2**30,
        "parameters": sum(p.numel() for p in session.model.parameters()),
        "settings": list(changes),
    }


def check(folder: Path, multi30k: Path, changes: tuple[str, ...]) -> dict[str, Any]:
    """The largest difference between fifty losses, taken plainly and recorded, in fp32."""
    precise = (*changes, "training.precision=fp32")
    batching = "packed" if "model.tie=none" not in changes else "bucketed"
    losses: dict[str, list[float]] = {}
    for kind in ("plain", "recorded"):
        session = open_at(
            folder / kind,
            multi30k,
            (*precise, f"training.loop={kind}", f"training.batching={batching}"),
        )
        losses[kind] = [float(loop.take_step(session).loss) for _ in range(50)]
    worst = max(abs(a - b) for a, b in zip(*losses.values(), strict=True))
    return {"largest_difference": worst, "first": losses["plain"][0], "last": losses["plain"][-1]}


def full_batches(corpus: Corpus, budget: int) -> list[Shape]:
    """The shapes of an epoch's batches, sentences in the order of their lengths."""
    assert corpus.source_lengths is not None
    order = np.lexsort((corpus.source_lengths, corpus.target_lengths))
    pairs = zip(corpus.source_lengths[order], corpus.target_lengths[order], strict=True)
    shapes: list[Shape] = []
    rows = source = target = 0
    for s, t in pairs:
        wider = max(source, int(s) + 1), max(target, int(t) + 1)
        if rows and (rows + 1) * max(wider) > budget:
            shapes.append(Shape(rows, source, target))
            rows, wider = 0, (int(s) + 1, int(t) + 1)
        rows, (source, target) = rows + 1, wider
    return [*shapes, Shape(rows, source, target)]


def peer(multi30k: Path, folder: Path, budget: str, cudnn: bool | None) -> dict[str, Any]:
    """A plain loop around Hugging Face's Marian of the same size, over batches as people make them:
    sorted by length, as many rows as the budget allows, and every position counted as real."""
    session = open_at(folder, multi30k, (*BASE, budget, PLAIN))
    shapes = full_batches(session.stream.corpus, int(budget.split("=")[1]))
    passes = time_huggingface_loop(shapes, settings=Settings(passes=3, cudnn_attention=cudnn))
    return {
        "cudnn_attention": "as torch chooses" if cudnn is None else cudnn,
        "target_tokens_per_second": passes[0].tokens_per_second,
        "second_epoch_target_tokens_per_second": passes[1].tokens_per_second,
        "third_epoch_target_tokens_per_second": passes[2].tokens_per_second,
        "steps": len(shapes),
    }


LABELS = {
    "transformer-25k": ("Transformer-base, 25,600-token batches", "recorded and compiled"),
    "transformer-25k-uncompiled": ("Transformer-base, 25,600-token batches", "recorded"),
    "marian-25k": ("Transformer-base, 25,600-token batches", "Hugging Face Marian, plain loop"),
    "marian-25k-without-cudnn": (
        "Transformer-base, 25,600-token batches",
        "Hugging Face Marian, plain loop, without cuDNN's attention",
    ),
    "transformer-4k": ("Transformer-base, 4,096-token batches", "recorded and compiled"),
    "transformer-4k-uncompiled": ("Transformer-base, 4,096-token batches", "recorded"),
    "transformer-4k-plain": ("Transformer-base, 4,096-token batches", "plain loop"),
    "marian-4k-without-cudnn": (
        "Transformer-base, 4,096-token batches",
        "Hugging Face Marian, plain loop, without cuDNN's attention",
    ),
    "recurrent-4k": ("GRU with attention and input feeding, 4,096", "recorded and compiled"),
    "recurrent-4k-uncompiled": ("GRU with attention and input feeding, 4,096", "recorded"),
    "recurrent-4k-plain": ("GRU with attention and input feeding, 4,096", "plain loop"),
}
TEXT = """One {machine}, torch {torch}, Python {python}; Multi30k de→en, 10,000 joint BPE pieces, bf16 with
fp32 weights, a whole epoch of real batches with planning, packing and copying: target tokens a
second, padding not counted. Recording (and compiling) happens once, at the first sight of a shape,
and is stated apart. Transformer-base is 6+6 layers of 512, the GRU 512 wide; dropout 0.1 on
embeddings and on what a sublayer or state hands on. `python -m bench.train_gpu
docs/results/benchmarks/training-gpu.json --multi30k FOLDER`

| model | loop | first epoch | second | recording | padding source / target | memory |
|---|---|---|---|---|---|---|
{rows}

Recorded and plain steps in fp32 without dropout, the largest difference of fifty losses: {checks}.
"""


def row(label: tuple[str, str], one: dict[str, Any]) -> str:
    model, kind = label
    if "failed" in one:
        return f"| {model} | {kind} | failed: {one['failed'][-1]} | | | | |"
    padding = memory = recording = ""
    if "padding" in one:
        padding = " / ".join(f"{100 * share:.0f} %" for share in one["padding"].values())
        memory = f"{one['peak_memory_gib']:.1f} GiB"
        recording = f"{one['recording_seconds']:.1f} s" if one["recording_seconds"] else ""
    first = f"{one['target_tokens_per_second']:,.0f}"
    second = f"{one['second_epoch_target_tokens_per_second']:,.0f}"
    return f"| {model} | {kind} | {first} | {second} | {recording} | {padding} | {memory} |"


def table(results: dict[str, Any]) -> str:
    """The section of docs/benchmarks.md."""
    rows = [row(label, results[name]) for name, label in LABELS.items() if name in results]
    checks = ", ".join(
        f"{name.removeprefix('check-')} {results[name]['largest_difference']:.1g}"
        for name in CHECKS
        if "largest_difference" in results.get(name, {})
    )
    return TEXT.format(rows="\n".join(rows), checks=checks, **results)


PEERS = {
    "marian-25k": (LARGE, None),
    "marian-25k-without-cudnn": (LARGE, False),
    "marian-4k-without-cudnn": (SMALL, False),
}


def work_of(name: str, folder: Path, multi30k: Path) -> dict[str, Any]:
    if name in PEERS:
        return peer(multi30k, folder, *PEERS[name])
    if name in CHECKS:
        return check(folder, multi30k, CHECKS[name])
    return measure(folder, multi30k, SETTINGS[name])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--multi30k", type=Path, required=True)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(2)
    results: dict[str, Any] = {
        "machine": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    chosen = options.only or [*CHECKS, *SETTINGS, *PEERS]
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            try:
                results[name] = work_of(name, Path(folder) / "run", options.multi30k)
            except Exception:
                results[name] = {"failed": traceback.format_exc().splitlines()[-12:]}
        print(name, json.dumps(results[name], indent=None), flush=True)
        torch.compiler.reset()
        torch.cuda.empty_cache()
        options.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
