"""Many languages in one model: pairs that were never trained on, and pairs with little data.

    python -m bench.languages OUT --multi30k FOLDER --jobs 4     train and translate; one JSON each
    python -m bench.languages OUT --write                        docs/results/languages.md

What is there already is not done again. `--only` and `--seeds` choose; `--set` changes every model
(`--set training.steps=2000`).
"""

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.languages.experiments import EXPERIMENTS
from bench.languages.measure import Job, measure
from bench.languages.table import write


def jobs_of(chosen: argparse.Namespace) -> list[Job]:
    """Seed by seed, so that a first result of everything comes early."""
    return [
        Job(one.name, seed, chosen.out, chosen.work, chosen.multi30k, tuple(chosen.settings))
        for seed in range(1, chosen.seeds + 1)
        for one in EXPERIMENTS
        if not chosen.only or one.name in chosen.only
    ]


def start(job: Job) -> int:
    """In a process of its own; nothing if its result is there."""
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
    names = [one.name for one in EXPERIMENTS]
    parser.add_argument("out", type=Path)
    parser.add_argument("--multi30k", type=Path, help="folder with the raw Multi30k files")
    parser.add_argument("--only", nargs="+", choices=names, help="left out: all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="models at the same time")
    parser.add_argument("--work", type=Path, help="run folders; left out: OUT with -runs behind")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.write:
        write(chosen.out)
        return
    if chosen.multi30k is None:
        parser.error("--multi30k FOLDER is needed to train")
    chosen.out.mkdir(parents=True, exist_ok=True)
    chosen.work = chosen.work or chosen.out.with_name(f"{chosen.out.name}-runs")
    if chosen.one:
        name, seed = chosen.one
        settings = tuple(chosen.settings)
        measure(Job(name, int(seed), chosen.out, chosen.work, chosen.multi30k, settings))
        return
    jobs = jobs_of(chosen)
    with ThreadPoolExecutor(chosen.jobs) as pool:
        codes = list(pool.map(start, jobs))
    failed = [job.label for job, code in zip(jobs, codes, strict=True) if code]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
