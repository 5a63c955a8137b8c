"""One model trained and scored, or the ensemble of the models of all seeds."""

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
from bench.pronunciation.languages import LANGUAGES, TAGS, file_name
from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.corpora import TsvConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.runs.run import Run

ALL = "all"
"""In place of a language: one model for all of them."""


@dataclass(frozen=True)
class Job:
    """What one process does. seed None: the ensemble of all seeds that were trained.

    language: a language, or ALL
    folder:   the data set; with ALL the tagged one that was made of it
    work:     run folders, which may go afterwards
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
    """The bundled recipe for one language, or the one beside this file for all."""
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
    """Train or join, score every language on its test words, write it all down."""
    config = config_of(job)
    record: dict[str, Any] = {
        "language": job.language,
        "seed": job.seed,
        "settings": list(job.settings),
        "machine": torch.cuda.get_device_name()
        if torch.cuda.is_available()
        else platform.machine(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "seqloom": seqloom.__version__,
    }
    if job.seed is None:
        seeds = [seed for seed in range(1, 100) if job.run_folder(seed).is_dir()]
        record["seeds"] = seeds
        run = seqloom.load([job.run_folder(seed) for seed in seeds])
    else:
        record |= _train(config, job.run_folder(job.seed))
        run = seqloom.load(job.run_folder(job.seed))
    record["parameters"] = sum(one.numel() for one in run.model.parameters())
    record["scores"] = scores(run, config, job.language)
    job.result.write_text(json.dumps(record, indent=1, ensure_ascii=False), encoding="utf-8")
    mean = sum(one["word-error-rate"] for one in record["scores"].values()) / len(record["scores"])
    print(f"{job.label}: word error rate {mean:.2f}", flush=True)


def _train(config: RunConfig, folder: Path) -> dict[str, Any]:
    shutil.rmtree(folder, ignore_errors=True)
    began = time.monotonic()
    summary = seqloom.train(config, folder)
    if summary.step < config.training.steps:
        raise SystemExit(f"stopped at step {summary.step}: no result")
    return {
        "seconds": round(time.monotonic() - began, 1),
        "steps": summary.step,
        "best_step": summary.best_step,
    }


def scores(run: Run, config: RunConfig, language: str) -> dict[str, dict[str, float]]:
    """By language; a model for one knows one."""
    found = {}
    for one in LANGUAGES if language == ALL else [language]:
        data = config.data
        if language == ALL:
            data = data.model_copy(update={"test": (TsvConfig(path=f"{one}_test.tsv"),)})
        report = run.evaluate("test", data=data)
        found[one] = {score.key: score.value for score in report.scores}
    return found
