"""Train the bundled recipes and record their scores.

    python -m bench.recipes OUT [NAME …] --jobs 5 --data FOLDER     train; one JSON file per recipe
    python -m bench.recipes OUT --write                             write the scores into the headers
                                                                    of the recipes

FOLDER contains one sub-folder per data set. Without it, recipes that need a data set are skipped.

NAME may be the file of a recipe that is not bundled yet and has a line `# MEASURED` in its header:
`--write` bundles it with its scores. Parallel recipes run in separate processes and share the
machine, so their times are upper bounds.
"""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any

from bench.machine import accelerator_name
from bench.searches import score_searches
from bench.tasks.page import format_score
from bench.tasks.registry import TASKS, data_folder
from bench.tricks.moses import moses_bleu
from seqloom.config.schema.corpora import ParallelConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import ForecastConfig

RECIPES = Path(str(files("seqloom").joinpath("recipes")))
README = Path(__file__).parents[1] / "README.md"
SEEDS = Path(__file__).parents[1] / "docs" / "results" / "seeds"
"""Results of `bench.seeds`."""
MODELS = ("plain", "attention", "transformer")
README_ROWS = {
    "Tatoeba German→English (BLEU)": [f"tatoeba-de-en-{model}" for model in MODELS],
    "Tatoeba English→French (BLEU)": [f"tatoeba-en-fr-{model}" for model in MODELS],
    "case change, exact match on held-out sentences": ["case-plain", "case-attention", ""],
    "Multi30k German→English, test 2016 (BLEU)": ["", "multi30k-de-en-attention", "multi30k-de-en"],
}
"""The recipes of the three columns of each row. "" is an empty cell."""
MAIN_SCORES = {
    **dict.fromkeys(("case-plain", "case-attention", "case-rnn"), ("exact-match",)),
    **dict.fromkeys(("questions", "scenes"), ("exact-match",)),
    **dict.fromkeys(("frames-label", "gesture-label"), ("accuracy",)),
    "robot": ("ade",),
}
"""The most important score of recipes that are not in `bench.tasks` and not scored by BLEU."""
GOAL = "# Should reach: "
MEASURED = "# Measured: "
TABLE = """# Results of the bundled recipes

Written by `python -m bench.recipes OUT --jobs N --data FOLDER` and `--write`; there is one JSON file per recipe in
`recipes/`, with the training curve, versions and signatures. Test split, seed 1 unless another seed is given. Training times
of recipes that ran in parallel are upper bounds. Trained with torch {torch}. Batches on a CPU differ from those on a GPU, so
the same recipe and seed reach another score there; [seeds.md](seeds.md) has means over several seeds, from other trainings.
Tatoeba is the bundled sample; pairs with the same source are merged into one example with several references. Multi30k is
test_2016_flickr, raw text, cased except for `multi30k-en-de`, which is lower-cased on both sides. BLEU is computed by
sacreBLEU with beam 5, or as the recipe says. Case change, questions and scenes use exact match and greedy search. Language models are scored by perplexity per subword and
END (Tatoeba) or per word and end of line (WikiText-2), and by nats per character including ends of lines (Shakespeare). The
tasks of [tasks.md](tasks.md) use the usual scores of their fields. For `tatoeba-languages`, the score is that of all six directions
together; two of them have no training data. `eth-ucy` forecasts the scene `eth`; tasks.md has the mean of five scenes. If a
recipe stops early, the table has the number of steps it took.

| recipe | parameters | steps | score | chrF2 | trained |
|---|---|---|---|---|---|
{rows}
"""


