"""Train and decode one run, or decode the ensemble of the runs of a variant."""

import json
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import seqloom
from bench.machine import accelerator_name
from bench.tricks.variants import ALL, BASE, BASIC_DECODINGS, DATASETS, DECODINGS, config_of
from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.toml import format_recipe, parse_toml
from seqloom.config.schema.decoding import DecodingConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.data.readers.splits import merge_references, read_split
from seqloom.inference.run import Run
from seqloom.metrics.bleu import bleu, chrf, lowercased_bleu


@dataclass(frozen=True)
class Job:
    """The work of one process.

    seed:     None for the ensemble of all trained seeds
    out:      folder of the results: a JSON file and the outputs, one per line
    work:     folder of the run folders
    multi30k: folder with the raw files of Multi30k
    settings: changes to every run
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
        slug = re.sub(r"[^a-z0-9]+", "-", _spell_out(self.variant).lower()).strip("-")
        suffix = "ensemble" if self.seed is None else f"seed{self.seed}"
        return f"{self.dataset}.{slug}.{suffix}"

    @property
    def result(self) -> Path:
        return self.out / f"{self.label}.json"

    def folder(self, seed: int | None) -> Path:
        """The run folder of this seed."""
        return self.work / self.label.replace(self.label.rsplit(".", 1)[1], f"seed{seed}")


def _spell_out(name: str) -> str:
    """Replace characters that a file name cannot contain by words."""
    for sign, word in (("+ ", "with "), ("- ", "without "), ("α = ", ""), ("√", "root ")):
        name = name.replace(sign, word)
    return name


def measure(job: Job) -> None:
    """Train a run or load an ensemble, decode the test split and write the results."""
    dataset = DATASETS[job.dataset]
    variant = next(each for each in dataset.variants if each.name == job.variant)
    config = config_of(dataset, variant, job.multi30k, job.settings)
    result: dict[str, Any] = {
        "dataset": job.dataset,
        "variant": job.variant,
        "seed": job.seed,
        "settings": [*variant.settings, *job.settings],
        "machine": accelerator_name(),
        "torch": torch.__version__,
        "seqloom": seqloom.__version__,
    }
    if job.seed is None:
        seeds = [seed for seed in range(1, 100) if job.folder(seed).is_dir()]
        run = seqloom.load([job.folder(seed) for seed in seeds])
        decodings = ["beam 5"]
        result["seeds"] = seeds
    else:
        result |= _train(config, job.seed, job.folder(job.seed))
        run = seqloom.load(job.folder(job.seed))
        decodings = list(DECODINGS) if job.variant in (BASE, ALL) else BASIC_DECODINGS
    result["parameters"] = sum(parameter.numel() for parameter in run.model.parameters())
    result["decodings"], outputs = decode(run, config, decodings)
    (job.out / f"{job.label}.txt").write_text("".join(f"{line}\n" for line in outputs))
    job.result.write_text(json.dumps(result, indent=1, ensure_ascii=False))
    if job.variant not in (BASE, ALL):
        shutil.rmtree(job.folder(job.seed))
    print(f"{job.label}: BLEU {result['decodings']['beam 5']['bleu']:.2f}", flush=True)


def _train(config: RunConfig, seed: int, folder: Path) -> dict[str, Any]:
    """Train from raw text to the last step. Returns time and steps."""
    shutil.rmtree(folder, ignore_errors=True)
    config = load_recipe(
        parse_toml(format_recipe(config).encode()), [f"training.seed={seed}"]
    ).config
    start = time.monotonic()
    summary = seqloom.train(config, folder)
    if summary.step < config.training.steps:
        raise SystemExit(f"Training stopped at step {summary.step}: there is no result.")
    return {
        "seconds": round(time.monotonic() - start, 1),
        "steps": summary.step,
        "best_step": summary.best_step,
    }


def decode(
    run: Run, config: RunConfig, names: Sequence[str]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The scores of each decoding on the test split, and the outputs of beam 5."""
    examples = list(read_split(config.data, "test"))
    if config.data.merge_references:
        examples = merge_references(examples)
    texts = [example.source for example in examples]
    references = [example.references for example in examples]
    scores, beam_outputs = {}, [""] * len(texts)
    for name in names:
        start = time.monotonic()
        outputs = [
            prediction.text
            for prediction in run.translate(
                texts,
                decoding=_decoding_config(config, name),
                attention=False,
                split=False,
                pass_through=False,
            )
        ]
        seconds = time.monotonic() - start
        beam_outputs = outputs if name == "beam 5" else beam_outputs
        cased = bleu(outputs, references)
        lowercased = lowercased_bleu(outputs, references)
        scores[name] = {
            "bleu": cased.value,
            "signature": cased.signature,
            "lowercased": lowercased.value,
            "lowercased_signature": lowercased.signature,
            "chrf": chrf(outputs, references).value,
            "seconds": round(seconds, 2),
        }
    return scores, beam_outputs


def _decoding_config(config: RunConfig, name: str) -> DecodingConfig:
    return load_recipe(parse_toml(format_recipe(config).encode()), DECODINGS[name]).config.decoding


def write_references(job: Job) -> None:
    """Write the first reference of each test example, for scores computed later."""
    dataset = DATASETS[job.dataset]
    data = config_of(dataset, dataset.variants[0], job.multi30k, job.settings).data
    lines = [example.target for example in read_split(data, "test")]
    path = job.out / f"{job.dataset}.references.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
