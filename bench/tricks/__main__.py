"""What each trick is worth, over several seeds.

    python -m bench.tricks OUT --multi30k FOLDER --jobs 8      train and decode; one JSON each in OUT
    python -m bench.tricks OUT --write                         docs/tricks.md and docs/presets.md

What is there already is not done again. Runs share the machine, so their seconds are upper bounds.
`--data`, `--only` and `--seeds` choose; `--set` changes every run (`--set training.steps=2000`).
"""

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from bench.tricks.measure import Job, measure, write_references
from bench.tricks.table import write
from bench.tricks.variants import ALL, BASE, DATASETS


def jobs_of(chosen: argparse.Namespace) -> list[Job]:
    """Every run that is wanted, seed by seed, so that a first result of everything comes early."""
    return [
        Job(name, variant.name, seed, chosen.out, chosen.work, chosen.multi30k, chosen.settings)
        for seed in range(1, chosen.seeds + 1)
        for name in chosen.data
        for variant in DATASETS[name].variants
        if not chosen.only or variant.name in chosen.only
    ]


def start(job: Job) -> int:
    """In a process of its own; nothing if its result is there."""
    if job.result.exists():
        return 0
    seed = "ensemble" if job.seed is None else str(job.seed)
    command = [sys.executable, "-m", "bench.tricks", str(job.out), f"--work={job.work}"]
    command += [f"--multi30k={job.multi30k}"] if job.multi30k else []
    command += [f"--set={setting}" for setting in job.settings]
    command += ["--one", job.dataset, job.variant, seed]
    return subprocess.run(command, check=False).returncode


def run_all(jobs: list[Job], at_once: int) -> list[str]:
    """The labels of those that failed."""
    with ThreadPoolExecutor(at_once) as pool:
        codes = pool.map(start, jobs)
        return [job.label for job, code in zip(jobs, codes, strict=True) if code]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.tricks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--multi30k", help="folder with the raw Multi30k files")
    parser.add_argument("--data", nargs="+", choices=DATASETS, help="left out: all there are")
    parser.add_argument("--only", nargs="+", metavar="VARIANT", help="left out: all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--work", type=Path, help="run folders; left out: OUT with -runs behind")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    chosen.work = chosen.work or chosen.out.with_name(f"{chosen.out.name}-runs")
    if chosen.write:
        write(chosen.out)
        return
    if chosen.one:
        name, variant, seed = chosen.one
        number = None if seed == "ensemble" else int(seed)
        settings = tuple(chosen.settings)
        measure(Job(name, variant, number, chosen.out, chosen.work, chosen.multi30k, settings))
        return
    chosen.data = chosen.data or [
        name for name in DATASETS if chosen.multi30k or not name.startswith("multi30k")
    ]
    unknown = set(chosen.only or ()) - {
        one.name for name in chosen.data for one in DATASETS[name].variants
    }
    if unknown:
        parser.error(f"there is no variant {', '.join(sorted(unknown))}")
    jobs = jobs_of(chosen)
    for name in chosen.data:
        write_references(next(job for job in jobs if job.dataset == name))
    failed = run_all(jobs, chosen.jobs)
    together = [
        replace(job, seed=None) for job in jobs if job.seed == 1 and job.variant in (BASE, ALL)
    ]
    failed += run_all(together if chosen.seeds > 1 else [], chosen.jobs)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