def measure(
    name: str,
    out: Path,
    overrides: list[str],
    label: str,
    parallel: int,
    compare_searches: bool = False,
) -> None:
    """Train one recipe, score its test split and write one JSON file.

    label:            name of the result file
    parallel:         number of recipes that share the machine
    compare_searches: also score the outputs of all searches in `bench.searches`
    """
    import torch

    import seqloom
    from seqloom.config.loading.loader import load_recipe
    from seqloom.training.event_log import Event

    threads = os.environ.get("OMP_NUM_THREADS")
    if threads:
        torch.set_num_threads(int(threads))
    config = load_recipe(name, overrides).config
    curve: list[dict[str, object]] = []

    def record_event(event: Event) -> None:
        if event.kind in ("start", "evaluate"):
            curve.append({"event": event.kind, "step": event.step, **event.data})

    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        summary = seqloom.train(config, Path(folder) / "run", report=record_event)
        seconds = time.monotonic() - start
        lowercase = Path(name).stem.startswith("multi30k")
        report, outputs = evaluate(Path(folder) / "run", config, lowercase)
        result = {
            "recipe": Path(name).stem,
            "text": Path(name).read_text() if Path(name).is_file() else None,
            "overrides": overrides,
            "seconds": round(seconds, 1),
            "at_once": parallel,
            "machine": accelerator_name(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "seed": config.training.seed,
            "parameters": curve[0]["parameters"],
            "steps": summary.step,
            "best_step": summary.best_step,
            "curve": curve,
            "report": report | {"run": Path(name).stem},
            "outputs": outputs[:10],
            "moses": moses_score(outputs, config),
        }
        result = remove_paths(result)
        write_result(result, outputs, out, label)
        if compare_searches:
            searches: dict[str, dict[str, float]] = {}
            result["searches"] = searches
            for search, scores in score_searches(Path(folder) / "run"):
                searches[search] = scores
                write_result(result, outputs, out, label)
                print(f"{label}, {search}: {scores}", flush=True)
    values = {score["name"]: round(score["value"], 2) for score in report["scores"]}
    print(f"{label}: {values} after {seconds:.0f} s", flush=True)


def write_result(result: dict[str, Any], outputs: Sequence[str], out: Path, label: str) -> None:
    (out / f"{label}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False))
    if result["recipe"].startswith("multi30k"):  # input of bench.tricks.moses
        (out / f"{label}.txt").write_text("".join(f"{line}\n" for line in outputs))


def remove_paths(result: dict[str, Any]) -> dict[str, Any]:
    """Remove the paths of data and run folders. Only the name of the data folder remains."""
    overrides = [
        f"data.folder={Path(setting.partition('=')[2]).name}"
        if setting.startswith("data.folder=")
        else setting
        for setting in result["overrides"]
    ]
    curve = [{key: event[key] for key in event if key != "folder"} for event in result["curve"]]
    report = dict(result["report"])
    data = report.get("data")
    if isinstance(data, dict) and data.get("folder"):
        report["data"] = {**data, "folder": Path(data["folder"]).name}
    return {**result, "overrides": overrides, "curve": curve, "report": report}


def evaluate(
    folder: Path, config: RunConfig, lowercase: bool
) -> tuple[dict[str, Any], Sequence[str]]:
    """The report of the test split, and the outputs if they are texts."""
    import seqloom

    if isinstance(config.task, ForecastConfig):
        return seqloom.load_forecaster(folder).evaluate("test").to_json(), ()
    report = seqloom.load(folder).evaluate("test", lowercase=lowercase)
    return report.to_json(), report.outputs


def moses_score(outputs: Sequence[str], config: RunConfig) -> tuple[float, str] | None:
    """BLEU and signature as published for Multi30k. None for other data or without sacremoses."""
    from seqloom.data.readers.splits import read_split

    corpus = config.data.test[0] if config.data.test else None
    if not isinstance(corpus, ParallelConfig) or not isinstance(corpus.target, str):
        return None
    if "test_2016" not in corpus.target:
        return None
    references = [example.target for example in read_split(config.data, "test")]
    return moses_bleu(outputs, references, corpus.target.split(".")[1])


def main_score(result: dict[str, Any]) -> dict[str, Any]:
    """The most important score of a recipe."""
    name = result["recipe"]
    keys = TASKS[name].scores if name in TASKS else MAIN_SCORES.get(name, ("bleu", "perplexity"))
    scores = {
        score["name"].lower().replace(" ", "-"): score for score in result["report"]["scores"]
    }
    return next(scores[key] for key in keys if key in scores)


def unit(score: dict[str, Any]) -> str:
    """ "%" for accuracies and error rates, otherwise empty."""
    name = score["name"]
    is_share = name.startswith("exact match") or name == "accuracy" or name.endswith("error rate")
    return " %" if is_share else ""


def measured_line(result: dict[str, Any]) -> str:
    """The line "Measured" in the header of a recipe."""
    score = main_score(result)
    signature = f" ({score['signature']})" if score["signature"] else ""
    return (
        f"{score['name']} {format_score(score['value'])}{unit(score)} on the test split{signature}, "
        f"{result['parameters']:,} parameters, {result['steps']} steps, seed {result['seed']}, "
        f"{training_time(result)}{result['machine']}, torch {result['torch']}"
    )


def seed_scores(recipe: str) -> list[float]:
    """The main scores of the unchanged recipe, one per seed in docs/results/seeds."""
    paths = sorted(SEEDS.glob(f"{recipe}.unchanged.seed*.json"))
    return [main_score(json.loads(path.read_text()))["value"] for path in paths]


def expected_line(result: dict[str, Any]) -> str:
    """The line "Should reach" in the header of a recipe: slightly worse than the worst measured seed."""
    score = main_score(result)
    worst = min if score["higher_is_better"] else max
    value = worst([score["value"], *seed_scores(result["recipe"])])
    if unit(score) and score["higher_is_better"]:
        return f"{score['name']} {value - 0.4:.1f} % or more"
    if not score["higher_is_better"]:
        return f"{score['name']} {format_score(1.02 * value)}{unit(score)} or less"
    return f"{score['name']} {value - 1:.0f} or more"


def training_time(result: dict[str, Any]) -> str:
    """The training time on a GPU. Times on shared CPUs are not comparable."""
    if not result["machine"].startswith("NVIDIA"):
        return "on "
    suffix = " beside other runs" if result.get("at_once", 2) > 1 else ""
    return f"{result['seconds']:.0f} s{suffix} on one "


def seed_note(result: dict[str, Any]) -> str:
    """The seed, if it is not 1."""
    return "" if result["seed"] == 1 else f" (seed {result['seed']})"


def moses_note(result: dict[str, Any]) -> str:
    """BLEU of lower-cased, Moses-tokenised text, for recipes of Multi30k."""
    moses = result.get("moses")
    return f" (Moses-tokenised, lower-cased {moses[0]:.1f})" if moses else ""


def write_results(out: Path) -> None:
    """Write the scores into the headers of the recipes, a table and the README."""
    rows, results = [], {}
    for path in sorted(out.glob("*.json")):
        result = json.loads(path.read_text())
        if result["recipe"] != path.stem:
            continue  # a changed recipe, or one of several runs of a task
        results[result["recipe"]] = result
        recipe = RECIPES / f"{result['recipe']}.toml"
        if result.get("text") and not recipe.exists():
            changes = [
                setting for setting in result["overrides"] if not setting.startswith("data.folder=")
            ]
            assert not changes, f"{path} was measured with {changes}. Add them to the recipe first."
            recipe.write_text(result["text"])
        header = f"{GOAL}{expected_line(result)}.\n{MEASURED}{measured_line(result)}."
        text = re.sub(
            r"^(# Should reach: .*\n)?# M(EASURED|easured: .*)$",
            header,
            recipe.read_text(),
            flags=re.M,
        )
        recipe.write_text(text)
        score = main_score(result)
        chrf = next((each for each in result["report"]["scores"] if each["name"] == "chrF2"), None)
        rows.append(
            f"| `{result['recipe']}` | {result['parameters'] / 1e6:.1f} M | {result['steps']:,} "
            f"| {score['name']} **{format_score(score['value'])}**{seed_note(result)}{moses_note(result)} "
            f"| {'' if chrf is None else format(chrf['value'], '.1f')} "
            f"| {training_time(result)}{result['machine']} |"
        )
    versions = ", ".join(sorted({result["torch"] for result in results.values()}))
    (out.parent / "recipes.md").write_text(TABLE.format(rows="\n".join(rows), torch=versions))
    write_readme(results)
    print(f"Wrote {len(rows)} recipes, {out.parent / 'recipes.md'} and README.md")


def format_cell(result: dict[str, Any]) -> str:
    """The main score of a recipe: mean ± standard deviation if several seeds were measured."""
    score = main_score(result)
    values = seed_scores(result["recipe"])
    if len(values) < 2:
        return f"{score['value']:.1f}{unit(score)}"
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}{unit(score)}"


def write_readme(results: dict[str, dict[str, Any]]) -> None:
    """Update the table of results in the README.

    A recipe with results in docs/results/seeds is shown as mean ± standard deviation over the seeds.
    """
    text = README.read_text()
    for label, names in README_ROWS.items():
        cells = []
        for name in names:
            cells.append(format_cell(results[name]) if name in results else "–")
        row = f"| {label} | {' | '.join(cells)} |"
        text, count = re.subn(rf"^\| {re.escape(label)} \|.*$", row, text, flags=re.M)
        assert count == 1, f"README.md has no row for {label}"
    README.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.recipes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel runs (default: 1)")
    parser.add_argument("--data", type=Path, help="folder with the folders of the data sets")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--label", help="name of the result (default: that of the recipe)")
    parser.add_argument(
        "--searches", action="store_true", help="also compare searches, only with one recipe"
    )
    parser.add_argument("--write", action="store_true", help="write the scores of the results")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.write:
        write_results(arguments.out)
        return
    if arguments.one:
        [name] = arguments.names
        measure(
            name,
            arguments.out,
            arguments.overrides,
            arguments.label or Path(name).stem,
            arguments.jobs,
            arguments.searches,
        )
        return
    names = arguments.names or sorted(path.stem for path in RECIPES.glob("*.toml"))

    def run_recipe(name: str) -> int:
        options = [f"--set={setting}" for setting in arguments.overrides]
        folder = data_folder(Path(name).stem)
        if folder is not None:
            if arguments.data is None:
                print(f"{name}: skipped, because it requires --data FOLDER")
                return 0
            options.append(f"--set=data.folder={arguments.data / folder}")
        options += [f"--label={arguments.label}"] if arguments.label else []
        command = [
            sys.executable,
            "-m",
            "bench.recipes",
            str(arguments.out),
            name,
            "--one",
            *options,
        ]
        command.append(f"--jobs={arguments.jobs}")
        return subprocess.run(command, check=False).returncode

    with ThreadPoolExecutor(arguments.jobs) as pool:
        codes = list(pool.map(run_recipe, names))
    failed = [name for name, code in zip(names, codes, strict=True) if code]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
