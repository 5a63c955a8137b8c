"""Train the bundled recipes and write down what each of them reaches.

    python -m bench.recipes OUT [NAME …] --jobs 5 --data FOLDER     train, one JSON each in OUT
    python -m bench.recipes OUT --write                             put the figures into the
                                                                    recipes' headers

FOLDER holds the data sets, each in a folder of its own; recipes that need one are left out without.

NAME may be a file, a recipe that is not bundled yet (with a line `# MEASURED` in its header):
`--write` bundles it together with its figures. Recipes run side by side, each in a process of its
own, so their times are upper bounds.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any

from bench.tasks.page import shown
from bench.tasks.table import TASKS, folder_of
from bench.tricks.moses import moses_bleu
from seqloom.config.schema.corpora import ParallelConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import ForecastConfig

RECIPES = Path(str(files("seqloom").joinpath("recipes")))
README = Path(__file__).parents[1] / "README.md"
KINDS = ("plain", "attention", "transformer")
README_ROWS = {
    "Tatoeba German→English (BLEU)": [f"tatoeba-de-en-{kind}" for kind in KINDS],
    "Tatoeba English→French (BLEU)": [f"tatoeba-en-fr-{kind}" for kind in KINDS],
    "case change, exact match on held-out sentences": ["case-plain", "case-attention", ""],
    "Multi30k German→English, test 2016 (BLEU)": ["", "multi30k-de-en-attention", "multi30k-de-en"],
}
"""Three columns of recipes; "" where there is none."""
GOAL = "# Should reach: "
MARK = "# Measured: "
TABLE = """# What the bundled recipes reach

Made by `python -m bench.recipes OUT --jobs N --data FOLDER` and `--write`; one JSON file for each
recipe, with its whole curve, versions and signatures, lies in `recipes/`. Test split, seed {seed}.
Times of recipes that ran side by side are upper bounds.
Tatoeba: the bundled sample, sentences that occur several times merged into one with several
references. Multi30k: test_2016_flickr, raw text, cased but for `multi30k-en-de`, which is
lower-cased on both sides. BLEU is sacreBLEU's, beam 5; case change
is exact match, greedy. Language models are scored by perplexity: per subword and END (Tatoeba), or per word and
end of line (WikiText-2); Shakespeare by nats per character, ends of lines included; the tasks of `tasks.md` by what
their fields use.

