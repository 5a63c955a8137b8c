"""Check that the tests notice bugs: put one bug after another into a copy of the source, and run tests.

    python -m tools.mutants                     all bugs of tools/mutants.toml
    python -m tools.mutants --only "beam" --jobs 2
    python -m tools.mutants --write             also write docs/results/mutants.md

Each bug lists the tests that should notice it. The exit status is 1 if a bug survives, that is, if all of its
tests pass. All listed tests must pass without a bug; the program checks this first.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench.machine import describe_measurement

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tools" / "mutants.toml"
TABLE = ROOT / "docs" / "results" / "mutants.md"
TIMEOUT = 600
"""Maximum seconds of the tests of one bug. A bug that makes them run longer counts as noticed."""
PYTEST = ("-m", "pytest", "-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", "-m", "not long")
PASSED = 0
"""Exit status of pytest if all tests pass."""
HEAD = """# Bugs that the tests notice

Written by `python -m tools.mutants --write`; `make campaign` repeats it. Each row is a bug that the program puts into a copy of the
source. "Noticed" means that at least one of the tests listed for the bug fails. `tools/mutants.toml` contains the exact changes.

"""


@dataclass(frozen=True)
class Mutant:
    """A bug: a text in a file of src/seqloom, and the text that replaces it.

    area:  the subject of the code
    bug:   what the changed code does wrong
    tests: the tests that should notice the bug, as arguments of pytest
    """

    area: str
    bug: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def apply(self, source: Path) -> str:
        """Return the changed content of the file. Raises ValueError if `old` does not occur once.

        source: folder that contains `seqloom`
        """
        text = (source / "seqloom" / self.file).read_text(encoding="utf-8")
        if (count := text.count(self.old)) != 1:
            raise ValueError(
                f"{self.bug}: the old text occurs {count} times in {self.file}. Change the entry in "
                f"{LIST.relative_to(ROOT)} so that it occurs once."
            )
        return text.replace(self.old, self.new)


def read_mutants() -> list[Mutant]:
    entries = tomllib.loads(LIST.read_text(encoding="utf-8"))["mutant"]
    return [Mutant(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]


def run_tests(
    source: Path, tests: Sequence[str], timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run tests with the package in another source folder.

    timeout: maximum number of seconds. Default: None, no maximum
    """
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join((str(source), str(ROOT))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, *PYTEST, *tests],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def is_noticed(mutant: Mutant) -> bool:
    """True if a test of this bug fails or does not end."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source)
        changed = mutant.apply(source)
        (source / "seqloom" / mutant.file).write_text(changed, encoding="utf-8")
        try:
            return run_tests(source, mutant.tests, TIMEOUT).returncode != PASSED
        except subprocess.TimeoutExpired:
            return True


def check_tests_pass(mutants: Sequence[Mutant]) -> None:
    """Exit with the output of pytest if a listed test fails without a bug."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    result = run_tests(ROOT / "src", tests)
    if result.returncode != PASSED:
        sys.exit(f"{result.stdout}{result.stderr}\nthese tests fail without a bug")


def format_table(results: Sequence[tuple[Mutant, bool]]) -> str:
    noticed = sum(is_noticed for _, is_noticed in results)
    rows = [
        f"| {mutant.area} | {mutant.bug} | `{mutant.file}` | {'noticed' if found else '**survived**'} |"
        for mutant, found in results
    ]
    facts = "; ".join(f"{key} {value}" for key, value in describe_measurement().items())
    summary = f"{noticed} of {len(results)} bugs are noticed ({facts}).\n\n"
    columns = "| area | bug | file | result |\n|---|---|---|---|\n"
    return HEAD + summary + columns + "\n".join(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--only", default="", help="only bugs whose area, description or file has this text"
    )
    parser.add_argument(
        "--jobs", type=int, default=2, help="number of bugs to test at a time; default: 2"
    )
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.relative_to(ROOT)}")
    options = parser.parse_args()
    mutants = [m for m in read_mutants() if options.only in f"{m.area} {m.bug} {m.file}"]
    if not mutants:
        sys.exit(f"no bug has the text {options.only!r}")
    for mutant in mutants:
        mutant.apply(ROOT / "src")
    check_tests_pass(mutants)
    results: list[tuple[Mutant, bool]] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for mutant, found in zip(mutants, pool.map(is_noticed, mutants), strict=True):
            print(f"{'noticed ' if found else 'SURVIVED'}  {mutant.area}: {mutant.bug}", flush=True)
            results.append((mutant, found))
    survivors = [mutant for mutant, found in results if not found]
    print(f"{len(results) - len(survivors)} of {len(results)} bugs noticed")
    if options.write:
        TABLE.write_text(format_table(results), encoding="utf-8")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()
