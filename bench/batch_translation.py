"""Throughput of batch translation: python -m bench.batch_translation RUN FILE...

Translates the same files with plain worker processes and with the same number of actors of a local
Ray cluster, in alternating rounds, so that other load on the machine affects both. The rate counts the
lines after the first finished block, so that it does not include the start of the processes. Each
round also checks that both outputs are equal.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.machine import describe_environment

RESULTS = Path(__file__).parents[1] / "docs" / "results" / "batch-translation.json"


def measure(items: Iterable[Any]) -> dict[str, float]:
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
            rates = measure(translate_with_ray(job, indices, "local", workers, 1))
        else:
            items = (item for index in indices for item in job.unfinished_blocks(index, Shard()))
            blocks = (item for item in items if isinstance(item, Block))
            rates = measure(translate_with_processes(job, blocks, workers, 1))
        paths = sorted(Path(folder).rglob("0*"))
        return rates, "".join(path.read_text(encoding="utf-8") for path in paths)


def format_report(results: dict[str, Any]) -> str:
    """The results as Markdown."""
    about = results["about"]
    rows = "\n".join(
        f"| {name} | {statistics.median(each['lines_per_second'] for each in rounds):,.0f} | "
        f"{statistics.median(each['seconds'] for each in rounds):.1f} |"
        for name, rounds in results["rounds"].items()
    )
    return f"""# Speed of batch translation

Written by `{about["command"]}` ({about["date"]}): {about["machine"]}, torch {about["torch"]}. {results["lines"]:,}
lines, {results["workers"]} processes or actors with one thread each. Lines per second are counted after the first
finished block; the seconds include the start of the processes and of Ray. Medians of {len(results["ratios"])} alternating
rounds.

| | lines per second | seconds |
|---|---:|---:|
{rows}

Ray has **{results["ratio_median"]:.2f}** times the lines per second of plain processes (rounds:
{", ".join(f"{ratio:.2f}" for ratio in results["ratios"])}). Both wrote the same outputs in every round.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rounds: dict[str, list[dict[str, float]]] = {"plain processes": [], "Ray": []}
    lines = 0
    for _ in range(arguments.rounds):
        outputs = []
        for name, measured in rounds.items():
            rates, output = translate(
                arguments.run, arguments.files, arguments.workers, name == "Ray"
            )
            measured.append(rates)
            outputs.append(output)
        assert outputs[0] == outputs[1], "Ray changed a translation"
        lines = outputs[0].count("\n")
    plain, ray = rounds.values()
    ratios = [
        two["lines_per_second"] / one["lines_per_second"]
        for one, two in zip(plain, ray, strict=True)
    ]
    results = {
        "lines": lines,
        "workers": arguments.workers,
        "rounds": rounds,
        "ratios": ratios,
        "ratio_median": statistics.median(ratios),
        "about": {
            **describe_environment(0),
            "command": f"python -m bench.batch_translation {arguments.run.name} FILE...",
        },
    }
    arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    arguments.out.with_suffix(".md").write_text(format_report(results), encoding="utf-8")
    print(format_report(results))


if __name__ == "__main__":
    main()
