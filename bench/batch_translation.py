"""Translation of many files by worker processes and by Ray.

Translates the same files with plain worker processes and with the same number of actors of a local
Ray cluster, in alternating rounds, so that other load on the machine affects both. The rate counts the
lines after the first finished block, so that it does not include the start of the processes. Each
round also checks that both outputs are equal.
"""

import argparse
import statistics
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.tables import markdown


def measure_rate(items: Iterable[Any]) -> dict[str, float]:
    """Consume the reports of a translation. Returns lines per second and the total seconds."""
    from seqloom.jobs.batch_translation.block_translator import BlockReport

    start = time.perf_counter()
    first = last = 0.0
    lines = 0
    for item in items:
        if isinstance(item, BlockReport):
            last = time.perf_counter()
            if first:
                lines += item.lines.total
            else:
                first = last
    return {"lines_per_second": lines / (last - first), "seconds": last - start}


def translate(run: Path, files: list[str], workers: int, ray: bool) -> tuple[dict[str, float], str]:
    """Translate the files into a temporary folder. Returns the rates and all outputs."""
    from seqloom.config.loading.loader import load_run_recipe
    from seqloom.inference.options import TEXT_ONLY
    from seqloom.jobs.batch_translation.block_translator import Shard, TranslationJob
    from seqloom.jobs.batch_translation.input_files import Block, find_input_files
    from seqloom.jobs.batch_translation.output_folder import OutputFolder
    from seqloom.jobs.batch_translation.output_lines import TranslationFormatter
    from seqloom.jobs.batch_translation.portions import CPU_PORTION
    from seqloom.jobs.batch_translation.ray_cluster import translate_with_ray
    from seqloom.jobs.batch_translation.worker_processes import translate_with_processes
    from seqloom.runs.integrity import CONFIG

    config = load_run_recipe(run / CONFIG).config
    with tempfile.TemporaryDirectory() as folder:
        job = TranslationJob(
            [run],
            [],
            config.engine,
            config.decoding,
            TEXT_ONLY,
            TranslationFormatter(1, scores=False, alignments=False, json=False),
            find_input_files(files, None, "translation"),
            OutputFolder(Path(folder)),
            CPU_PORTION,
        )
        indices = list(range(len(job.files)))
        if ray:
            rates = measure_rate(translate_with_ray(job, indices, "local", workers, 1))
        else:
            items = (item for index in indices for item in job.unfinished_blocks(index, Shard()))
            blocks = (item for item in items if isinstance(item, Block))
            rates = measure_rate(translate_with_processes(job, blocks, workers, 1))
        paths = sorted(Path(folder).rglob("0*"))
        return rates, "".join(path.read_text(encoding="utf-8") for path in paths)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)


def measure(options: Namespace) -> Iterator[dict[str, Any]]:
    rounds: dict[str, list[dict[str, float]]] = {"plain processes": [], "Ray": []}
    lines = 0
    for _ in range(options.rounds):
        outputs = []
        for name, measured in rounds.items():
            rates, output = translate(options.run, options.files, options.workers, name == "Ray")
            measured.append(rates)
            outputs.append(output)
        assert outputs[0] == outputs[1], "Ray changed a translation"
        lines = outputs[0].count("\n")
    plain, ray = ([each["lines_per_second"] for each in measured] for measured in rounds.values())
    ratios = [two / one for one, two in zip(plain, ray, strict=True)]
    yield {
        "lines": lines,
        "workers": options.workers,
        "rounds": rounds,
        "ratios": ratios,
        "ratio_median": statistics.median(ratios),
    }


def table(results: dict[str, Any]) -> str:
    rows = [
        [
            name,
            f"{statistics.median(each['lines_per_second'] for each in rounds):,.0f}",
            f"{statistics.median(each['seconds'] for each in rounds):.1f}",
        ]
        for name, rounds in results["rounds"].items()
    ]
    ratios = ", ".join(f"{ratio:.2f}" for ratio in results["ratios"])
    return (
        f"{results['lines']:,} lines, {results['workers']} processes or actors with one thread each; "
        f"medians of {len(results['ratios'])} alternating rounds.\n\n"
        f"{markdown(['', 'lines per second', 'seconds'], rows)}\n\n"
        f"Ray has **{results['ratio_median']:.2f}** times the lines per second of plain processes (rounds: "
        f"{ratios}).\nBoth wrote the same outputs in every round."
    )
