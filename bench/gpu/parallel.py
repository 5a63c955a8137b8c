"""What training through DDP and FSDP costs on one GPU, without communication.

Every way of training takes the same steps on the same packed batches of the bundled German-English
pairs. "single" is a process without a process group. "ddp" and "fsdp" have a process group of one
rank, so the figures contain the cost of the code but no time for communication. Captured steps are
CUDA graphs. With DDP they compute the gradient in one graph, sum all gradients in one operation, and
update the weights in a second graph.
"""

import argparse
import os
import socket
import statistics
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from bench.tables import markdown
from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.device import best_device
from seqloom.training import loop
from seqloom.training.distributed import World, join_world
from seqloom.training.session import Session
from seqloom.training.setup import open_session

COMMON = ("training.r_drop=0.0", "training.averaging={kind='none'}", "training.batching=packed")
WAYS: dict[str, tuple[str, ...]] = {
    "single captured": ("training.loop=captured",),
    "ddp captured": ("training.loop=captured",),
    "single plain": ("training.loop=plain",),
    "ddp plain": ("training.loop=plain",),
    "fsdp plain": ("training.loop=plain", "training.parallel=fsdp"),
    "fsdp plain, activation checkpointing": (
        "training.loop=plain",
        "training.parallel=fsdp",
        "training.activation_checkpointing=true",
    ),
}
"""Settings of each way of training. A way whose name starts with "single" has no process group."""
COMPARED = {
    "ddp captured": "single captured",
    "ddp plain": "single plain",
    "fsdp plain": "single plain",
    "fsdp plain, activation checkpointing": "single plain",
}
"""The way of training that each speed is compared with."""


def recipe(preset: str, changes: Sequence[str]) -> RunConfig:
    pairs = {"kind": "bundled", "source": "de", "target": "en"}
    tables: dict[str, Any] = {"preset": preset, "data": {"train": pairs, "dev": pairs}}
    return load_recipe(tables, [*COMMON, *changes]).config


def open_training(config: RunConfig, folder: Path, world: World) -> Session:
    session = open_session(config, folder, False, world, lambda event: None)
    session.event_log.close()
    session.captured_steps = loop.capture_steps(session)
    session.model.train()
    return session


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Timing(NamedTuple):
    """Seconds and target tokens of some steps, and the loss of the last one."""

    seconds: float
    tokens: int
    loss: float


def time_steps(session: Session, steps: int) -> Timing:
    """Take steps, starting with the first batch of the data."""
    session.stream.position = (0, 0)
    synchronise(session.world.device)
    start = time.perf_counter()
    results = [loop.take_step(session) for _ in range(steps)]
    synchronise(session.world.device)
    seconds = time.perf_counter() - start
    return Timing(seconds, sum(result.targets for result in results), float(results[-1].loss))


def measure_way(
    config: RunConfig, folder: Path, world: World, steps: int, rounds: int
) -> dict[str, Any]:
    """Take the steps once to warm up, then `rounds` times."""
    session = open_training(config, folder, world)
    try:
        warm_up = time_steps(session, steps)
        if world.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        seconds = [time_steps(session, steps).seconds for _ in range(rounds)]
    finally:
        session.stream.close()
    memory = torch.cuda.max_memory_allocated() / 2**30 if world.device.type == "cuda" else None
    return {
        "seconds": seconds,
        "milliseconds_per_step": 1000 * statistics.median(seconds) / steps,
        "target_tokens_per_second": warm_up.tokens / statistics.median(seconds),
        "loss_after_warm_up": warm_up.loss,
        "peak_memory_gib": memory,
        "precision": session.precision,
        "parameters": sum(parameter.numel() for parameter in session.model.parameters()),
    }


def set_single_rank() -> None:
    """Describe a job of one rank, as torchrun does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ |= {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": "1",
        "RANK": "0",
        "LOCAL_RANK": "0",
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--preset", default="base")


def measure(options: Namespace) -> Iterator[dict[str, Any]]:
    set_single_rank()
    ways: dict[str, Any] = {}
    settings = {name: getattr(options, name) for name in ("preset", "steps", "rounds")}
    with join_world(best_device(), 600) as world, tempfile.TemporaryDirectory() as folder:
        alone = World(0, 1, world.device)
        for number, (name, changes) in enumerate(WAYS.items()):
            config = recipe(options.preset, changes)
            ways[name] = measure_way(
                config,
                Path(folder) / str(number),
                alone if name.startswith("single") else world,
                options.steps,
                options.rounds,
            )
            print(name, ways[name], flush=True)
            yield {**settings, "ways": ways}
            if world.device.type == "cuda":
                torch.cuda.empty_cache()


def table(results: dict[str, Any]) -> str:
    ways = results["ways"]
    speeds = {name: way["target_tokens_per_second"] for name, way in ways.items()}
    rows = []
    for name, way in ways.items():
        other = COMPARED.get(name)
        relative = f"{speeds[name] / speeds[other]:.3f}" if other in speeds else ""
        memory = "" if way["peak_memory_gib"] is None else f"{way['peak_memory_gib']:.1f} GiB"
        rows.append([name, f"{speeds[name]:,.0f}", relative, other or "", memory])
    return markdown(["training", "target tokens/s", "relative speed", "to", "memory"], rows)
