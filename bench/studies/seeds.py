"""The tables of docs/results/seeds.md."""

import statistics
from collections.abc import Sequence

from bench import store
from bench.store import Record
from bench.studies.recipes import by_file_name, main_score, unit
from bench.study import Study, load_study
from bench.tables import format_score, format_spread, markdown
from seqloom.config.loading.loader import load_recipe

TASKS = load_study("recipes").recipes
HEAD = (
    "recipe",
    "change",
    "score",
    "mean ± deviation",
    "difference",
    "parameters",
    "steps",
    "seeds",
)


def table(study: Study, records: Sequence[Record]) -> str:
    """One row per recipe and change. The difference is that to the unchanged recipe."""
    rows = []
    for name in sorted(study.recipes):
        base = store.select(records, name, "unchanged")
        for change in study.recipes[name].changes:
            runs = store.select(records, name, change)
            if not runs:
                continue
            score = main_score(TASKS.get(name), runs[0])
            values = [run["scores"][score] for run in runs]
            mean = statistics.mean(values)
            spread = f" ± {statistics.stdev(values):.2g}" if len(values) > 1 else ""
            difference = ""
            if base and change != "unchanged":
                difference = f"{mean - statistics.mean(run['scores'][score] for run in base):+.2f}"
            steps = sorted({run["steps"] for run in runs})
            rows.append(
                [
                    f"`{name}`",
                    "" if change == "unchanged" else change,
                    score,
                    f"{format_score(mean)}{spread}{unit(score)}",
                    difference,
                    f"{runs[0]['parameters'] / 1e6:.1f} M",
                    " to ".join(f"{count:,}" for count in dict.fromkeys((steps[0], steps[-1]))),
                    str(len(runs)),
                    ", ".join(sorted({run["machine"] for run in runs})),
                ]
            )
    return markdown([*HEAD, "machine"], rows)


def searches(study: Study, records: Sequence[Record]) -> str:
    """One row per unchanged recipe and search. The search of the recipe is in bold."""
    rows = []
    for name in sorted(study.recipes):
        runs = [run for run in store.select(records, name, "unchanged") if "decodings" in run]
        for search in runs[0]["decodings"] if runs else ():
            settings = ["data.folder=.", *study.decodings[search]["settings"]]
            chosen, compared = (
                load_recipe(name, each).config.decoding for each in (settings[:1], settings)
            )
            mark = "**" if chosen == compared else ""
            cells = [search]
            for split in ("dev", "test"):
                values = [run["decodings"][search][split]["BLEU"] for run in runs]
                cells.append(format_spread(values, 2))
            rows.append([f"`{name}`", *(f"{mark}{cell}{mark}" for cell in cells), str(len(runs))])
    return markdown(["recipe", "search", "dev", "test", "seeds"], rows)


def signatures(study: Study, records: Sequence[Record]) -> str:
    found = {}
    for record in by_file_name(records):
        signature = record["signatures"].get(main_score(TASKS.get(record["recipe"]), record))
        if signature:
            found[record["recipe"]] = signature
    return "\n".join(f"- `{recipe}`: {signature}" for recipe, signature in found.items())
