"""Train the low-resource recipes with and without their preset, and with single changes of it.

    python -m bench.low_resource OUT --data FOLDER --jobs 4    FOLDER holds menyo20k-yo-en and
                                                               iwslt14-de-en; one JSON file per run
    python -m bench.low_resource OUT --write                   docs/results/low-resource.md

Existing results are kept. `--recipes`, `--only` and `--seeds` select runs; `--set` changes every
run.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import seqloom
from bench.machine import accelerator_name
from bench.tricks.page import format_difference, format_spread
from bench.tricks.variants import both_sides
from seqloom.config.loading.loader import load_recipe
from seqloom.metrics.bleu import bleu, chrf

PAGE = Path(__file__).parents[1] / "docs" / "results" / "low-resource.md"
HEAD = """# Training on few sentence pairs

Written by `python -m bench.low_resource OUT --data FOLDER` and `--write`; there is one JSON file per run in
`low-resource/`. The bundled recipes with the preset `low-resource`, without it, and with one setting of it removed or
changed. Test split, beam 5; mean ± standard deviation over the seeds. Trained on {machine}, seqloom {seqloom}, torch {torch}.
Several runs shared the machine, so training times are upper bounds.
"""
PRESET = "preset low-resource"


@dataclass(frozen=True)
class LowResourceRecipe:
    """The folder of a recipe's data, and the tokenisation of sacreBLEU for its text."""

    folder: str
    tokenize: Any


RECIPES = {
    "menyo20k-yo-en": LowResourceRecipe("menyo20k-yo-en", "13a"),
    "menyo20k-en-yo": LowResourceRecipe("menyo20k-yo-en", "13a"),
    "iwslt14-lowres-de-en": LowResourceRecipe("iwslt14-de-en", "none"),
}
VARIANTS: dict[str, Sequence[str]] = {
    PRESET: [],
    "preset small": ["preset=small"],
    "+ subword sampling": ["text.sampling.alpha=0.1"],
    "- R-Drop": ["training.r_drop=0.0"],
    "R-Drop with α = 5 instead of 1": ["training.r_drop=5.0"],
    "+ word dropout 0.1": both_sides("embedding.word_dropout=0.1"),
    "+ dropout 0.1 inside attention and feed-forward": [
        *both_sides("attention.dropout=0.1"),
        *both_sides("feedforward_dropout=0.1"),
    ],
    "+ all of these, R-Drop with α = 5": [
        "text.sampling.alpha=0.1",
        "training.r_drop=5.0",
        *both_sides("embedding.word_dropout=0.1"),
        *both_sides("attention.dropout=0.1"),
        *both_sides("feedforward_dropout=0.1"),
    ],
    "dropout 0.1 instead of 0.3": both_sides("dropout=0.1"),
    "dropout 0.5 instead of 0.3": both_sides("dropout=0.5"),
    "label smoothing 0.3 instead of 0.1": ["training.label_smoothing=0.3"],
    "8,000 pieces instead of 3,000": ["text.tokenizer.size=8000"],
    "2 heads and feed-forward 512 instead of 4 and 1,024": [
        *both_sides("attention.heads=2"),
        *both_sides("feedforward=512"),
    ],
    "16,000 steps instead of 8,000": ["training.steps=16000"],
}


def result_name(recipe: str, variant: str, seed: int) -> str:
    return f"{recipe}.{[*VARIANTS].index(variant)}.seed{seed}"


