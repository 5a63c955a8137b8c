"""Train bundled recipes with several seeds, unchanged and with one setting changed.

    python -m bench.seeds OUT [NAME …] --data FOLDER --jobs 4 [--changes byte-fallback]
                                                       one JSON file per recipe, change and seed
    python -m bench.seeds OUT --write                  docs/results/seeds.md

FOLDER contains one sub-folder per data set. Existing results are kept. `--seeds` selects the number
of seeds, `--first` the first one. `--set` changes every run.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.recipes import main_score, unit
from bench.searches import SEARCHES
from bench.tasks.page import format_score
from bench.tasks.registry import data_folder
from seqloom.config.loading.loader import load_recipe

PAGE = Path(__file__).parents[1] / "docs" / "results" / "seeds.md"
HEAD = """# Scores over several seeds

Written by `python -m bench.seeds OUT NAME … --data FOLDER --changes byte-fallback` and `--write`; there is one JSON file
per run in `seeds/`, with the training curve, versions and signatures. Test split; mean ± standard deviation over the seeds.
A difference below twice the deviation may be chance. Trained with torch {torch}.

| recipe | change | score | mean ± deviation | difference | parameters | steps | seeds | machine |
|---|---|---|---|---|---|---|---|---|
{rows}

## Searches

BLEU of several searches with the same weights, mean ± standard deviation over the seeds. The recipe uses the search that is best
on the dev split. MBR is minimum Bayes risk decoding with BLEU as its utility. The recipe's search is in bold. Written by
`python -m bench.seeds OUT NAME … --data FOLDER --searches` and `--write`.

| recipe | search | dev | test | seeds |
|---|---|---|---|---|
{searches}

## Signatures

{signatures}

## Choices

With `text.byte_fallback = true`, BLEU does not change beyond its deviation. It is off by default for another reason: the model
was hardly trained on single bytes, so it rarely translates them correctly. Without byte fallback, seqloom detects unknown
characters, copies them into the output and reports them.

For `multi30k-de-en`, a beam of 10 was best on the dev split twice: for seeds 1 to 3 among the searches above, and for seeds 4 to 6 among
beams of 5 and 10 with length penalties of 1.0, 1.2, 1.4 and 1.6 (`dev_by_search` in the JSON files).
The row "higher-rate" is `multi30k-de-en` with a learning rate of 2e-3, dropout 0.3 and 2,800 steps. The row "higher-rate-6000"
has this learning rate and, like the recipe, dropout 0.4 and 6,000 steps. With greedy search during training, the best dev BLEU is
45.73 for "higher-rate", 45.97 for "higher-rate-6000" and 45.93 for the recipe, on average over three seeds each (`curve` in the
JSON files). The differences are about as large as the spread of the seeds, so the recipe is unchanged.

The row "longer" has 9,000 steps. Its dev BLEU with a beam of 10 is 46.24 (`searches` in the JSON files), that of the recipe 46.13, a
difference below the spread of the seeds. Nine other changes were compared with the recipe on the dev split after 4,000 steps with
seed 11 and a beam of 10 (recipe 45.90): weight decay 0.3 (45.62) and 1.0 (45.38), subword sampling with a probability of 0.1 (43.83)
and the same with weight decay 0.3 (44.79), 5,000 pieces (45.57), a unigram vocabulary (45.39), label smoothing 0.2 (45.69), six
encoder and three decoder layers (45.19), and an averaging decay of 0.9995 (45.90: in so few steps, its window is the same). The command
is `seqloom train multi30k-de-en --set training.seed=11 --set training.steps=4000 --set training.evaluate_every=2000 --set
training.checkpoint_every=4000 --set SETTING`.

The row "beam-10" of `e2e` has the same weights as the recipe, decoded with a beam of 10. The files of the recipe's own row have only
BLEU, from the comparison of searches.

In the rows of `multi30k-de-en`, the seeds 4 to 6 were trained with compiled layers, the seeds 1 to 3 with the fused kernels that replaced
them. The row "beam-5" is older: its weights of seeds 1 to 3 are not those of the row above it.

For `wikitext2-lstm`, four settings were compared on the dev split after 6,000 steps with seed 11 and windows of 256 words: learning rate
2e-3 with weight decay 0.02 (perplexity 94.7), the same with batches of 4,096 tokens and 12,000 steps (97.0), 5e-3 with 0.1
(90.9), and 3e-3 with 0.3 (85.3, chosen). The command is `seqloom train wikitext2-lstm --set training.seed=11 --set
training.optimizer.learning_rate=RATE --set training.optimizer.weight_decay=DECAY`.

For `multi30k-de-en-fast`, three settings were compared on the dev split with seed 11: learning rate 1e-3 with R-Drop weight 5
(BLEU 43.3), 2e-3 with 5 (44.8, chosen) and 1.5e-3 with 3 (43.8). The command is `seqloom train multi30k-de-en-fast --set training.seed=11
--set training.optimizer.learning_rate=RATE --set training.r_drop=WEIGHT`.

