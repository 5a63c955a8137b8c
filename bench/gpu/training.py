"""Training speed on a GPU over complete epochs.

Every setting runs the training loop of seqloom on Multi30k de→en, including planning, packing and
copying of batches. Each new batch shape is captured (and compiled, if enabled) once; this time is
reported separately. `check-…` compares the losses of fifty captured and fifty plain steps in fp32.
`progress-line` runs the command `seqloom train` and reads the speed that it reports.
With `--only`, the other results are kept.
"""

import argparse
import datetime
import json
import statistics
import subprocess
import sys
import tempfile
import tomllib
import traceback
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch

from bench.gpu.marian import BatchShape, time_training
from bench.study import RECIPES
from bench.tables import markdown
from seqloom.config.loading.loader import load_recipe
from seqloom.core.batch import Batch, Padded
from seqloom.core.device import best_device
from seqloom.data.corpus.corpus import Corpus
from seqloom.runs.recipe import read_events
from seqloom.training import loop
from seqloom.training.distributed import World
from seqloom.training.progress import LOG_EVERY
from seqloom.training.session import Session
from seqloom.training.setup import open_session

DECLARED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
SETTINGS: dict[str, dict[str, Any]] = DECLARED["settings"]
CHECKS: dict[str, dict[str, Any]] = DECLARED["checks"]
MODELS: dict[str, list[str]] = DECLARED["models"]
PLAIN, CAPTURED = "training.loop=plain", "training.loop=captured"
COMMAND_STEPS, FIRST_COUNTED = 800, 100


def open_training(folder: Path, multi30k: Path, changes: Sequence[str]) -> Session:
    settings = [f"data.folder={multi30k}", *DECLARED["common"], *changes]
    config = load_recipe("multi30k-de-en", settings).config
    world = World(0, 1, best_device())
    session = open_session(config, folder, False, world, lambda event: None)
    session.captured_steps = loop.capture_steps(session)
    session.model.train()
    return session


class BatchCounts(NamedTuple):
    """Real tokens and all positions of a batch."""

    source_tokens: int
    source_positions: int
    target_tokens: int
    target_positions: int


def count_tokens(batch: Batch) -> BatchCounts:
    assert isinstance(batch.source, Padded)
    return BatchCounts(
        int(batch.source.lengths.sum()),
        batch.source.values.numel(),
        batch.num_targets,
        batch.targets.values.numel(),
    )


def time_steps(session: Session, steps: int) -> float:
    """Seconds for so many steps of the training loop."""
    torch.cuda.synchronize()
    start = perf_counter()
    for _ in range(steps):
        loop.take_step(session)
    torch.cuda.synchronize()
    return perf_counter() - start


def measure_epochs(folder: Path, multi30k: Path, changes: Sequence[str]) -> dict[str, Any]:
    """Time the first epoch, without the time of capturing, and the second."""
    session = open_training(folder, multi30k, changes)
    stream = session.stream
    batches = [stream.layout.gather(stream.corpus, rows) for rows in stream._plan(0).batches]
    counts = BatchCounts(*map(sum, zip(*map(count_tokens, batches), strict=True)))
    torch.cuda.reset_peak_memory_stats()
    first = time_steps(session, len(batches))
    capturing = session.captured_steps.seconds if session.captured_steps else 0.0
    second = time_steps(session, len(batches))
    return {
        "steps": len(batches),
        "target_tokens": counts.target_tokens,
        "padding": {
            "source": 1 - counts.source_tokens / counts.source_positions,
            "target": 1 - counts.target_tokens / counts.target_positions,
        },
        "shapes": len({batch.targets.values.shape for batch in batches}),
        "recording_seconds": capturing,
        "first_epoch_seconds": first - capturing,
        "target_tokens_per_second": counts.target_tokens / (first - capturing),
        "second_epoch_target_tokens_per_second": counts.target_tokens / second,
        "peak_memory_gib": torch.cuda.max_memory_allocated() / 2**30,
        "parameters": sum(parameter.numel() for parameter in session.model.parameters()),
        "settings": list(changes),
    }


def check(folder: Path, multi30k: Path, changes: Sequence[str]) -> dict[str, Any]:
    """The largest difference between the losses of fifty plain and fifty captured steps in fp32."""
    in_fp32 = (*changes, "training.precision=fp32")
    batching = "packed" if "model.tie=none" not in changes else "bucketed"

    def take_steps(name: str, loop_setting: str) -> list[float]:
        settings = (*in_fp32, loop_setting, f"training.batching={batching}")
        session = open_training(folder / name, multi30k, settings)
        return [float(loop.take_step(session).loss) for _ in range(50)]

    plain, captured = take_steps("plain", PLAIN), take_steps("captured", CAPTURED)
    differences = [abs(first - second) for first, second in zip(plain, captured, strict=True)]
    return {"largest_difference": max(differences), "first": plain[0], "last": plain[-1]}


def full_batches(corpus: Corpus, budget: int) -> list[BatchShape]:
    """The shapes of the batches of an epoch, with sentences sorted by length."""
    assert corpus.source_lengths is not None
    order = np.lexsort((corpus.source_lengths, corpus.target_lengths))
    pairs = zip(corpus.source_lengths[order], corpus.target_lengths[order], strict=True)
    shapes: list[BatchShape] = []
    rows = source = target = 0
    for source_length, target_length in pairs:
        lengths = int(source_length) + 1, int(target_length) + 1  # with END
        padded = max(source, lengths[0]), max(target, lengths[1])
        if rows and (rows + 1) * max(padded) > budget:
            shapes.append(BatchShape(rows, source, target))
            rows, padded = 0, lengths
        rows, (source, target) = rows + 1, padded
    return [*shapes, BatchShape(rows, source, target)]


