"""Train and evaluate: how a job of a study is measured.

The module of a study can replace `prepare`, `recipe_source`, `test_sets`, `score` and `measure`.
"""

import os
import platform
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import seqloom
from bench.machine import accelerator_name
from bench.moses import multi30k_score
from bench.store import Record
from bench.study import RECIPES, Job
from seqloom.config.loading.bundled import bundled_recipes
from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.toml import format_recipe, parse_toml
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.decoding import DecodingConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import ForecastConfig
from seqloom.data.readers.splits import merge_references, read_split
from seqloom.metrics.bleu import bleu, chrf, lowercased_bleu
from seqloom.runs.integrity import is_run


@dataclass(frozen=True)
class Context:
    """What a job needs besides its declaration.

    data:     folder with the folders of the data sets
    work:     folder of run folders and prepared data
    settings: changes to every run
    parallel: number of jobs that share the machine
    """

    data: Path
    work: Path
    settings: Sequence[str] = ()
    parallel: int = 1

    def data_folder(self, job: Job) -> Path | None:
        return None if job.recipe.data is None else (self.data / job.recipe.data).absolute()

    def run_folder(self, job: Job, seed: int | None) -> Path:
        return self.work / job.run_name(job.change, seed)


def prepare(context: Context) -> None:
    """Write the files that the jobs read. Called once, before them."""


def recipe_tables(name: str) -> dict[str, Any]:
    """The content of a bundled recipe."""
    return dict(parse_toml(bundled_recipes()[name].read_bytes()))


def recipe_source(job: Job, context: Context) -> tuple[Any, list[str]]:
    """The recipe of a job, as a name, a file or tables, and its settings."""
    folder = context.data_folder(job)
    settings = [] if folder is None else [f"data.folder={folder}"]
    recipe = job.recipe.recipe
    source = RECIPES / recipe if recipe.endswith(".toml") else recipe
    return source, [*settings, *job.recipe.settings, *job.change.settings]


def config_of(job: Job, context: Context) -> RunConfig:
    source, settings = job.study.hook(recipe_source)(job, context)
    seed = [] if job.seed is None else [f"training.seed={job.seed}"]
    return load_recipe(source, [*settings, *context.settings, *seed]).config


def test_sets(job: Job, context: Context) -> Mapping[str, DataConfig | None]:
    """The data to score, by name. The name is put before the names of the scores."""
    return {"": None}


def measure(job: Job, context: Context) -> Record:
    """Train a run or load an ensemble, and score it."""
    record: Record = {"recipe": job.recipe.name, "change": job.change.name, "seed": job.seed}
    if job.seed is None:
        seeds = [seed for seed in range(1, 100) if context.run_folder(job, seed).is_dir()]
        folders = [context.run_folder(job, seed) for seed in seeds]
        record["seeds"] = seeds
    else:
        folders = [context.run_folder(job, job.seed)]
        record |= train(job, context, folders[0])
    record |= {"settings": list(context.settings), **describe_versions()}
    if context.parallel > 1:
        record["parallel"] = context.parallel
    record |= job.study.hook(score)(job, context, folders)
    if not job.study.is_kept(job.change):
        shutil.rmtree(folders[0])
    return record


