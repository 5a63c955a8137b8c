"""One run trained and decoded in several ways, or the ensemble of a variant's runs."""

import json
import platform
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import seqloom
from bench.tricks.variants import ALL, BASE, DATASETS, DECODINGS, FEW, config_of
from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.toml import format_recipe, parse_toml
from seqloom.config.schema.decoding import DecodingConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.data.readers.splits import merge_references, read_split
from seqloom.metrics.bleu import bleu, chrf, lowercased_bleu
from seqloom.runs.run import Run


@dataclass(frozen=True)
class Job:
    """What one process does. seed None: the ensemble of all seeds that were trained.

    out:  one JSON a job, and its outputs line by line
    work: the run folders, which may go afterwards
    """

    dataset: str
    variant: str
    seed: int | None
    out: Path
    work: Path
    multi30k: str | None
    settings: Sequence[str]

    @property
    def label(self) -> str:
        slug = re.sub(r"[^a-z0-9]+", "-", _spelled(self.variant).lower()).strip("-")
        end = "ensemble" if self.seed is None else f"seed{self.seed}"
        return f"{self.dataset}.{slug}.{end}"

    @property
    def result(self) -> Path:
        return self.out / f"{self.label}.json"

    def folder(self, seed: int | None) -> Path:
        """The run's, of this seed."""
        return self.work / self.label.replace(self.label.rsplit(".", 1)[1], f"seed{seed}")


def _spelled(name: str) -> str:
    """Signs that a file's name cannot hold, in words."""
    for sign, word in (("+ ", "with "), ("- ", "without "), ("α = ", ""), ("√", "root ")):
        name = name.replace(sign, word)
    return name


def measure(job: Job) -> None:
    """Train or join, decode in every way that is asked for, write it all down."""
    dataset = DATASETS[job.dataset]
    variant = next(one for one in dataset.variants if one.name == job.variant)
    config = config_of(dataset, variant, job.multi30k, job.settings)
    record: dict[str, Any] = {
        "dataset": job.dataset,
        "variant": job.variant,
        "seed": job.seed,
        "settings": [*variant.settings, *job.settings],
        "machine": torch.cuda.get_device_name()
        if torch.cuda.is_available()
        else platform.machine(),
        "torch": torch.__version__,
        "seqloom": seqloom.__version__,
    }
    if job.seed is None:
        seeds = [seed for seed in range(1, 100) if job.folder(seed).is_dir()]
        run = seqloom.load([job.folder(seed) for seed in seeds])
        names = ["beam 5"]
        record["seeds"] = seeds
    else:
        record |= _train(config, job.seed, job.folder(job.seed))
        run = seqloom.load(job.folder(job.seed))
        names = list(DECODINGS) if job.variant in (BASE, ALL) else FEW
    record["parameters"] = sum(one.numel() for one in run.model.parameters())
    record["decodings"], outputs = decode(run, config, names)
    (job.out / f"{job.label}.txt").write_text("".join(f"{line}\n" for line in outputs))
    job.result.write_text(json.dumps(record, indent=1, ensure_ascii=False))
    if job.variant not in (BASE, ALL):
        shutil.rmtree(job.folder(job.seed))
    print(f"{job.label}: BLEU {record['decodings']['beam 5']['bleu']:.2f}", flush=True)


def _train(config: RunConfig, seed: int, folder: Path) -> dict[str, Any]:
    """From raw text to the last step: everything a user waits for."""
    shutil.rmtree(folder, ignore_errors=True)
    config = load_recipe(
        parse_toml(format_recipe(config).encode()), [f"training.seed={seed}"]
    ).config
    began = time.monotonic()
    summary = seqloom.train(config, folder)
    if summary.step < config.training.steps:
        raise SystemExit(f"stopped at step {summary.step}: no result")
    return {
        "seconds": round(time.monotonic() - began, 1),
        "steps": summary.step,
        "best_step": summary.best_step,
    }


def decode(
    run: Run, config: RunConfig, names: Sequence[str]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Scores of every decoding on the test split, and the outputs of a beam of five."""
    examples = list(read_split(config.data, "test"))
    if config.data.merge_references:
        examples = merge_references(examples)
    texts = [one.source for one in examples]
    references = [one.references for one in examples]
    found, kept = {}, [""] * len(texts)
    for name in names:
        began = time.monotonic()
        outputs = [
            one.text
            for one in run.translate(texts, decoding=_decoding(config, name), attention=False)
        ]
        seconds = time.monotonic() - began
        kept = outputs if name == "beam 5" else kept
        cased = bleu(outputs, references)
        lower = lowercased_bleu(outputs, references)
        found[name] = {
            "bleu": cased.value,
            "signature": cased.signature,
            "lowercased": lower.value,
            "lowercased_signature": lower.signature,
            "chrf": chrf(outputs, references).value,
            "seconds": round(seconds, 2),
        }
    return found, kept


def _decoding(config: RunConfig, name: str) -> DecodingConfig:
    return load_recipe(parse_toml(format_recipe(config).encode()), DECODINGS[name]).config.decoding


def write_references(job: Job) -> None:
    """The test split's first references, for scores that are computed later."""
    dataset = DATASETS[job.dataset]
    data = config_of(dataset, dataset.variants[0], job.multi30k, job.settings).data
    lines = [one.target for one in read_split(data, "test")]
    path = job.out / f"{job.dataset}.references.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
