"""Train the recipe of every task and set what it reaches beside what is published.

    python -m bench.tasks OUT [NAME …] --data FOLDER --jobs 4     train, one JSON each in OUT
    python -m bench.tasks OUT --write                             docs/results/tasks.md

What is there already is not done again. FOLDER holds the data sets, each in a folder of its own. A
recipe whose data are not there is named and left out. With OUT = docs/results/recipes,
`python -m bench.recipes OUT --write` puts the figures into the recipes.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench.tasks.page import page
from bench.tasks.table import TASKS, Task, label_of, recipe_of

PAGE = Path(__file__).parents[2] / "docs" / "results" / "tasks.md"


@dataclass(frozen=True)
class Job:
    """One run of one recipe, in a process of its own."""

    recipe: str
    run: str
    settings: Sequence[str]
    out: Path
    at_once: int

    @property
    def label(self) -> str:
        return label_of(self.recipe, self.run)

    def command(self) -> list[str]:
        return [
            *(sys.executable, "-m", "bench.recipes", str(self.out)),
            *(recipe_of(self.recipe), "--one"),
            *(f"--set={setting}" for setting in self.settings),
            *(f"--label={self.label}", f"--jobs={self.at_once}"),
        ]

    def start(self) -> int:
        """Nothing if its result is there."""
        if (self.out / f"{self.label}.json").exists():
            return 0
        return subprocess.run(self.command(), check=False).returncode


def obstacle(task: Task, data: Path | None) -> str | None:
    """Why a task cannot be measured now."""
    if task.folder is None:
        return None
    if data is None:
        return "it needs --data FOLDER"
    folder = data / task.folder
    return None if folder.is_dir() else f"there is no folder {folder}"


def jobs_of(recipe: str, chosen: argparse.Namespace) -> list[Job]:
    task = TASKS[recipe]
    own = [] if task.folder is None else [f"data.folder={chosen.data / task.folder}"]
    return [
        Job(
            recipe, run, [*own, *task.changes, *settings, *chosen.settings], chosen.out, chosen.jobs
        )
        for run, settings in task.runs.items()
    ]


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.tasks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="left out: all tasks")
    parser.add_argument("--data", type=Path, help="the folder of all data sets")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--write", action="store_true")
    return parser


def main() -> None:
    parser = arguments()
    chosen = parser.parse_intermixed_args()
    unknown = sorted(set(chosen.names) - set(TASKS))
    if unknown:
        parser.error(f"there is no task {', '.join(unknown)}; there are {', '.join(TASKS)}")
    if chosen.write:
        text = page(chosen.out)
        if text is None:
            parser.error(f"{chosen.out}: there is no result to write about")
        PAGE.write_text(text, encoding="utf-8")
        print(f"{PAGE} written")
        return
    chosen.out.mkdir(parents=True, exist_ok=True)
    jobs: list[Job] = []
    for recipe in chosen.names or TASKS:
        reason = obstacle(TASKS[recipe], chosen.data)
        if reason is not None:
            print(f"{recipe}: left out: {reason}")
            continue
        jobs += jobs_of(recipe, chosen)
    with ThreadPoolExecutor(chosen.jobs) as pool:
        codes = list(pool.map(Job.start, jobs))
    failed = [job.label for job, code in zip(jobs, codes, strict=True) if code]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
