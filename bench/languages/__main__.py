"""Train multilingual models and measure zero-shot pairs and pairs with little data.

    python -m bench.languages OUT --multi30k FOLDER --jobs 4     train and translate; one JSON file per run
    python -m bench.languages OUT --write                        docs/results/languages.md

Existing results are kept. `--only` and `--seeds` select runs; `--set` changes every model
(`--set training.steps=2000`).
"""

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.languages.experiments import EXPERIMENTS
from bench.languages.measure import Job, measure
from bench.languages.page import write_page


def build_job(arguments: argparse.Namespace, experiment: str, seed: int) -> Job:
    return Job(
        experiment=experiment,
        seed=seed,
        out=arguments.out,
        work=arguments.work,
        multi30k=arguments.multi30k,
        settings=tuple(arguments.settings),
    )


def list_jobs(arguments: argparse.Namespace) -> list[Job]:
    """All selected runs, ordered by seed, so that one result of each experiment is ready early."""
    return [
        build_job(arguments, experiment.name, seed)
        for seed in range(1, arguments.seeds + 1)
        for experiment in EXPERIMENTS
        if not arguments.only or experiment.name in arguments.only
    ]


def run_job(job: Job) -> int:
    """Run the job in a separate process, unless its result exists. Returns the exit code."""
    if job.result.exists():
        return 0
    command = [sys.executable, "-m", "bench.languages", str(job.out), f"--work={job.work}"]
    command += [f"--multi30k={job.multi30k}", *(f"--set={setting}" for setting in job.settings)]
    command += ["--one", job.experiment, str(job.seed)]
    return subprocess.run(command, check=False).returncode


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.languages",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [experiment.name for experiment in EXPERIMENTS]
    parser.add_argument("out", type=Path)
    parser.add_argument("--multi30k", type=Path, help="folder with the raw Multi30k files")
    parser.add_argument("--only", nargs="+", choices=names, help="default: all")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds (default: 3)")
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel runs (default: 1)")
    parser.add_argument("--work", type=Path, help="run folders (default: OUT-runs)")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--write", action="store_true", help="write the page from the results")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write:
        write_page(arguments.out)
        return
    if arguments.multi30k is None:
        parser.error("training requires --multi30k FOLDER")
    arguments.out.mkdir(parents=True, exist_ok=True)
    arguments.work = arguments.work or arguments.out.with_name(f"{arguments.out.name}-runs")
    if arguments.one:
        name, seed = arguments.one
        measure(build_job(arguments, name, int(seed)))
        return
    jobs = list_jobs(arguments)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        codes = list(pool.map(run_job, jobs))
    failed = [job.label for job, code in zip(jobs, codes, strict=True) if code]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