def describe_versions() -> dict[str, str]:
    import torch

    return {
        "machine": accelerator_name(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "seqloom": seqloom.__version__,
    }


def train(job: Job, context: Context, folder: Path) -> Record:
    """Train a run, or fine-tune the run that the change starts from."""
    import torch

    if threads := os.environ.get("OMP_NUM_THREADS"):
        torch.set_num_threads(int(threads))
    if not job.study.is_kept(job.change):
        shutil.rmtree(folder, ignore_errors=True)
    evaluations: dict[int, dict[str, Any]] = {}
    losses: dict[int, float] = {}

    def remember(event: Any) -> None:
        if event.kind == "evaluate":
            evaluations[event.step] = event.data
        if event.kind == "step":
            losses[event.step] = event.data["loss"]

    begin = time.monotonic()
    if job.change.start is None:
        config = config_of(job, context)
        summary = seqloom.train(config, folder, resume=is_run(folder), report=remember)
    else:
        source, settings = job.study.hook(recipe_source)(job, context)
        parent = context.work / job.run_name(job.study.changes[job.change.start], job.seed)
        settings = [*settings, *context.settings, f"training.seed={job.seed}"]
        summary = seqloom.fine_tune(source, parent, folder, settings=settings, report=remember)
    best = evaluations.get(summary.best_step or 0, {})
    return {
        "seconds": round(time.monotonic() - begin, 1),
        "steps": summary.step,
        "best_step": summary.best_step,
        "dev": {key: value for key, value in best.items() if isinstance(value, float)},
        **({"losses": losses} if job.study.facts.get("curve") else {}),
    }


def score(job: Job, context: Context, folders: Sequence[Path]) -> Record:
    """The scores of a run or ensemble on its test sets, and of the decodings of the study."""
    run: Any
    config = load_recipe(folders[0]).config
    if isinstance(config.task, ForecastConfig):
        run = seqloom.load_forecaster(folders[0])
        return {"parameters": count_parameters(run), **scores_of({"": run.evaluate("test")})}
    run = seqloom.load(list(folders))
    reports = {
        name: run.evaluate("test", data=data, lowercase=True)
        for name, data in job.study.hook(test_sets)(job, context).items()
    }
    record = {"parameters": count_parameters(run), **scores_of(reports)}
    moses = multi30k_score(next(iter(reports.values())).outputs, run.config)
    if moses is not None:
        record["scores"]["Moses"], record["signatures"]["Moses"] = moses
    names = job.change.decode or job.recipe.facts.get("decode", job.study.decode)
    if names:
        splits = job.study.facts.get("splits", ["test"])
        record["decodings"] = {
            name: {
                split: decode(run, split, job.study.decodings[name]["settings"]) for split in splits
            }
            for name in names
        }
    return record


def count_parameters(run: Any) -> int:
    return sum(parameter.numel() for parameter in run.model.parameters())


def scores_of(reports: Mapping[str, Any]) -> Record:
    """The scores by their names in tables, their signatures, and those that are better when lower.

    Scores of groups, such as language pairs, are in "parts".
    """
    named = {
        f"{name} {score.name}".strip(): score
        for name, report in reports.items()
        for score in report.scores
    }
    record: Record = {
        "scores": {name: score.value for name, score in named.items()},
        "signatures": {name: each.signature for name, each in named.items() if each.signature},
        "lower_is_better": [name for name, each in named.items() if not each.higher_is_better],
    }
    parts = {
        part.part: {score.name: score.value for score in part.scores}
        for report in reports.values()
        for part in getattr(report, "parts", ())
    }
    return {**record, "parts": parts} if parts else record


def decoding_config(config: RunConfig, settings: Sequence[str]) -> DecodingConfig:
    return load_recipe(parse_toml(format_recipe(config).encode()), settings).config.decoding


def decode(run: Any, split: Any, settings: Sequence[str]) -> dict[str, float]:
    """Scores and seconds of a decoding of a split."""
    examples = list(read_split(run.config.data, split))
    if run.config.data.merge_references:
        examples = merge_references(examples)
    sources = [run.task.source_text(example) for example in examples]
    search = decoding_config(run.config, settings)
    begin = time.monotonic()
    outputs = [
        prediction.text
        for prediction in run.translate(
            sources, decoding=search, attention=False, split=False, pass_through=False
        )
    ]
    seconds = time.monotonic() - begin
    texts = run.task.scored_texts(outputs, examples)
    compute: dict[str, Callable[..., Any]] = {
        "BLEU": bleu,
        "BLEU lower-cased": lowercased_bleu,
        "chrF2": chrf,
    }
    scores = {name: each(texts.outputs, texts.references).value for name, each in compute.items()}
    return {**scores, "seconds": round(seconds, 2)}