| recipe | parameters | steps | score | chrF2 | trained |
|---|---|---|---|---|---|
{rows}
"""


def measure(name: str, out: Path, overrides: list[str], label: str, at_once: int) -> None:
    """Train one recipe, score it on its test split, write one JSON file."""
    import torch

    import seqloom
    from seqloom.config.loading.loader import load_recipe
    from seqloom.training.event_log import Event

    threads = os.environ.get("OMP_NUM_THREADS")
    if threads:
        torch.set_num_threads(int(threads))
    config = load_recipe(name, overrides).config
    curve: list[dict[str, object]] = []

    def watch(event: Event) -> None:
        if event.kind in ("start", "evaluate"):
            curve.append({"event": event.kind, "step": event.step, **event.data})

    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        summary = seqloom.train(config, Path(folder) / "run", report=watch)
        seconds = time.monotonic() - began
        lowercase = Path(name).stem.startswith("multi30k")
        report, outputs = evaluated(Path(folder) / "run", config, lowercase)
    cuda = torch.cuda.is_available()
    result = {
        "recipe": Path(name).stem,
        "text": Path(name).read_text() if Path(name).is_file() else None,
        "overrides": overrides,
        "seconds": round(seconds, 1),
        "at_once": at_once,
        "machine": torch.cuda.get_device_name() if cuda else platform.machine(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "seed": config.training.seed,
        "parameters": curve[0]["parameters"],
        "steps": summary.step,
        "best_step": summary.best_step,
        "curve": curve,
        "report": report | {"run": Path(name).stem},
        "outputs": outputs[:10],
        "moses": moses_of(outputs, config),
    }
    result = without_places(result)
    (out / f"{label}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False))
    if Path(name).stem.startswith("multi30k"):  # for bench.tricks.moses
        (out / f"{label}.txt").write_text("".join(f"{line}\n" for line in outputs))
    figures = {score["name"]: round(score["value"], 2) for score in report["scores"]}
    print(f"{label}: {figures} after {seconds:.0f} s", flush=True)


def without_places(result: dict[str, Any]) -> dict[str, Any]:
    """The same without where data and run lay on the machine: a data set goes by its own name."""
    overrides = [
        f"data.folder={Path(one.partition('=')[2]).name}" if one.startswith("data.folder=") else one
        for one in result["overrides"]
    ]
    curve = [{key: event[key] for key in event if key != "folder"} for event in result["curve"]]
    report = dict(result["report"])
    data = report.get("data")
    if isinstance(data, dict) and data.get("folder"):
        report["data"] = {**data, "folder": Path(data["folder"]).name}
    return {**result, "overrides": overrides, "curve": curve, "report": report}


def evaluated(
    folder: Path, config: RunConfig, lowercase: bool
) -> tuple[dict[str, Any], Sequence[str]]:
    """What a run reaches on its test split, and its outputs, where they are texts."""
    import seqloom

    if isinstance(config.task, ForecastConfig):
        return seqloom.load_forecaster(folder).evaluate("test").to_json(), ()
    report = seqloom.load(folder).evaluate("test", lowercase=lowercase)
    return report.to_json(), report.outputs


def moses_of(outputs: Sequence[str], config: RunConfig) -> tuple[float, str] | None:
    """The kind of BLEU that is published for Multi30k, where sacremoses is installed."""
    from seqloom.data.readers.splits import read_split

    corpus = config.data.test[0] if config.data.test else None
    if not isinstance(corpus, ParallelConfig) or "test_2016" not in corpus.target:
        return None
    references = [one.target for one in read_split(config.data, "test")]
    return moses_bleu(outputs, references, corpus.target.split(".")[1])


def headline(result: dict[str, Any]) -> dict[str, Any]:
    """The score by which a recipe is judged."""
    name = result["recipe"]
    usual = ("exact-match",) if name.startswith("case") else ("bleu", "perplexity")
    wanted = TASKS[name].scores if name in TASKS else usual
    scores = {
        score["name"].lower().replace(" ", "-"): score for score in result["report"]["scores"]
    }
    return next(scores[key] for key in wanted if key in scores)


def unit(score: dict[str, Any]) -> str:
    """Shares are percentages; BLEU and the like are not."""
    name = score["name"]
    share = name.startswith("exact match") or name == "accuracy" or name.endswith("error rate")
    return " %" if share else ""


def line(result: dict[str, Any]) -> str:
    """One line of figures, with all that is needed to understand them."""
    score = headline(result)
    signature = f" ({score['signature']})" if score["signature"] else ""
    return (
        f"{score['name']} {shown(score['value'])}{unit(score)} on the test split{signature}, "
        f"{result['parameters']:,} parameters, {result['steps']} steps, seed {result['seed']}, "
        f"{time_of(result)}{result['machine']}, torch {result['torch']}"
    )


def goal(result: dict[str, Any]) -> str:
    """What anyone who runs the recipe should see: a little less than was measured once."""
    score = headline(result)
    value = score["value"]
    if unit(score) and score["higher_is_better"]:
        return f"{score['name']} {value - 0.4:.1f} % or more"
    if not score["higher_is_better"]:
        return f"{score['name']} {shown(1.02 * value)}{unit(score)} or less"
    return f"{score['name']} {value - 1:.0f} or more"


def time_of(result: dict[str, Any]) -> str:
    """How long it took, where that says anything: a shared CPU's seconds do not."""
    gpu = result["machine"].startswith("NVIDIA")
    if not gpu:
        return "on "
    beside = " beside other runs" if result.get("at_once", 2) > 1 else ""
    return f"{result['seconds']:.0f} s{beside} on one "


