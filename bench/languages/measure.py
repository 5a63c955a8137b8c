"""Run one experiment with one seed: train, translate all test pairs, write the scores."""

import gzip
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import seqloom
from bench.languages.experiments import DIRECT, EXPERIMENTS, PIVOT, config_of, write_small_corpus
from bench.machine import accelerator_name
from seqloom.data.example import Example
from seqloom.data.readers.splits import indices_by_group, read_split
from seqloom.inference.run import Run
from seqloom.metrics.bleu import bleu, chrf

LANGUAGES = ("en", "de", "fr", "cs")
Vocabularies = dict[str, set[str]]
"""The words of each language."""


@dataclass(frozen=True)
class Job:
    """The work of one process.

    out:      folder of the results, one JSON file per job
    work:     folder of temporary run folders and small corpora
    multi30k: folder with the raw files of Multi30k
    settings: changes to every run
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
    """Train, translate and score. Writes the result at the end."""
    experiment = next(each for each in EXPERIMENTS if each.name == job.experiment)
    small_corpus = job.work / f"few.{job.label}"
    write_small_corpus(job.multi30k, small_corpus)
    settings = [*job.settings, f"training.seed={job.seed}"]
    config = config_of(experiment, job.multi30k, small_corpus, settings)
    folder = job.work / job.label
    shutil.rmtree(folder, ignore_errors=True)
    start = time.monotonic()
    summary = seqloom.train(config, folder)
    seconds = time.monotonic() - start
    run = seqloom.load(folder)
    examples = list(read_split(config.data, "test"))
    routes = (DIRECT, PIVOT) if experiment.pivot else (DIRECT,)
    result: dict[str, Any] = {
        "experiment": experiment.name,
        "words": experiment.description,
        "seed": job.seed,
        "settings": [*experiment.settings, *job.settings],
        "machine": accelerator_name(),
        "torch": torch.__version__,
        "seqloom": seqloom.__version__,
        "seconds": round(seconds, 1),
        "steps": summary.step,
        "best_step": summary.best_step,
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
        "pairs": score_pairs(run, examples, routes, read_vocabularies(job.multi30k)),
    }
    job.result.write_text(json.dumps(result, indent=1, ensure_ascii=False))
    shutil.rmtree(folder)
    shutil.rmtree(small_corpus)
    print(f"{job.label}: {_summary(result)} after {seconds:.0f} s", flush=True)


def score_pairs(
    run: Run, examples: Sequence[Example], routes: Sequence[str], vocabularies: Vocabularies
) -> dict[str, dict[str, Any]]:
    """{pair: {route: scores, and the share of outputs in the target language}}"""
    results: dict[str, dict[str, Any]] = {}
    for pair, indices in indices_by_group(examples).items():
        source, target = pair.split("-")
        group = [examples[index] for index in indices]
        texts = [example.source.removeprefix(f"{example.tag} ") for example in group]
        references = [example.references for example in group]
        for route in routes:
            if route == PIVOT and "en" in (source, target):
                continue
            to = ["en", target] if route == PIVOT else target
            predictions = run.translate(
                texts, to=to, attention=False, split=False, pass_through=False
            )
            outputs = [prediction.text for prediction in predictions]
            score = bleu(outputs, references)
            results.setdefault(pair, {})[route] = {
                "bleu": score.value,
                "signature": score.signature,
                "chrf": chrf(outputs, references).value,
                "in_language": share_in_language(outputs, target, vocabularies),
                "samples": outputs[:5],
            }
    return results


def read_vocabularies(folder: Path) -> Vocabularies:
    """The words of the training file of each language."""
    return {
        language: set(gzip.decompress(path.read_bytes()).decode().lower().split())
        for language in LANGUAGES
        if (path := folder / f"train.{language}.gz").exists()
    }


def share_in_language(outputs: Sequence[str], language: str, vocabularies: Vocabularies) -> float:
    """The percentage of outputs in the language.

    An output counts if no other vocabulary contains more of its words.
    """

    def count_words(text: str, other: str) -> int:
        return sum(word in vocabularies[other] for word in text.lower().split())

    correct = [
        count_words(text, language) >= max(count_words(text, other) for other in vocabularies)
        for text in outputs
    ]
    return 100 * sum(correct) / max(len(correct), 1)


def _summary(result: dict[str, Any]) -> str:
    return ", ".join(
        f"{pair} {route} {scores['bleu']:.1f}"
        for pair, routes in result["pairs"].items()
        for route, scores in routes.items()
    )