def measure_marian(multi30k: Path, folder: Path, budget: int, cudnn: bool | None) -> dict[str, Any]:
    """Time a plain loop with Hugging Face Marian of the same size.

    Batches are sorted by length and have as many rows as the budget allows. Every position counts
    as a real token.
    """
    session = open_training(
        folder, multi30k, [*MODELS["base"], f"training.batch_tokens={budget}", PLAIN]
    )
    corpus = session.stream.corpus
    assert isinstance(corpus, Corpus)
    shapes = full_batches(corpus, budget)
    first, second, third = time_training(shapes, cudnn_attention=cudnn)
    return {
        "cudnn_attention": "as torch chooses" if cudnn is None else cudnn,
        "target_tokens_per_second": first,
        "second_epoch_target_tokens_per_second": second,
        "third_epoch_target_tokens_per_second": third,
        "steps": len(shapes),
    }


def measure_command(multi30k: Path, folder: Path) -> dict[str, Any]:
    """Run `seqloom train` with preset base. Read the speed from its progress events."""
    recipe = RECIPES / "training-gpu.toml"
    settings = [f"data.folder={multi30k.resolve()}"]
    settings += [
        f"training.{name}={COMMAND_STEPS}"
        for name in ("steps", "evaluate_every", "checkpoint_every")
    ]
    command = [sys.executable, "-m", "seqloom", "train", str(recipe), "--run", str(folder)]
    subprocess.run([*command, *(f"--set={setting}" for setting in settings)], check=True)
    return progress_speed(read_events(folder))


def progress_speed(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The speed that a run reported after its first steps, in target tokens per second.

    Each event has the speed of the same number of steps, so the mean speed is a harmonic mean. The
    last event is not counted: the other events are reported up to 8 steps late, the last one at once, so
    that its interval is too short and its speed too high.
    """
    speeds = [
        event["tokens_per_second"]
        for event in events
        if event["event"] == "step" and FIRST_COUNTED < event["step"] < COMMAND_STEPS
    ]
    return {
        "mean": statistics.harmonic_mean(speeds),
        "lowest": min(speeds),
        "highest": max(speeds),
        "steps": COMMAND_STEPS,
    }


HEAD = "model;loop;first epoch;later;capturing;padding source / target;memory;measured"


def format_row(name: str, result: dict[str, Any]) -> list[str]:
    label = [SETTINGS[name][key] for key in ("model", "loop")]
    if "failed" in result:
        return [*label, f"failed: {result['failed'][-1]}", "", "", "", "", ""]
    padding = memory = capturing = ""
    if "padding" in result:
        padding = " / ".join(f"{100 * share:.0f} %" for share in result["padding"].values())
        memory = f"{result['peak_memory_gib']:.1f} GiB"
        capturing = f"{result['recording_seconds']:.1f} s" if result["recording_seconds"] else ""
    first = f"{result['target_tokens_per_second']:,.0f}"
    names = ("second_epoch_target_tokens_per_second", "third_epoch_target_tokens_per_second")
    later = f"{max(result.get(name, 0.0) for name in names):,.0f}"
    measured = result.get("measured", "earlier")
    return [*label, first, later, capturing, padding, memory, measured]


def table(results: dict[str, Any]) -> str:
    rows = [format_row(name, results[name]) for name in SETTINGS if name in results]
    checks = ", ".join(
        f"{name.removeprefix('check-')} {results[name]['largest_difference']:.1g}"
        for name in CHECKS
        if "largest_difference" in results.get(name, {})
    )
    parts = [markdown(HEAD.split(";"), rows)]
    if "mean" in results.get("progress-line", {}):
        parts.append(format_command(results["progress-line"]))
    parts.append(
        "Largest difference between the losses of fifty captured and fifty plain steps in fp32 without "
        f"dropout: {checks}."
    )
    return "\n\n".join(parts)


def format_command(result: dict[str, Any]) -> str:
    return (
        "The command `seqloom train` with preset base, 10,000 pieces and batches of 25,000 tokens "
        f"reports {result['mean']:,.0f} target\ntokens per second on average, in steps "
        f"{FIRST_COUNTED + 1} to {result['steps'] - LOG_EVERY} (single reports, each over {LOG_EVERY} "
        f"steps: {result['lowest']:,.0f}\nto {result['highest']:,.0f}); measured {result['measured']}."
    )


def run_setting(name: str, folder: Path, multi30k: Path) -> dict[str, Any]:
    if name == "progress-line":
        return measure_command(multi30k, folder)
    facts = (SETTINGS | CHECKS)[name]
    if "marian" in facts:
        return measure_marian(multi30k, folder, facts["marian"], facts.get("cudnn_attention"))
    changes = [*MODELS[facts["of"]], *facts["changes"]]
    return (check if name in CHECKS else measure_epochs)(folder, multi30k, changes)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder with the folder multi30k")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="settings to run (default: all)")


def measure(options: Namespace) -> Iterator[dict[str, Any]]:
    torch.set_num_threads(2)
    results: dict[str, Any] = dict(options.earlier or {})
    for name in options.only or [*CHECKS, *SETTINGS, "progress-line"]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                results[name] = run_setting(name, Path(folder) / "run", options.data / "multi30k")
            except Exception:
                results[name] = {"failed": traceback.format_exc().splitlines()[-12:]}
        results[name]["measured"] = datetime.date.today().isoformat()
        print(name, json.dumps(results[name], indent=None), flush=True)
        torch.compiler.reset()
        torch.cuda.empty_cache()
        yield results
