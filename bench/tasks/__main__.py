"""Train the recipe of each task and compare the results with published ones.

    python -m bench.tasks OUT [NAME …] --data FOLDER --jobs 4     train; one JSON file per run
    python -m bench.tasks OUT --write                             docs/results/tasks.md

Existing results are kept. FOLDER contains one sub-folder per data set; tasks without data are
skipped with a message. With OUT = docs/results/recipes, `python -m bench.recipes OUT --write` writes
the scores into the recipes.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench.tasks.page import page
from bench.tasks.registry import TASKS, MeasuredTask, recipe_of, result_name

PAGE = Path(__file__).parents[2] / "docs" / "results" / "tasks.md"


@dataclass(frozen=True)
class TaskRun:
    """One run of a task, in a separate process.

    parallel: number of runs at the same time, stored with the result
    """

    task: str
    run: str
    settings: Sequence[str]
    out: Path
    parallel: int

    @property
    def name(self) -> str:
        return result_name(self.task, self.run)

    def command(self) -> list[str]:
        return [
            *(sys.executable, "-m", "bench.recipes", str(self.out)),
            *(recipe_of(self.task), "--one"),
            *(f"--set={setting}" for setting in self.settings),
            *(f"--label={self.name}", f"--jobs={self.parallel}"),
        ]

    def start(self) -> int:
        """Run the process, unless the result exists. Returns the exit code."""
        if (self.out / f"{self.name}.json").exists():
            return 0
        return subprocess.run(self.command(), check=False).returncode


def missing_data(task: MeasuredTask, data: Path | None) -> str | None:
    """The reason why the data of a task is not available. None if it is."""
    if task.folder is None:
        return None
    if data is None:
        return "it requires --data FOLDER"
    folder = data / task.folder
    return None if folder.is_dir() else f"there is no folder {folder}"


def list_runs(name: str, options: argparse.Namespace) -> list[TaskRun]:
    """The runs of a task."""
    task = TASKS[name]
    folder = [] if task.folder is None else [f"data.folder={options.data / task.folder}"]
    return [
        TaskRun(
            task=name,
            run=run,
            settings=[*folder, *task.settings, *settings, *options.settings],
            out=options.out,
            parallel=options.jobs,
        )
        for run, settings in task.runs.items()
    ]


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.tasks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="tasks to run (default: all)")
    parser.add_argument("--data", type=Path, help="folder with the folders of the data sets")
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel runs (default: 1)")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--write", action="store_true", help="write the page from the results")
    return parser


def main() -> None:
    parser = build_parser()
    options = parser.parse_intermixed_args()
    unknown = sorted(set(options.names) - set(TASKS))
    if unknown:
        parser.error(f"unknown task: {', '.join(unknown)}. Choose from {', '.join(TASKS)}")
    if options.write:
        text = page(options.out)
        if text is None:
            parser.error(f"there are no results in {options.out}")
        PAGE.write_text(text, encoding="utf-8")
        print(f"Wrote {PAGE}")
        return
    options.out.mkdir(parents=True, exist_ok=True)
    runs: list[TaskRun] = []
    for name in options.names or TASKS:
        reason = missing_data(TASKS[name], options.data)
        if reason is not None:
            print(f"{name}: skipped: {reason}")
            continue
        runs += list_runs(name, options)
    with ThreadPoolExecutor(options.jobs) as pool:
        codes = list(pool.map(TaskRun.start, runs))
    failed = [run.name for run, code in zip(runs, codes, strict=True) if code]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