def published(result: dict[str, Any]) -> str:
    """BLEU of lower-cased, Moses-tokenised text, where a recipe's field publishes that."""
    moses = result.get("moses")
    return f" (Moses-tokenised, lower-cased {moses[0]:.1f})" if moses else ""


def write(out: Path) -> None:
    """Put the figures into the recipes' headers, a table beside the results, and the README."""
    rows, results = [], {}
    for path in sorted(out.glob("*.json")):
        result = json.loads(path.read_text())
        if result["recipe"] != path.stem:
            continue  # a recipe that was changed for a trial, or for one run of several
        results[result["recipe"]] = result
        recipe = RECIPES / f"{result['recipe']}.toml"
        if result.get("text"):
            changes = [one for one in result["overrides"] if not one.startswith("data.folder=")]
            assert not changes, f"{path}: measured with {changes}; put them into the recipe first"
            recipe.write_text(result["text"])
        header = f"{GOAL}{goal(result)}.\n{MARK}{line(result)}."
        text = re.sub(
            r"^(# Should reach: .*\n)?# M(EASURED|easured: .*)$",
            header,
            recipe.read_text(),
            flags=re.M,
        )
        recipe.write_text(text)
        score = headline(result)
        chrf = next((s for s in result["report"]["scores"] if s["name"] == "chrF2"), None)
        rows.append(
            f"| `{result['recipe']}` | {result['parameters'] / 1e6:.1f} M | {result['steps']:,} "
            f"| {score['name']} **{shown(score['value'])}**{published(result)} "
            f"| {'' if chrf is None else format(chrf['value'], '.1f')} "
            f"| {time_of(result)}{result['machine']} |"
        )
    (out.parent / "recipes.md").write_text(TABLE.format(rows="\n".join(rows), **result))
    write_readme(results)
    print(f"{len(rows)} recipes, {out.parent / 'recipes.md'} and README.md written")


def write_readme(results: dict[str, dict[str, Any]]) -> None:
    """The README's table: without attention, with it, and the Transformer, row by row."""
    text = README.read_text()
    for label, names in README_ROWS.items():
        cells = []
        for name in names:
            result = results.get(name)
            score = None if result is None else headline(result)
            cells.append("–" if score is None else f"{score['value']:.1f}{unit(score)}")
        row = f"| {label} | {' | '.join(cells)} |"
        text, found = re.subn(rf"^\| {re.escape(label)} \|.*$", row, text, flags=re.M)
        assert found == 1, f"README.md has no row for {label}"
    README.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--data", type=Path, help="the folder of all data sets")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--label", help="name of the result, if not the recipe's")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.write:
        write(chosen.out)
        return
    if chosen.one:
        [name] = chosen.names
        measure(name, chosen.out, chosen.overrides, chosen.label or Path(name).stem, chosen.jobs)
        return
    names = chosen.names or sorted(path.stem for path in RECIPES.glob("*.toml"))

    def start(name: str) -> int:
        extra = [f"--set={one}" for one in chosen.overrides]
        folder = folder_of(Path(name).stem)
        if folder is not None:
            if chosen.data is None:
                print(f"{name}: left out, it needs --data FOLDER")
                return 0
            extra.append(f"--set=data.folder={chosen.data / folder}")
        extra += [f"--label={chosen.label}"] if chosen.label else []
        command = [sys.executable, "-m", "bench.recipes", str(chosen.out), name, "--one", *extra]
        command.append(f"--jobs={chosen.jobs}")
        return subprocess.run(command, check=False).returncode

    with ThreadPoolExecutor(chosen.jobs) as pool:
        failed = [name for name, code in zip(names, pool.map(start, names), strict=True) if code]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
