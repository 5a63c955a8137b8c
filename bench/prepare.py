"""Preparing large text for training.

Pairs are made from the bundled sentences. CPU times are those of all processes together, so that
they can be compared on a busy machine. Wall times mean something only on an idle one.
"""

import argparse
import gzip
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from importlib.resources import files
from itertools import chain, islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from bench.study import RECIPES

RECIPE = RECIPES / "prepare.toml"


def write_pairs(path: Path, pairs: int, seed: int) -> None:
    """Write sentence pairs. Each pair joins a bundled pair and a part of another one."""
    generator = random.Random(seed)
    archive = files("seqloom.bundled").joinpath("tatoeba-de-en.train.tsv.gz")
    with archive.open("rb") as packed, gzip.open(packed, "rt", encoding="utf-8") as lines:
        bundled = [line.rstrip("\n").split("\t")[:2] for line in lines]
    with path.open("w", encoding="utf-8") as file:
        for _ in range(pairs):
            first, second = generator.choice(bundled), generator.choice(bundled)
            cut = generator.randrange(1, 8)
            sides = (f"{a} {' '.join(b.split()[:cut])}" for a, b in zip(first, second, strict=True))
            file.write("\t".join(sides) + "\n")


def reference(path: Path, folder: Path, vocabularies: Path) -> None:
    """Read lines, encode lists of them with sentencepiece and write the ids with numpy."""
    import sentencepiece

    names = ("source", "target")
    models = [
        sentencepiece.SentencePieceProcessor(model_file=str(vocabularies / f"{name}.model"))
        for name in names
    ]
    outputs = [(folder / f"reference.{name}").open("wb") for name in names]
    with path.open(encoding="utf-8") as lines:
        while block := list(islice(lines, 1_000)):
            rows = [line.rstrip("\n").split("\t") for line in block]
            for side, model, output in zip(zip(*rows, strict=True), models, outputs, strict=True):
                ids = model.encode(list(side), num_threads=1)
                lengths = np.fromiter(map(len, ids), np.int64, len(ids))
                flat = np.fromiter(chain.from_iterable(ids), np.uint16, int(lengths.sum()))
                output.write(flat.tobytes())
    for output in outputs:
        output.close()


def cpu_seconds() -> float:
    """CPU time of this process and of its finished children."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in usage)


def peak_kilobytes() -> int:
    """Peak memory of this process. Not `getrusage`, which also counts the memory that the parent
    process had when it started this one."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def step(name: str, folder: Path, workers: int, part_mib: int) -> dict[str, Any]:
    """Run one measurement in this process. Return CPU time, wall time and peak memory.

    part_mib: size of the parts of the file, each of which becomes a shard
    """
    from seqloom.data.preparation import file_parts
    from seqloom.data.recipe import load_recipe

    file_parts.PART_BYTES = part_mib * 2**20
    config = load_recipe(RECIPE, [f"data.folder={folder}", f"data.workers={workers}"]).config
    if name == "vocabularies":
        from seqloom.data.corpus.vocabularies import train_tokenizers

        work = lambda: train_tokenizers(config)  # noqa: E731
    elif name == "reference":
        (vocabularies,) = (folder / "cache" / "seqloom" / "vocabularies").glob("[0-9a-f]*")
        work = lambda: reference(folder / "pairs.tsv", folder, vocabularies)  # noqa: E731
    else:
        from seqloom.tasks.build import learn_task

        task = learn_task(config)
        work = lambda: task.corpus(config, "train", lambda progress: None)  # noqa: E731
    cpu, wall = cpu_seconds(), time.perf_counter()
    work()
    peak = max(peak_kilobytes(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    return {
        "cpu": round(cpu_seconds() - cpu, 2),
        "wall": round(time.perf_counter() - wall, 2),
        "peak_mb": round(peak / 1024),
    }


def first_step(folder: Path) -> dict[str, Any]:
    """Start a training. Return the seconds from the end of the imports until the first step has its
    batches and begins to compute."""
    from seqloom.data.recipe import load_recipe
    from seqloom.training import loop

    begins: list[float] = []
    compute = loop.train_step

    def record_step(*arguments: Any, **named: Any) -> Any:
        begins.append(time.perf_counter())
        return compute(*arguments, **named)

    started = time.perf_counter()
    config = load_recipe(RECIPE, [f"data.folder={folder}", "training.steps=1"]).config
    with (
        tempfile.TemporaryDirectory() as run,
        patch.object(loop, "train_step", record_step),
    ):
        loop.train(config, Path(run) / "run")
    return {"wall": round(begins[0] - started, 2)}


def measure_step(name: str, folder: Path, part_mib: int, workers: int = 1) -> dict[str, Any]:
    """Run one measurement in a new process."""
    command = [sys.executable, "-m", "bench", "prepare", "--step", name, "--folder", str(folder)]
    command += ["--part-mib", str(part_mib)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [*command, "--workers", str(workers)], env=environment, check=True, stdout=subprocess.PIPE
    )
    return dict(json.loads(run.stdout))


def prepared_bytes(folder: Path) -> dict[str, bytes]:
    """Return the files of the corpus by name, except the modification times."""
    (corpus,) = (folder / "cache" / "seqloom" / "prepared").glob("[0-9a-f]*")
    paths = (path for path in sorted(corpus.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(corpus)): path.read_bytes()
        for path in paths
        if path.name != "stamps.json"
    }


def measure_size(
    pairs: int, workers: list[int], part_mib: int, seed: int
) -> Iterator[tuple[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_pairs(folder / "pairs.tsv", pairs, seed)
        write_pairs(folder / "dev.tsv", 100, seed + 1)
        yield "vocabularies", measure_step("vocabularies", folder, part_mib)
        yield "reference", measure_step("reference", folder, part_mib)
        first: dict[str, bytes] | None = None
        for count in workers:
            shutil.rmtree(folder / "cache" / "seqloom" / "prepared", ignore_errors=True)
            yield f"{count} workers", measure_step("corpus", folder, part_mib, count)
            files_now = prepared_bytes(folder)
            yield f"{count} workers: same bytes", first in (None, files_now)
            first = first or files_now
        yield "shards", sum(name.endswith("/target.ids") for name in files_now)
        prepared = sum(map(len, files_now.values()))
        yield (
            "bytes per pair",
            {
                "data file": round((folder / "pairs.tsv").stat().st_size / pairs, 1),
                "prepared": round(prepared / pairs, 1),
            },
        )
        yield "second start, corpus", measure_step("corpus", folder, part_mib)
        measure_step("training", folder, part_mib)  # prepares the dev split
        yield "second start, first step", measure_step("training", folder, part_mib)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pairs", type=int, nargs="+", default=[100_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--part-mib", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)


def measure(options: Namespace) -> Iterator[dict[str, Any]]:
    if options.step:
        measured = (
            first_step(options.folder)
            if options.step == "training"
            else step(options.step, options.folder, options.workers[0], options.part_mib)
        )
        print(json.dumps(measured))
        sys.exit()
    results: dict[str, Any] = {}
    for pairs in options.pairs:
        results[f"{pairs:,}"] = sizes = {}
        for name, value in measure_size(pairs, options.workers, options.part_mib, options.seed):
            sizes[name] = value
            print(f"{pairs:>12,}  {name}: {value}", flush=True)
            yield results


def table(results: dict[str, Any]) -> str:
    return "\n".join(
        f"{pairs} pairs, {name}: {value}"
        for pairs, sizes in results.items()
        if pairs != "about"
        for name, value in sizes.items()
    )
