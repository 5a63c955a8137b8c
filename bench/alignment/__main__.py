"""Compare word alignments from attention with human alignments, German–English in both directions.

    python -m bench.alignment OUT --data FOLDER --jobs 4    train four runs and score them; FOLDER
                                                            holds tatoeba, multi30k,
                                                            europarl20k-de-en and word-alignment
    python -m bench.alignment OUT --write                   docs/results/alignment.md

Trains a recurrent network and a Transformer in each direction. The gold pairs with even numbers
select the heads and the step; those with odd numbers are the test set. Existing results are kept.
Run folders are stored in --work (default: OUT-runs). `--set` changes every run.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.alignment.experiment import DIRECTIONS, FAMILIES, prepare, score, train
from bench.alignment.page import PAGE, page


def run_job(job: Sequence[str], arguments: argparse.Namespace) -> int:
    """Train in a separate process, unless the result exists. Returns the exit code."""
    if (arguments.work / f"{'.'.join(job)}.json").exists():
        return 0
    command = [sys.executable, "-m", "bench.alignment", str(arguments.out)]
    command += [f"--work={arguments.work}", f"--data={arguments.data}"]
    command += [f"--set={setting}" for setting in arguments.settings]
    return subprocess.run([*command, "--one", *job], check=False).returncode


def list_jobs() -> Iterator[tuple[str, str]]:
    """(family, direction) of each run, slow runs first."""
    return ((family, direction) for family in FAMILIES for direction in DIRECTIONS)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.alignment",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, help="folder with the folders of the data sets")
    parser.add_argument("--work", type=Path, help="run folders (default: OUT-runs)")
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel runs (default: 1)")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--write", action="store_true", help="write the page from the results")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    return parser


def main() -> None:
    parser = build_parser()
    arguments = parser.parse_args()
    out, work = arguments.out, arguments.work
    arguments.work = work = work or out.with_name(f"{out.name}-runs")
    if arguments.write:
        results = [json.loads((out / f"{family}.json").read_text()) for family in FAMILIES]
        PAGE.write_text(page(results), encoding="utf-8")
        return
    if arguments.data is None:
        parser.error("training requires --data FOLDER")
    out.mkdir(parents=True, exist_ok=True)
    if arguments.one:
        family, direction = arguments.one
        train(family, direction, work, arguments.settings)
        return
    prepare(arguments.data, work / "text")
    with ThreadPoolExecutor(arguments.jobs) as pool:
        codes = list(pool.map(lambda job: run_job(job, arguments), list_jobs()))
    failed = [".".join(job) for job, code in zip(list_jobs(), codes, strict=True) if code]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")
    for family in FAMILIES:
        result = score(family, arguments.data, work)
        (out / f"{family}.json").write_text(json.dumps(result, indent=1))
        best = min(scores["test"]["error_rate"] for scores in result["scores"].values())
        print(f"{family}: best error rate on the test pairs {best:.3f}", flush=True)


if __name__ == "__main__":
    main()
