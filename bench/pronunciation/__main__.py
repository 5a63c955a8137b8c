"""Train pronunciation models for 15 languages: one per language, one for all, and ensembles.

    python -m bench.pronunciation OUT --sigmorphon FOLDER --jobs 8    train; one JSON file per model
    python -m bench.pronunciation OUT --write                         docs/results/pronunciation.md

Existing results are kept. `--only` selects languages, or `all` for the model of all languages.
`--seeds N` trains N models of each and also measures their ensemble. `--set` changes every run.
"""

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.pronunciation.languages import LANGUAGES, write_tagged
from bench.pronunciation.measure import ALL, Job, measure
from bench.pronunciation.page import PAGE, page


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.pronunciation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--sigmorphon", type=Path, help="folder with the 45 files of the task")
    parser.add_argument("--only", nargs="+", choices=[ALL, *LANGUAGES], metavar="LANGUAGE")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds (default: 1)")
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel runs (default: 1)")
    parser.add_argument("--work", type=Path, help="run folders (default: OUT-runs)")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--write", action="store_true", help="write the page from the results")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    return parser


def build_job(arguments: argparse.Namespace, language: str, seed: int | None) -> Job:
    folder = arguments.work / "tagged" if language == ALL else arguments.sigmorphon
    return Job(language, seed, arguments.out, arguments.work, folder, tuple(arguments.settings))


def run_job(arguments: argparse.Namespace, job: Job) -> int:
    """Run the job in a separate process, unless its result exists. Returns the exit code."""
    if job.result.exists():
        return 0
    command = [sys.executable, "-m", "bench.pronunciation", str(job.out), f"--work={job.work}"]
    command += [f"--sigmorphon={arguments.sigmorphon}"]
    command += [f"--set={setting}" for setting in job.settings]
    command += ["--one", job.language, "ensemble" if job.seed is None else str(job.seed)]
    return subprocess.run(command, check=False).returncode


def train_all(arguments: argparse.Namespace) -> list[str]:
    """Train all seeds, then measure the ensembles. Returns the labels of failed jobs."""
    write_tagged(arguments.sigmorphon, arguments.work / "tagged")
    languages = arguments.only or [ALL, *LANGUAGES]  # the longest training first
    seeds = range(1, arguments.seeds + 1)
    rounds = [[build_job(arguments, language, seed) for seed in seeds for language in languages]]
    if arguments.seeds > 1:
        rounds.append([build_job(arguments, language, None) for language in languages])
    failed = []
    for jobs in rounds:
        with ThreadPoolExecutor(arguments.jobs) as pool:
            codes = list(pool.map(lambda job: run_job(arguments, job), jobs))
        failed += [job.label for job, code in zip(jobs, codes, strict=True) if code]
    return failed


def main() -> None:
    parser = build_parser()
    arguments = parser.parse_args()
    arguments.work = arguments.work or arguments.out.with_name(f"{arguments.out.name}-runs")
    if arguments.write:
        text = page(arguments.out)
        if text is None:
            parser.error(f"there are no results in {arguments.out}")
        PAGE.write_text(text, encoding="utf-8")
        print(f"Wrote {PAGE}")
        return
    if arguments.sigmorphon is None:
        parser.error("--sigmorphon FOLDER is required: the folder with the 45 files of the task")
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.one:
        language, seed = arguments.one
        measure(build_job(arguments, language, None if seed == "ensemble" else int(seed)))
        return
    failed = train_all(arguments)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
