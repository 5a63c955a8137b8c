"""Runs the jobs of a study, each in a process of its own. Jobs whose result is stored are skipped."""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench import store
from bench.measure import Context, measure, prepare
from bench.study import Job, Study, list_jobs


def add_options(parser: argparse.ArgumentParser, study: Study) -> None:
    parser.add_argument("--data", type=Path, help="folder with the folders of the data sets")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="recipes, changes or RECIPE.CHANGE"
    )
    parser.add_argument(
        "--seeds",
        type=parse_seeds,
        default=parse_seeds(str(study.seeds)),
        help=f"number of seeds, or a range such as 4-6 (default: {study.seeds})",
    )
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel runs (default: 1)")
    parser.add_argument("--work", type=Path, help="run folders (default: OUT/NAME-runs)")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument(
        "--list", action="store_true", help="print the jobs and whether they are stored"
    )
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)


def parse_seeds(text: str) -> range:
    """ "3" is the seeds 1 to 3, "4-6" the seeds 4 to 6."""
    first, _, last = text.rpartition("-")
    return range(int(first or 1), int(last) + 1)


def run(study: Study, options: argparse.Namespace) -> None:
    options.work = options.work or options.out / f"{study.name}-runs"
    if options.one:
        run_one(study, options)
        return
    jobs = select_jobs(list_jobs(study, options.seeds), options.only)
    if not jobs:
        sys.exit(f"{study.name} has no recipe or change named {', '.join(options.only)}")
    stored = {store.key_of(each) for each in store.read(study.name, options.out) or []}
    if options.list:
        for job in jobs:
            print(f"{job.label:60} {'stored' if job.key in stored else ''}")
        return
    pending = []
    for job in jobs:
        reason = missing_data(job, options.data)
        if reason is not None:
            print(f"{job.label}: skipped: {reason}")
        elif job.key not in stored:
            pending.append(job)
    if failed := run_stages(study, pending, options):
        sys.exit(f"failed: {', '.join(failed)}")


def select_jobs(jobs: Sequence[Job], names: Sequence[str] | None) -> list[Job]:
    """The jobs of these recipes or changes, and those whose runs they start from."""
    if names is None:
        return list(jobs)
    chosen = [
        job
        for job in jobs
        if {job.recipe.name, job.change.name, f"{job.recipe.name}.{job.change.name}"} & set(names)
    ]
    keys = {job.key for job in chosen}
    keys |= {(job.recipe.name, job.change.start, job.seed) for job in chosen if job.change.start}
    return [job for job in jobs if job.key in keys]


def missing_data(job: Job, data: Path | None) -> str | None:
    """The reason why the data of a job is not available. None if it is."""
    if job.recipe.data is None:
        return None
    if data is None:
        return "it requires --data FOLDER"
    folder = data / job.recipe.data
    return None if folder.is_dir() else f"there is no folder {folder}"


def run_stages(study: Study, jobs: Sequence[Job], options: argparse.Namespace) -> list[str]:
    """Run the jobs, and return the labels of those that failed.

    Jobs that share a run folder run one after another.
    """
    failed: list[str] = []
    if jobs:
        study.hook(prepare)(context_of(options))
    for stage in range(3):
        chains: dict[str, list[Job]] = {}
        for job in jobs:
            if job.stage == stage:
                chains.setdefault(job.label, []).append(job)
        with ThreadPoolExecutor(options.jobs) as pool:
            for labels in pool.map(lambda chain: run_chain(chain, options), chains.values()):
                failed += labels
    return failed


def run_chain(jobs: Sequence[Job], options: argparse.Namespace) -> list[str]:
    return [job.label for job in jobs if not run_job(job, options)]


def run_job(job: Job, options: argparse.Namespace) -> bool:
    """Measure a job in a process of its own. True if it succeeded."""
    return subprocess.run(command(job, options), check=False).returncode == 0


def command(job: Job, options: argparse.Namespace) -> list[str]:
    """The command that measures one job."""
    seed = "ensemble" if job.seed is None else str(job.seed)
    return [
        *(sys.executable, "-m", "bench", job.study.name),
        *(f"--out={options.out}", f"--work={options.work}", f"--jobs={options.jobs}"),
        *([f"--data={options.data}"] if options.data else []),
        *(f"--set={setting}" for setting in options.settings),
        *("--one", job.recipe.name, job.change.name, seed),
    ]


def context_of(options: argparse.Namespace) -> Context:
    data = options.data or Path()
    options.work.mkdir(parents=True, exist_ok=True)
    return Context(data, options.work, tuple(options.settings), options.jobs)


def run_one(study: Study, options: argparse.Namespace) -> None:
    """Measure one job in this process, and store its record."""
    recipe, change, seed = options.one
    number = None if seed == "ensemble" else int(seed)
    job = Job(study, study.recipes[recipe], study.changes[change], number)
    record = study.hook(measure)(job, context_of(options))
    store.add(study.name, record, options.out)
    shown = {name: round(value, 2) for name, value in list(record.get("scores", {}).items())[:3]}
    print(f"{job.label}: {shown}", flush=True)
