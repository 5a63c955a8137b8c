"""Train and score one model, or score the ensemble of the models of all seeds."""

import json
import platform
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import seqloom
from bench.machine import accelerator_name
from bench.pronunciation.languages import LANGUAGES, TAGS, file_name
from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.corpora import TsvConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.inference.run import Run

ALL = "all"
"""Stands for all languages: one model for all of them."""


@dataclass(frozen=True)
class Job:
    """The work of one process.

    language: a language, or ALL
    seed:     None for the ensemble of all trained seeds
    out:      folder of the results, one JSON file per job
    work:     folder of the run folders
    folder:   the data set; the tagged data set for ALL
    settings: changes to every run
    """

    language: str
    seed: int | None
    out: Path
    work: Path
    folder: Path
    settings: Sequence[str]

    @property
    def label(self) -> str:
        return f"{self.language}.{'ensemble' if self.seed is None else f'seed{self.seed}'}"

    @property
    def result(self) -> Path:
        return self.out / f"{self.label}.json"

    def run_folder(self, seed: int) -> Path:
        return self.work / f"{self.language}.seed{seed}"


def config_of(job: Job) -> RunConfig:
    """The bundled recipe for one language, or all.toml for all languages."""
    settings = [f"data.folder={job.folder}"]
    if job.language == ALL:
        recipe = str(Path(__file__).with_name("all.toml"))
        settings.append(f"text.tags={TAGS}")
    else:
        recipe = "sigmorphon-g2p"
        settings += [
            f"data.{split}.path={file_name(job.language, split)}"
            for split in ("train", "dev", "test")
        ]
    settings += [] if job.seed is None else [f"training.seed={job.seed}"]
    return load_recipe(recipe, [*settings, *job.settings]).config


def measure(job: Job) -> None:
    """Train a model or load an ensemble, score each language and write the result."""
    config = config_of(job)
    result: dict[str, Any] = {
        "language": job.language,
        "seed": job.seed,
        "settings": list(job.settings),
        "machine": accelerator_name(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "seqloom": seqloom.__version__,
    }
    if job.seed is None:
        seeds = [seed for seed in range(1, 100) if job.run_folder(seed).is_dir()]
        result["seeds"] = seeds
        run = seqloom.load([job.run_folder(seed) for seed in seeds])
    else:
        result |= _train(config, job.run_folder(job.seed))
        run = seqloom.load(job.run_folder(job.seed))
    result["parameters"] = sum(parameter.numel() for parameter in run.model.parameters())
    result["scores"] = score_languages(run, config, job.language)
    job.result.write_text(json.dumps(result, indent=1, ensure_ascii=False), encoding="utf-8")
    rates = [scores["word-error-rate"] for scores in result["scores"].values()]
    mean = sum(rates) / len(rates)
    print(f"{job.label}: word error rate {mean:.2f}", flush=True)


def _train(config: RunConfig, folder: Path) -> dict[str, Any]:
    shutil.rmtree(folder, ignore_errors=True)
    start = time.monotonic()
    summary = seqloom.train(config, folder)
    if summary.step < config.training.steps:
        raise SystemExit(f"Training stopped at step {summary.step}: there is no result.")
    return {
        "seconds": round(time.monotonic() - start, 1),
        "steps": summary.step,
        "best_step": summary.best_step,
    }


def score_languages(run: Run, config: RunConfig, language: str) -> dict[str, dict[str, float]]:
    """The scores of each language that the model was trained on."""
    scores = {}
    for name in LANGUAGES if language == ALL else [language]:
        data = config.data
        if language == ALL:
            data = data.model_copy(update={"test": (TsvConfig(path=f"{name}_test.tsv"),)})
        report = run.evaluate("test", data=data)
        scores[name] = {score.key: score.value for score in report.scores}
    return scores