For `multi30k-en-de`, a beam of 5 with a length penalty of 1.2 (row "length-penalty") was best on the dev split, but only by 0.01 BLEU, so that
the recipe keeps the default search.
"""
CHANGES: dict[str, Sequence[str]] = {
    "unchanged": [],
    "byte-fallback": ["text.byte_fallback=true"],
    "beam-5": ["decoding.width=5"],
    "beam-10": ["decoding={kind='beam', width=10}"],
    "higher-rate": [
        "training.steps=2800",
        "training.evaluate_every=2800",
        "training.checkpoint_every=2800",
        "training.optimizer.learning_rate=2e-3",
        "model.encoder.dropout=0.3",
        "model.decoder.dropout=0.3",
        "training.compile=auto",
    ],
    "higher-rate-6000": ["training.optimizer.learning_rate=2e-3", "training.compile=auto"],
    "longer": [
        "training.steps=9000",
        "training.evaluate_every=3000",
        "training.checkpoint_every=9000",
    ],
    "length-penalty": ["decoding.length_penalty=1.2"],
}
Result = dict[str, Any]


def result_name(recipe: str, change: str, seed: int) -> str:
    return f"{recipe}.{change}.seed{seed}"


def format_rows(results: dict[tuple[str, str], list[Result]]) -> list[str]:
    """One row per recipe and change. The difference is that to the unchanged recipe."""
    rows = []
    for recipe in sorted({recipe for recipe, _ in results}):
        base = [main_score(run)["value"] for run in results.get((recipe, "unchanged"), [])]
        for change in CHANGES:
            runs = results.get((recipe, change), [])
            if runs:
                score = main_score(runs[0])
                values = [main_score(run)["value"] for run in runs]
                mean = statistics.mean(values)
                spread = f" ± {statistics.stdev(values):.2g}" if len(values) > 1 else ""
                is_compared = base and change != "unchanged"
                difference = f"{mean - statistics.mean(base):+.2f}" if is_compared else ""
                steps = sorted({run["steps"] for run in runs})
                first, last = f"{steps[0]:,}", f"{steps[-1]:,}"
                rows.append(
                    f"| `{recipe}` | {'' if change == 'unchanged' else change} | {score['name']} "
                    f"| {format_score(mean)}{spread}{unit(score)} | {difference} "
                    f"| {runs[0]['parameters'] / 1e6:.1f} M | {first if first == last else f'{first} to {last}'} | {len(runs)} "
                    f"| {', '.join(sorted({run['machine'] for run in runs}))} |"
                )
    return rows


def format_searches(results: dict[tuple[str, str], list[Result]]) -> list[str]:
    """One row per recipe and search. The search of the recipe is in bold."""
    rows = []
    for (recipe, change), runs in sorted(results.items()):
        compared = [run["searches"] for run in runs if "searches" in run]
        if change != "unchanged" or not compared:
            continue
        chosen = load_recipe(recipe, ["data.folder=."]).config.decoding
        for label in compared[0]:
            mark = "**" if SEARCHES[label] == chosen else ""
            dev, test = (
                format_mean([searches[label][split] for searches in compared], 2)
                for split in ("dev", "test")
            )
            rows.append(
                f"| `{recipe}` | {mark}{label}{mark} | {mark}{dev}{mark} | {mark}{test}{mark} "
                f"| {len(compared)} |"
            )
    return rows


def format_mean(values: Sequence[float], digits: int) -> str:
    """The mean and, of several values, the standard deviation."""
    spread = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{spread}"


def page(results: dict[tuple[str, str], list[Result]]) -> str:
    runs = [run for group in results.values() for run in group]
    signatures = {run["recipe"]: main_score(run)["signature"] for run in runs}
    return HEAD.format(
        rows="\n".join(format_rows(results)),
        searches="\n".join(format_searches(results)),
        torch=", ".join(sorted({run["torch"] for run in runs})),
        signatures="\n".join(
            f"- `{recipe}`: {signature}" for recipe, signature in signatures.items() if signature
        ),
    )


def read_results(out: Path) -> dict[tuple[str, str], list[Result]]:
    """The results by recipe and change."""
    results = defaultdict(list)
    for path in sorted(out.glob("*.json")):
        result = json.loads(path.read_text())
        change = path.name.removeprefix(f"{result['recipe']}.").partition(".")[0]
        results[result["recipe"], change].append(result)
    return dict(results)


def run_job(recipe: str, change: str, seed: int, arguments: argparse.Namespace) -> int:
    """Train in a separate process, unless the result exists. Returns the exit code."""
    label = result_name(recipe, change, seed)
    if (arguments.out / f"{label}.json").exists():
        return 0
    settings = [*CHANGES[change], *arguments.settings, f"training.seed={seed}"]
    folder = data_folder(recipe)
    if folder is not None:
        if arguments.data is None:
            sys.exit(f"{recipe} requires --data FOLDER")
        settings.append(f"data.folder={arguments.data / folder}")
    command = [sys.executable, "-m", "bench.recipes", str(arguments.out), recipe, "--one"]
    command += [f"--label={label}", f"--jobs={arguments.jobs}"]
    command += [f"--set={setting}" for setting in settings]
    command += ["--searches"] if arguments.searches else []
    return subprocess.run(command, check=False).returncode


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.seeds",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--data", type=Path, help="folder with the folders of the data sets")
    parser.add_argument("--changes", nargs="+", choices=CHANGES, default=["unchanged"])
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds (default: 3)")
    parser.add_argument("--first", type=int, default=1, help="first seed (default: 1)")
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel runs (default: 1)")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument(
        "--searches", action="store_true", help="also compare the searches of bench.searches"
    )
    parser.add_argument("--write", action="store_true", help="write the page from the results")
    arguments = parser.parse_args()
    if arguments.write:
        PAGE.write_text(page(read_results(arguments.out)), encoding="utf-8")
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    jobs = [
        (recipe, change, seed)
        for seed in range(arguments.first, arguments.first + arguments.seeds)
        for recipe in arguments.names
        for change in arguments.changes
    ]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        codes = list(pool.map(lambda job: run_job(*job, arguments), jobs))
    failed = [result_name(*job) for job, code in zip(jobs, codes, strict=True) if code]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
