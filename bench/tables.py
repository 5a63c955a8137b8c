"""Writes the generated parts of the pages in docs and of the README from the stored results.

A generated part is between two comments. The first one names a study or program, and, for a study, a
table and its arguments:

    <!-- figures: tricks training multi30k-de-en -->
    …
    <!-- end of figures -->

A table of a study is declared in its TOML file, or is a function of its module with the arguments
(study, records, *arguments). A program has a function `table(results)`.
"""

import re
import shlex
import statistics
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bench import store
from bench.programs import PROGRAMS
from bench.store import ROOT, Record
from bench.study import Change, Study, load_study, study_names

PART = re.compile(r"(<!-- figures: (.+?) -->\n).*?(\n<!-- end of figures -->)", re.DOTALL)
EARLIER = {"training-cpu-aarch64": "training-cpu"}
"""Results of another machine, and the program that measured them."""


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def write_pages(names: Sequence[str] = ()) -> list[Path]:
    """Update the generated parts of these studies and programs, or all. Returns the changed pages."""
    changed = []
    for path in pages():
        text = path.read_text(encoding="utf-8")
        updated = update(text, names)
        if updated != text:
            path.write_text(updated, encoding="utf-8")
            changed.append(path)
    return changed


def update(text: str, names: Sequence[str] = (), folder: Path = store.STORE) -> str:
    """The text of a page with the present figures."""

    def replace(match: re.Match[str]) -> str:
        name, *arguments = shlex.split(match[2])
        if names and name not in names:
            return match[0]
        return f"{match[1]}\n{render(name, arguments, folder).strip()}\n{match[3]}"

    return PART.sub(replace, text)


def render(name: str, arguments: Sequence[str], folder: Path = store.STORE) -> str:
    """The Markdown of a generated part."""
    content = store.read(name, folder)
    if name not in study_names():
        if list(arguments) == ["about"]:
            return origin(content["about"])
        program = PROGRAMS[EARLIER.get(name, name)]
        table: Callable[..., str] = import_module(program.module).table
        return table(content, *arguments)
    study = load_study(name)
    kind, *rest = arguments
    if kind in ("about", "versions"):
        return (about if kind == "about" else versions)(content, *rest)
    if kind in study.tables:
        return changes_table(study, content or [], study.tables[kind], *rest)
    return study.find(kind)(study, content or [], *rest)


def origin(about: dict[str, Any]) -> str:
    """A line with the machine, versions, date and command of a measurement."""
    facts = [about["machine"]]
    facts += [
        f"{name} {about[name.lower()]}" for name in ("Python", "torch") if name.lower() in about
    ]
    facts += [f"CTranslate2 {about['CTranslate2']}"] if "CTranslate2" in about else []
    facts += [f"{about['threads']} threads"] if "threads" in about else []
    facts += [f"seed {about['seed']}"] if "seed" in about else []
    facts += [about["date"]] if "date" in about else []
    return f"*{'; '.join(facts)}; `{about['command']}`.*"


def about(records: Sequence[Record], recipe: str | None = None, *scores: str) -> str:
    """Machine, versions and `--set` options of the records, and the signatures of these scores."""
    chosen = [each for each in records if recipe in (None, each["recipe"])]
    facts = {
        key: ", ".join(sorted({str(each[key]) for each in chosen}))
        for key in ("machine", "seqloom", "torch")
        if key in chosen[0]
    }
    parts = [f"{key} {value}" for key, value in facts.items() if key != "machine"]
    text = f"Trained on {', '.join([facts['machine'], *parts])}"
    if options := " ".join(f"--set {setting}" for setting in chosen[0].get("settings", ())):
        text += f", with `{options}`"
    signatures = {name: value for each in chosen for name, value in each["signatures"].items()}
    lines = [f"{name}: {signatures[name]}." for name in scores if name in signatures]
    return "\n".join([f"{text}.", *lines])


def versions(records: Sequence[Record]) -> str:
    return f"Trained with torch {', '.join(sorted({each['torch'] for each in records}))}."


def values_of(records: Sequence[Record], names: str) -> list[float]:
    """A score of each record that has it. "A|B" is B for records without A."""
    found = (
        next((each["scores"][name] for name in names.split("|") if name in each["scores"]), None)
        for each in records
    )
    return [value for value in found if value is not None]


def changes_table(study: Study, records: Sequence[Record], table: Any, recipe: str) -> str:
    """A row per change of a recipe that has records.

    A column is a list: its heading, a kind, and the arguments of the kind (`CELLS`).
    """
    rows = []
    for change in study.changes.values():
        runs = store.select(records, recipe, change.name)
        if runs and "tried" not in change.facts:
            cells = [
                CELLS[kind](runs, change, lambda name: store.select(records, recipe, name), *rest)
                for _, kind, *rest in table["columns"]
            ]
            rows.append([change.title, *cells])
    return markdown([table.get("head", ""), *(column[0] for column in table["columns"])], rows)


Runs = Sequence[Record]
Others = Callable[[str], Runs]
"""The records of another change of the same recipe."""


def mean_cell(runs: Runs, change: Change, others: Others, score: str, missing: str = "") -> str:
    values = values_of(runs, score)
    # Outputs that are not kept cannot be scored again: only their mean and deviation are stored.
    stored = next((run["means"][score] for run in runs if score in run.get("means", ())), missing)
    return format_spread(values) if values else stored


def difference_cell(
    runs: Runs, change: Change, others: Others, score: str, base: str, fact: str = ""
) -> str:
    """The difference to the base, which a fact of the change can name."""
    base = change.facts.get(fact, base)
    if change.name == base:
        return ""
    return format_difference(values_of(runs, score), values_of(others(base), score))


CELLS: dict[str, Callable[..., str]] = {
    "mean": mean_cell,
    "difference": difference_cell,
    "parameters": lambda runs, *_: f"{runs[0]['parameters'] / 1e6:.1f} M",
    "steps": lambda runs, *_: f"{runs[0]['steps']:,}",
    "seconds": lambda runs, *_: f"{mean_seconds(runs):.0f} s",
    "count": lambda runs, *_: f"{len(runs)}",
    "loss": lambda runs, _change, _others, step: format_spread(
        [run["losses"][step] for run in runs], 3
    ),
    "dev": lambda runs, _change, _others, key: format_spread([run["dev"][key] for run in runs], 3),
    "fact": lambda runs, change, others, key: str(change.facts.get(key, "")),
}


def mean_seconds(runs: Runs) -> float:
    return statistics.mean(run["seconds"] for run in runs)


def format_spread(values: Sequence[float], digits: int = 1) -> str:
    """Mean ± standard deviation."""
    deviation = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{deviation}"


def format_difference(values: Sequence[float], base: Sequence[float]) -> str:
    """The difference of the means, with a sign."""
    return f"{statistics.mean(values) - statistics.mean(base):+.1f}" if base else ""


def format_score(value: float) -> str:
    """Format a score with one decimal, or three significant digits below 10."""
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    return "\n".join([lines[0].replace("|  |", "| |"), "|" + "---|" * len(head), *lines[1:]])
