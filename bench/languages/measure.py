"""One experiment with one seed: trained, every test pair translated in every way, written down."""

import gzip
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
from bench.languages.experiments import DIRECT, EXPERIMENTS, THROUGH, config_of, write_few
from seqloom.data.example import Example
from seqloom.data.readers.splits import indices_by_group, read_split
from seqloom.metrics.bleu import bleu, chrf
from seqloom.runs.run import Run

LANGUAGES = ("en", "de", "fr", "cs")


@dataclass(frozen=True)
class Job:
    """What one process does.

    out:  one JSON a job
    work: run folders, which go afterwards, and the files of few sentences
    """

    experiment: str
    seed: int
    out: Path
    work: Path
    multi30k: Path
    settings: Sequence[str] = ()

    @property
    def label(self) -> str:
        return f"{self.experiment}.seed{self.seed}"

    @property
    def result(self) -> Path:
        return self.out / f"{self.label}.json"


def measure(job: Job) -> None:
    """Train, translate, score; nothing is written unless all of it is done."""
    experiment = next(one for one in EXPERIMENTS if one.name == job.experiment)
    few = job.work / f"few.{job.label}"
    write_few(job.multi30k, few)
    seeded = [*job.settings, f"training.seed={job.seed}"]
    config = config_of(experiment, job.multi30k, few, seeded)
    folder = job.work / job.label
    shutil.rmtree(folder, ignore_errors=True)
    began = time.monotonic()
    summary = seqloom.train(config, folder)
    seconds = time.monotonic() - began
    run = seqloom.load(folder)
    examples = list(read_split(config.data, "test"))
    ways = {DIRECT: False, **({THROUGH: True} if experiment.pivot else {})}
    record: dict[str, Any] = {
        "experiment": experiment.name,
        "words": experiment.words,
        "seed": job.seed,
        "settings": [*experiment.settings, *job.settings],
        "machine": torch.cuda.get_device_name()
        if torch.cuda.is_available()
        else platform.machine(),
        "torch": torch.__version__,
        "seqloom": seqloom.__version__,
        "seconds": round(seconds, 1),
        "steps": summary.step,
        "best_step": summary.best_step,
        "parameters": sum(one.numel() for one in run.model.parameters()),
        "pairs": score_pairs(run, examples, ways, words_of(job.multi30k)),
    }
    job.result.write_text(json.dumps(record, indent=1, ensure_ascii=False))
    shutil.rmtree(folder)
    shutil.rmtree(few)
    print(f"{job.label}: {_told(record)} after {seconds:.0f} s", flush=True)


def score_pairs(
    run: Run, examples: Sequence[Example], ways: dict[str, bool], words: dict[str, set[str]]
) -> dict[str, dict[str, Any]]:
    """For each pair and way: scores, and how many outputs are in the language asked for."""
    found: dict[str, dict[str, Any]] = {}
    for pair, places in indices_by_group(examples).items():
        source, target = pair.split("-")
        own = [examples[place] for place in places]
        texts = [one.source.removeprefix(f"{one.tag} ") for one in own]
        references = [one.references for one in own]
        for way, through in ways.items():
            if through and "en" in (source, target):
                continue
            to = ["en", target] if through else target
            outputs = [one.text for one in run.translate(texts, to=to, attention=False)]
            score = bleu(outputs, references)
            found.setdefault(pair, {})[way] = {
                "bleu": score.value,
                "signature": score.signature,
                "chrf": chrf(outputs, references).value,
                "in_language": in_language(outputs, target, words),
                "samples": outputs[:5],
            }
    return found


def words_of(folder: Path) -> dict[str, set[str]]:
    """The words of each language's training file."""
    return {
        language: set(gzip.decompress(path.read_bytes()).decode().lower().split())
        for language in LANGUAGES
        if (path := folder / f"train.{language}.gz").exists()
    }


def in_language(outputs: Sequence[str], language: str, words: dict[str, set[str]]) -> float:
    """The share of outputs, in percent, of which no other language knows more words."""

    def known(text: str, other: str) -> int:
        return sum(word in words[other] for word in text.lower().split())

    right = [
        known(text, language) >= max(known(text, other) for other in words) for text in outputs
    ]
    return 100 * sum(right) / max(len(right), 1)


def _told(record: dict[str, Any]) -> str:
    return ", ".join(
        f"{pair} {way} {scores['bleu']:.1f}"
        for pair, ways in record["pairs"].items()
        for way, scores in ways.items()
    )
