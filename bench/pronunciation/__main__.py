"""Pronunciation in 15 languages: a model each, one model for all, and their ensembles.

    python -m bench.pronunciation OUT --sigmorphon FOLDER --jobs 8    train; one JSON each in OUT
    python -m bench.pronunciation OUT --write                         docs/results/pronunciation.md

What is there already is not done again. `--only` chooses languages, or `all` for the one model of
all of them; `--seeds N` trains N of each and asks them together, too; `--set` changes every run.
"""

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.pronunciation.languages import LANGUAGES, write_tagged
from bench.pronunciation.measure import ALL, Job, measure
from bench.pronunciation.table import PAGE, page


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.pronunciation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--sigmorphon", type=Path, help="folder with the 45 files of the task")
    parser.add_argument("--only", nargs="+", choices=[ALL, *LANGUAGES], metavar="LANGUAGE")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--work", type=Path, help="run folders; left out: OUT with -runs behind")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    return parser


def job_of(chosen: argparse.Namespace, language: str, seed: int | None) -> Job:
    folder = chosen.work / "tagged" if language == ALL else chosen.sigmorphon
    return Job(language, seed, chosen.out, chosen.work, folder, tuple(chosen.settings))


def start(chosen: argparse.Namespace, job: Job) -> int:
    """In a process of its own; nothing if its result is there."""
    if job.result.exists():
        return 0
    command = [sys.executable, "-m", "bench.pronunciation", str(job.out), f"--work={job.work}"]
    command += [f"--sigmorphon={chosen.sigmorphon}"]
    command += [f"--set={setting}" for setting in job.settings]
    command += ["--one", job.language, "ensemble" if job.seed is None else str(job.seed)]
    return subprocess.run(command, check=False).returncode


def train_all(chosen: argparse.Namespace) -> list[str]:
    """Seed by seed, then the ensembles; the labels of those that failed."""
    write_tagged(chosen.sigmorphon, chosen.work / "tagged")
    languages = chosen.only or [ALL, *LANGUAGES]  # the longest first
    seeds = range(1, chosen.seeds + 1)
    rounds = [[job_of(chosen, one, seed) for seed in seeds for one in languages]]
    if chosen.seeds > 1:
        rounds.append([job_of(chosen, one, None) for one in languages])
    failed = []
    for jobs in rounds:
        with ThreadPoolExecutor(chosen.jobs) as pool:
            codes = list(pool.map(lambda job: start(chosen, job), jobs))
        failed += [job.label for job, code in zip(jobs, codes, strict=True) if code]
    return failed


def main() -> None:
    parser = arguments()
    chosen = parser.parse_args()
    chosen.work = chosen.work or chosen.out.with_name(f"{chosen.out.name}-runs")
    if chosen.write:
        text = page(chosen.out)
        if text is None:
            parser.error(f"{chosen.out}: there is no result to write about")
        PAGE.write_text(text, encoding="utf-8")
        print(f"{PAGE} written")
        return
    if chosen.sigmorphon is None:
        parser.error("--sigmorphon FOLDER is needed: the 45 files of the task")
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.one:
        language, seed = chosen.one
        measure(job_of(chosen, language, None if seed == "ensemble" else int(seed)))
        return
    failed = train_all(chosen)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
