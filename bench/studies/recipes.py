"""The tables of the recipes and tasks, and the headers of the bundled recipes."""

import re
import statistics
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from bench import store
from bench.store import Record
from bench.study import Recipe, Study
from bench.tables import format_score, format_spread, markdown

RECIPES = Path(str(files("seqloom").joinpath("recipes")))
MODELS = ("plain", "attention", "transformer")
README_ROWS = {
    "Tatoeba German→English (BLEU)": [f"tatoeba-de-en-{model}" for model in MODELS],
    "Tatoeba English→French (BLEU)": [f"tatoeba-en-fr-{model}" for model in MODELS],
    "case change, exact match on held-out sentences": ["case-plain", "case-attention", ""],
    "Multi30k German→English, test 2016 (BLEU)": ["", "multi30k-de-en-attention", "multi30k-de-en"],
}
"""The recipes of the three columns of each row. "" is an empty cell."""
GOAL = "# Should reach: "
MEASURED = "# Measured: "
DEFAULT_SCORES = ("bleu", "perplexity")


def key_of(score: str) -> str:
    """The key of a score in recipes, from its name in tables."""
    return score.lower().replace(" ", "-")


def main_score(recipe: Recipe | None, record: Record) -> str:
    """The name of the most important score of a recipe that the record has."""
    keys = recipe.facts.get("scores", DEFAULT_SCORES) if recipe else DEFAULT_SCORES
    names = {key_of(name): name for name in record["scores"]}
    return next(names[key] for key in keys if key in names)


def unit(score: str) -> str:
    """ "%" for accuracies and error rates, otherwise empty."""
    is_share = score.startswith("exact match") or score.endswith("error rate")
    return " %" if is_share or score == "accuracy" else ""


def seed_records(recipe: str, folder: Path = store.STORE) -> list[Record]:
    """The records of the study `seeds` for an unchanged recipe, one per seed."""
    return store.select(store.read("seeds", folder) or [], recipe, "unchanged")


def is_shared(record: Record) -> bool:
    """True if other runs shared the machine during the training."""
    return int(record.get("parallel", 1)) > 1


def by_file_name(records: Sequence[Record]) -> list[Record]:
    return sorted(records, key=lambda each: f"{each['recipe']}.{each['change']}.{each['seed']}")


def bundled(study: Study, records: Sequence[Record]) -> list[Record]:
    """The records of unchanged bundled recipes."""
    names = {name for name, recipe in study.recipes.items() if recipe.recipe == name}
    return [each for each in by_file_name(records) if each["recipe"] in names]


def table(study: Study, records: Sequence[Record]) -> str:
    """All bundled recipes."""
    rows = []
    for record in bundled(study, records):
        name = main_score(study.recipes[record["recipe"]], record)
        seed = "" if record["seed"] == 1 else f" (seed {record['seed']})"
        moses = record["scores"].get("Moses")
        moses_note = f" (Moses-tokenised, lower-cased {moses:.1f})" if moses else ""
        chrf = record["scores"].get("chrF2")
        rows.append(
            [
                f"`{record['recipe']}`",
                f"{record['parameters'] / 1e6:.1f} M",
                f"{record['steps']:,}",
                f"{name} **{format_score(record['scores'][name])}**{seed}{moses_note}",
                "" if chrf is None else f"{chrf:.1f}",
                f"{training_time(record)}{record['machine']}",
            ]
        )
    return markdown(["recipe", "parameters", "steps", "score", "chrF2", "trained"], rows)


def training_time(record: Record) -> str:
    """The training time on a GPU. Times on shared CPUs are not comparable."""
    if not record["machine"].startswith("NVIDIA"):
        return "on "
    suffix = " beside other runs" if is_shared(record) else ""
    return f"{record['seconds']:.0f} s{suffix} on one "


def tasks(study: Study, records: Sequence[Record]) -> str:
    """The tasks with published results. A task of several recipes has their mean."""
    rows = []
    for recipe, results in task_results(study, records):
        facts = recipe.facts
        shown = names_of(recipe, results[0])
        ours = [
            format_score(statistics.mean(each["scores"][name] for each in results))
            for name in shown
        ]
        seeds = str(results[0]["seed"])
        repeated = seed_records(recipe.name)
        if len(repeated) > 1:
            ours = [format_deviation([each["scores"][name] for each in repeated]) for name in shown]
            seeds = f"{repeated[0]['seed']} to {repeated[-1]['seed']}"
        first = results[0]
        rows.append(
            [
                facts["task"],
                f"`{recipe.name}`",
                "; ".join(key_of(name).replace("-", " ") for name in shown),
                f"**{'; '.join(ours)}**",
                facts.get("published", "–"),
                f"{first['parameters'] / 1e6:.1f} M",
                f"{first['steps']:,}",
                seeds,
                task_time(results),
                facts.get("source", ""),
            ]
        )
    head = [
        "task",
        "recipe",
        "scores",
        "ours",
        "published",
        "parameters",
        "steps",
        "seed",
        "trained",
    ]
    return markdown([*head, "published by"], rows)


