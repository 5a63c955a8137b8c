"""Measure the effect of each training and decoding technique over several seeds.

    python -m bench.tricks OUT --multi30k FOLDER --jobs 8      train and decode; one JSON file per run
    python -m bench.tricks OUT --write                         docs/tricks.md and docs/presets.md

Existing results are kept. Parallel runs share the machine, so their times are upper bounds.
`--data`, `--only` and `--seeds` select runs; `--set` changes every run (`--set training.steps=2000`).
"""

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from bench.tricks.measure import Job, measure, write_references
from bench.tricks.page import write_pages
from bench.tricks.variants import ALL, BASE, DATASETS


def list_jobs(arguments: argparse.Namespace) -> list[Job]:
    """All selected runs, ordered by seed, so that one result of each variant is ready early."""
    return [
        Job(
            dataset=name,
            variant=variant.name,
            seed=seed,
            out=arguments.out,
            work=arguments.work,
            multi30k=arguments.multi30k,
            settings=arguments.settings,
        )
        for seed in range(1, arguments.seeds + 1)
        for name in arguments.data
        for variant in DATASETS[name].variants
        if not arguments.only or variant.name in arguments.only
    ]


def run_job(job: Job) -> int:
    """Run the job in a separate process, unless its result exists. Returns the exit code."""
    if job.result.exists():
        return 0
    seed = "ensemble" if job.seed is None else str(job.seed)
    command = [sys.executable, "-m", "bench.tricks", str(job.out), f"--work={job.work}"]
    command += [f"--multi30k={job.multi30k}"] if job.multi30k else []
    command += [f"--set={setting}" for setting in job.settings]
    command += ["--one", job.dataset, job.variant, seed]
    return subprocess.run(command, check=False).returncode


def run_jobs(jobs: list[Job], parallel: int) -> list[str]:
    """Run the jobs and return the labels of those that failed."""
    with ThreadPoolExecutor(parallel) as pool:
        codes = pool.map(run_job, jobs)
        return [job.label for job, code in zip(jobs, codes, strict=True) if code]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.tricks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--multi30k", help="folder with the raw Multi30k files")
    parser.add_argument("--data", nargs="+", choices=DATASETS, help="default: all available")
    parser.add_argument("--only", nargs="+", metavar="VARIANT", help="default: all")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds (default: 3)")
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel runs (default: 1)")
    parser.add_argument("--work", type=Path, help="run folders (default: OUT-runs)")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--write", action="store_true", help="write the pages from the results")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    arguments.work = arguments.work or arguments.out.with_name(f"{arguments.out.name}-runs")
    if arguments.write:
        write_pages(arguments.out)
        return
    if arguments.one:
        name, variant, seed = arguments.one
        job = Job(
            dataset=name,
            variant=variant,
            seed=None if seed == "ensemble" else int(seed),
            out=arguments.out,
            work=arguments.work,
            multi30k=arguments.multi30k,
            settings=tuple(arguments.settings),
        )
        measure(job)
        return
    arguments.data = arguments.data or [
        name for name in DATASETS if arguments.multi30k or not name.startswith("multi30k")
    ]
    unknown = set(arguments.only or ()) - {
        variant.name for name in arguments.data for variant in DATASETS[name].variants
    }
    if unknown:
        parser.error(f"unknown variant: {', '.join(sorted(unknown))}")
    jobs = list_jobs(arguments)
    for name in arguments.data:
        write_references(next(job for job in jobs if job.dataset == name))
    failed = run_jobs(jobs, arguments.jobs)
    ensembles = [
        replace(job, seed=None) for job in jobs if job.seed == 1 and job.variant in (BASE, ALL)
    ]
    failed += run_jobs(ensembles if arguments.seeds > 1 else [], arguments.jobs)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
