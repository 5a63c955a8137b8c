"""What helps when pairs are few: the recipes for low resource with and without their preset.

    python -m bench.scarce OUT --data FOLDER --jobs 4      FOLDER holds menyo20k-yo-en and
                                                           iwslt14-de-en; one JSON each in OUT
    python -m bench.scarce OUT --write                     docs/results/low-resource.md

What is there already is not done again. `--recipes`, `--only` and `--seeds` choose; `--set` changes
every run.
"""

import argparse
import json
import platform
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
from bench.tricks.table import difference, spread
from bench.tricks.variants import both
from seqloom.config.loading.loader import load_recipe
from seqloom.metrics.bleu import bleu, chrf

PAGE = Path(__file__).parents[1] / "docs" / "results" / "low-resource.md"
HEAD = """# What helps when pairs are few

Made by `python -m bench.scarce OUT --data FOLDER` and `--write`: one JSON file for each run lies in
`low-resource/`. The bundled recipes with the preset `low-resource`, without it, and with one thing of it taken away
or changed. Test split, beam 5; means over the seeds, ± their standard deviation. Trained on {machine},
seqloom {seqloom}, torch {torch}; runs shared the machine, so their seconds are upper bounds.
"""
WHOLE = "preset low-resource"


@dataclass(frozen=True)
class Scarce:
    """A recipe, the folder of its data, and how sacreBLEU finds the words of its text."""

    folder: str
    tokenize: Any


RECIPES = {
    "menyo20k-yo-en": Scarce("menyo20k-yo-en", "13a"),
    "menyo20k-en-yo": Scarce("menyo20k-yo-en", "13a"),
    "iwslt14-lowres-de-en": Scarce("iwslt14-de-en", "none"),
}
VARIANTS: dict[str, Sequence[str]] = {
    WHOLE: [],
    "preset small": ["preset=small"],
    "+ subwords cut in random ways": ["text.sampling.alpha=0.1"],
    "- R-Drop": ["training.r_drop=0.0"],
    "- R-Drop, α = 1, but 5": ["training.r_drop=5.0"],
    "+ one word in ten left out": both("embedding.word_dropout=0.1"),
    "+ dropout 0.1 inside attention and feed-forward": [
        *both("attention.dropout=0.1"),
        *both("feedforward_dropout=0.1"),
    ],
    "+ all of these, R-Drop with α = 5": [
        "text.sampling.alpha=0.1",
        "training.r_drop=5.0",
        *both("embedding.word_dropout=0.1"),
        *both("attention.dropout=0.1"),
        *both("feedforward_dropout=0.1"),
    ],
    "- dropout 0.3, but 0.1": both("dropout=0.1"),
    "- dropout 0.3, but 0.5": both("dropout=0.5"),
    "- label smoothing 0.1, but 0.3": ["training.label_smoothing=0.3"],
    "- 3,000 pieces, but 8,000": ["text.tokenizer.size=8000"],
    "- 4 heads and 1,024, but 2 and 512": [*both("attention.heads=2"), *both("feedforward=512")],
    "- 8,000 steps, but 16,000": ["training.steps=16000"],
}


def label(recipe: str, variant: str, seed: int) -> str:
    return f"{recipe}.{[*VARIANTS].index(variant)}.seed{seed}"


def measure(recipe: str, variant: str, seed: int, chosen: argparse.Namespace) -> None:
    """Train, score the test split, write one JSON file."""
    scarce = RECIPES[recipe]
    settings = [*VARIANTS[variant], *chosen.settings, f"training.seed={seed}"]
    folder = f"data.folder={chosen.data / scarce.folder}"
    config = load_recipe(recipe, [folder, *settings]).config
    with tempfile.TemporaryDirectory() as temporary:
        began = time.monotonic()
        summary = seqloom.train(config, Path(temporary) / "run")
        seconds = time.monotonic() - began
        run = seqloom.load(Path(temporary) / "run")
        report = run.evaluate("test")
    references = [one.references for one in report.examples]
    score = bleu(report.outputs, references, tokenize=scarce.tokenize)
    cuda = torch.cuda.is_available()
    record = {
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
        "parameters": sum(one.numel() for one in run.model.parameters()),
        "machine": torch.cuda.get_device_name() if cuda else platform.machine(),
        "torch": torch.__version__,
        "seqloom": seqloom.__version__,
        "samples": report.outputs[:5],
    }
    path = chosen.out / f"{label(recipe, variant, seed)}.json"
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False))
    print(f"{path.stem} ({variant}): BLEU {score.value:.2f} after {seconds:.0f} s", flush=True)


def rows_of(results: Sequence[dict[str, Any]]) -> list[str]:
    """One recipe's, in the order of the variants."""
    base = [one["bleu"] for one in results if one["variant"] == WHOLE]
    rows = []
    for variant in VARIANTS:
        own = [one for one in results if one["variant"] == variant]
        if own:
            values = [one["bleu"] for one in own]
            rows.append(
                f"| {variant} | {spread(values)} "
                f"| {'' if variant == WHOLE else difference(values, base)} "
                f"| {spread([one['chrf'] for one in own])} "
                f"| {own[0]['parameters'] / 1e6:.1f} M | {own[0]['steps']:,} "
                f"| {statistics.mean(one['seconds'] for one in own):.0f} s | {len(own)} |"
            )
    return rows


def page(results: Sequence[dict[str, Any]]) -> str:
    listed = {key: ", ".join(sorted({one[key] for one in results})) for key in ("machine", "seqloom", "torch")}  # fmt: skip
    lines = [HEAD.format(**listed)]
    for recipe in RECIPES:
        own = [one for one in results if one["recipe"] == recipe]
        if own:
            lines += [
                f"\n## {recipe}\n\nBLEU: {own[0]['signature']}.\n",
                "| | BLEU | to the preset | chrF2 | parameters | steps | trained | seeds |",
                "|---|---|---|---|---|---|---|---|",
                *rows_of(own),
            ]
    return "\n".join(lines) + "\n"


def start(job: tuple[str, str, int], chosen: argparse.Namespace) -> int:
    """In a process of its own; nothing if its result is there."""
    if (chosen.out / f"{label(*job)}.json").exists():
        return 0
    command = [sys.executable, "-m", "bench.scarce", str(chosen.out), f"--data={chosen.data}"]
    command += [f"--set={setting}" for setting in chosen.settings]
    return subprocess.run([*command, "--one", *map(str, job)], check=False).returncode


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.scarce",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, help="folder with the folders of the data sets")
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.write:
        PAGE.write_text(page([json.loads(path.read_text()) for path in sorted(chosen.out.glob("*.json"))]))  # fmt: skip
        return
    if chosen.data is None:
        parser.error("--data FOLDER is needed to train")
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.one:
        recipe, variant, seed = chosen.one
        measure(recipe, variant, int(seed), chosen)
        return
    jobs = [
        (recipe, variant, seed)
        for seed in range(1, chosen.seeds + 1)
        for recipe in chosen.recipes
        for variant in chosen.only
    ]
    with ThreadPoolExecutor(chosen.jobs) as pool:
        codes = list(pool.map(lambda job: start(job, chosen), jobs))
    failed = [label(*job) for job, code in zip(jobs, codes, strict=True) if code]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