def measure(recipe: str, variant: str, seed: int, arguments: argparse.Namespace) -> None:
    """Train a recipe, score its test split and write one JSON file."""
    facts = RECIPES[recipe]
    settings = [*VARIANTS[variant], *arguments.settings, f"training.seed={seed}"]
    folder = f"data.folder={arguments.data / facts.folder}"
    config = load_recipe(recipe, [folder, *settings]).config
    with tempfile.TemporaryDirectory() as temporary:
        start = time.monotonic()
        summary = seqloom.train(config, Path(temporary) / "run")
        seconds = time.monotonic() - start
        run = seqloom.load(Path(temporary) / "run")
        report = run.evaluate("test")
    references = [example.references for example in report.examples]
    score = bleu(report.outputs, references, tokenize=facts.tokenize)
    result = {
        "recipe": recipe,
        "variant": variant,
        "seed": seed,
        "settings": settings,
        "bleu": score.value,
        "signature": score.signature,
        "chrf": chrf(report.outputs, references).value,
        "seconds": round(seconds, 1),
        "steps": summary.step,
        "best_step": summary.best_step,
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
        "machine": accelerator_name(),
        "torch": torch.__version__,
        "seqloom": seqloom.__version__,
        "samples": report.outputs[:5],
    }
    path = arguments.out / f"{result_name(recipe, variant, seed)}.json"
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False))
    print(f"{path.stem} ({variant}): BLEU {score.value:.2f} after {seconds:.0f} s", flush=True)


def format_rows(results: Sequence[dict[str, Any]]) -> list[str]:
    """The rows of one recipe, in the order of the variants."""
    base = [result["bleu"] for result in results if result["variant"] == PRESET]
    rows = []
    for variant in VARIANTS:
        runs = [result for result in results if result["variant"] == variant]
        if runs:
            values = [run["bleu"] for run in runs]
            rows.append(
                f"| {variant} | {format_spread(values)} "
                f"| {'' if variant == PRESET else format_difference(values, base)} "
                f"| {format_spread([run['chrf'] for run in runs])} "
                f"| {runs[0]['parameters'] / 1e6:.1f} M | {runs[0]['steps']:,} "
                f"| {statistics.mean(run['seconds'] for run in runs):.0f} s | {len(runs)} |"
            )
    return rows


def page(results: Sequence[dict[str, Any]]) -> str:
    versions = {
        key: ", ".join(sorted({result[key] for result in results}))
        for key in ("machine", "seqloom", "torch")
    }
    lines = [HEAD.format(**versions)]
    for recipe in RECIPES:
        runs = [result for result in results if result["recipe"] == recipe]
        if runs:
            lines += [
                f"\n## {recipe}\n\nBLEU: {runs[0]['signature']}.\n",
                "| | BLEU | difference | chrF2 | parameters | steps | training time | seeds |",
                "|---|---|---|---|---|---|---|---|",
                *format_rows(runs),
            ]
    return "\n".join(lines) + "\n"


def run_job(job: tuple[str, str, int], arguments: argparse.Namespace) -> int:
    """Train in a separate process, unless the result exists. Returns the exit code."""
    if (arguments.out / f"{result_name(*job)}.json").exists():
        return 0
    command = [sys.executable, "-m", "bench.low_resource", str(arguments.out)]
    command += [f"--data={arguments.data}"]
    command += [f"--set={setting}" for setting in arguments.settings]
    return subprocess.run([*command, "--one", *map(str, job)], check=False).returncode


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.low_resource",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, help="folder with the folders of the data sets")
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds (default: 3)")
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel runs (default: 1)")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--write", action="store_true", help="write the page from the results")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write:
        paths = sorted(arguments.out.glob("*.json"))
        PAGE.write_text(page([json.loads(path.read_text()) for path in paths]), encoding="utf-8")
        return
    if arguments.data is None:
        parser.error("training requires --data FOLDER")
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.one:
        recipe, variant, seed = arguments.one
        measure(recipe, variant, int(seed), arguments)
        return
    jobs = [
        (recipe, variant, seed)
        for seed in range(1, arguments.seeds + 1)
        for recipe in arguments.recipes
        for variant in arguments.only
    ]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        codes = list(pool.map(lambda job: run_job(job, arguments), jobs))
    failed = [result_name(*job) for job, code in zip(jobs, codes, strict=True) if code]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