def task_results(study: Study, records: Sequence[Record]) -> list[tuple[Recipe, list[Record]]]:
    """The tasks of which all results are stored."""
    stored = {each["recipe"]: each for each in records}
    found = []
    for recipe in study.recipes.values():
        names = recipe.facts.get("mean_of", [recipe.name])
        if "task" in recipe.facts and all(name in stored for name in names):
            found.append((recipe, [stored[name] for name in names]))
    return found


def names_of(recipe: Recipe, record: Record) -> list[str]:
    """The scores of a task that the record has."""
    names = {key_of(name): name for name in record["scores"]}
    return [names[key] for key in recipe.facts["scores"] if key in names]


def format_deviation(values: Sequence[float]) -> str:
    return f"{format_score(statistics.mean(values))} ± {statistics.stdev(values):.1g}"


def task_time(results: Sequence[Record]) -> str:
    machine = results[0]["machine"]
    if not machine.startswith("NVIDIA"):
        return f"on {machine}"
    bound = "≤ " if any(map(is_shared, results)) else ""
    return f"{bound}{sum(each['seconds'] for each in results):.0f} s, {machine}"


def task_signatures(study: Study, records: Sequence[Record]) -> str:
    lines = [
        f"- `{recipe.name}` {name}: {signature}"
        for recipe, results in task_results(study, records)
        for name, signature in results[0]["signatures"].items()
        if key_of(name) in recipe.facts["scores"]
    ]
    measured = {
        f"torch {each['torch']} on Python {each['python']}"
        for _, results in task_results(study, records)
        for each in results
    }
    return "\n".join([*lines, "", f"Measured with {', '.join(sorted(measured))}."])


def readme(study: Study, records: Sequence[Record]) -> str:
    """The table of the README: mean ± deviation if several seeds were measured."""
    stored = {each["recipe"]: each for each in records}

    def cell(name: str) -> str:
        if name not in stored:
            return "–"
        score = main_score(study.recipes[name], stored[name])
        values = [each["scores"][score] for each in seed_records(name)]
        return f"{format_spread(values or [stored[name]['scores'][score]])}{unit(score)}"

    rows = [[label, *map(cell, names)] for label, names in README_ROWS.items()]
    return markdown(["", "without attention", "with attention", "Transformer"], rows)


def measured_line(study: Study, record: Record) -> str:
    """The line "Measured" in the header of a recipe."""
    score = main_score(study.recipes[record["recipe"]], record)
    signature = record["signatures"].get(score)
    return (
        f"{score} {format_score(record['scores'][score])}{unit(score)} on the test split"
        f"{f' ({signature})' if signature else ''}, {record['parameters']:,} parameters, "
        f"{record['steps']} steps, seed {record['seed']}, {training_time(record)}{record['machine']}, "
        f"torch {record['torch']}"
    )


def expected_line(study: Study, record: Record, folder: Path = store.STORE) -> str:
    """The line "Should reach" in the header: slightly worse than the worst measured seed."""
    score = main_score(study.recipes[record["recipe"]], record)
    values = [each["scores"][score] for each in (record, *seed_records(record["recipe"], folder))]
    if score in record.get("lower_is_better", ()):
        return f"{score} {format_score(1.02 * max(values))}{unit(score)} or less"
    if unit(score):
        return f"{score} {min(values) - 0.4:.1f} % or more"
    return f"{score} {min(values) - 1:.0f} or more"


def write_headers(study: Study, records: Sequence[Record]) -> None:
    """Write the scores into the headers of the bundled recipes."""
    for record in bundled(study, records):
        path = RECIPES / f"{record['recipe']}.toml"
        header = f"{GOAL}{expected_line(study, record)}.\n{MEASURED}{measured_line(study, record)}."
        text = path.read_text(encoding="utf-8")
        present = re.search(
            r"^(# Should reach: .*\n)?# M(EASURED|easured: .*)$", text, re.MULTILINE
        )
        assert present is not None, f"{path} has no line # MEASURED"
        updated = f"{text[: present.start()]}{header}{text[present.end() :]}"
        path.write_text(updated, encoding="utf-8")


def robot(study: Study, records: Sequence[Record]) -> str:
    """The effect of the context on the recipe `robot`, by seed."""
    rows = [
        [
            title,
            *(f"{each['scores']['ADE']:.2f}" for each in store.select(records, name, "unchanged")),
        ]
        for title, name in (
            ("with context", "robot.with-context"),
            ("without context", "robot.without-context"),
        )
    ]
    return markdown(["", "seed 1", "seed 2", "seed 3"], rows)
