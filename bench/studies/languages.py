"""Multilingual models: data, translation by two routes, and the tables."""

import gzip
import shutil
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import seqloom
from bench import store
from bench.measure import Context, count_parameters
from bench.store import Record
from bench.study import Change, Job, Study
from bench.tables import format_spread, markdown, mean_seconds
from seqloom.config.loading.toml import format_value
from seqloom.data.example import Example
from seqloom.data.readers.splits import indices_by_group, read_split
from seqloom.inference.run import Run
from seqloom.metrics.bleu import bleu, chrf

RECIPE = "multi30k-languages"
LANGUAGES = ("en", "de", "fr", "cs")
CENTRED = ("en-de", "de-en", "en-fr", "fr-en", "en-cs", "cs-en")
ZERO_SHOT = ("de-fr", "fr-de")
ZERO_SHOT_MODELS = ("all-pairs", "one-held-out", "centred", "centred-gap", "centred-target-tag")
SMALL_CORPUS = 2_000
"""Number of en-de sentence pairs in the experiments with little en-de data."""
DIRECT, PIVOT = "directly", "through English"
Vocabularies = dict[str, set[str]]
"""The words of each language."""


def prepare(context: Context) -> None:
    """Write the first lines of the training files, the same lines for each language."""
    folder = context.work / "few"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for language in ("en", "de"):
        packed = (context.data / "multi30k" / f"train.{language}.gz").read_bytes()
        lines = gzip.decompress(packed).decode().splitlines(keepends=True)[:SMALL_CORPUS]
        (folder / f"train.{language}").write_text("".join(lines), encoding="utf-8")


def recipe_source(job: Job, context: Context) -> tuple[Any, list[str]]:
    facts = job.change.facts
    full = {"kind": "languages", "path": "train.{language}.gz", "pairs": facts.get("pairs", [])}
    path = f"{(context.work / 'few').absolute()}/train.{{language}}"
    small = {**full, "path": path, "pairs": facts.get("small_pairs", [])}
    train = [table for table in (small, full) if table["pairs"]]
    trained = [pair for pair in facts["tests"] if pair in training_pairs(job.change)]
    dev = {**full, "path": "val.{language}.gz", "pairs": trained}
    test = {**full, "path": "test_2016_flickr.{language}.gz", "pairs": facts["tests"]}
    folder = str(context.data_folder(job))
    data = {"folder": folder, "train": train, "dev": [dev], "test": [test]}
    if any(setting.startswith("preset=") for setting in job.change.settings):
        # The settings of the recipe would override those of the preset.
        return {"data": data}, list(job.change.settings)
    return RECIPE, [f"data={format_value(data)}", *job.change.settings]


def training_pairs(change: Change) -> list[str]:
    return [*change.facts.get("small_pairs", []), *change.facts.get("pairs", [])]


def score(job: Job, context: Context, folders: Sequence[Path]) -> Record:
    """Translate all test pairs, directly and, if the change says so, through English."""
    run = seqloom.load(folders[0])
    examples = list(read_split(run.config.data, "test"))
    routes = (DIRECT, PIVOT) if job.change.facts.get("pivot") else (DIRECT,)
    vocabularies = read_vocabularies(context.data / "multi30k")
    pairs, signature = score_pairs(run, examples, routes, vocabularies)
    return {
        "parameters": count_parameters(run),
        "scores": {},
        "signatures": {"BLEU": signature},
        "pairs": pairs,
    }


def score_pairs(
    run: Run, examples: Sequence[Example], routes: Sequence[str], vocabularies: Vocabularies
) -> tuple[dict[str, dict[str, Any]], str | None]:
    """{pair: {route: BLEU, chrF2 and the share of outputs in the target language}}, and the signature."""
    results: dict[str, dict[str, Any]] = {}
    signature = None
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
            result = bleu(outputs, references)
            signature = result.signature
            results.setdefault(pair, {})[route] = {
                "BLEU": result.value,
                "chrF2": chrf(outputs, references).value,
                "in_language": share_in_language(outputs, target, vocabularies),
            }
    return results, signature


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


def cell(runs: Sequence[Record], pair: str, route: str = DIRECT) -> str:
    """BLEU over the seeds, and the percentage of outputs in the target language."""
    scores = [run["pairs"][pair][route] for run in runs if route in run["pairs"].get(pair, {})]
    if not scores:
        return "–"
    in_language = statistics.mean(each["in_language"] for each in scores)
    return f"{format_spread([each['BLEU'] for each in scores])} ({in_language:.0f} %)"


def zero_shot(study: Study, records: Sequence[Record]) -> str:
    """German to French and back: bilingual models, then each multilingual model and route."""
    bilingual = [cell(store.select(records, RECIPE, pair), pair) for pair in ZERO_SHOT]
    rows = [["bilingual models: de→fr, fr→de", *bilingual]]
    for name in ZERO_SHOT_MODELS:
        for route in (DIRECT, PIVOT):
            runs = store.select(records, RECIPE, name)
            cells = [cell(runs, pair, route) for pair in ZERO_SHOT]
            if set(cells) != {"–"}:
                rows.append([f"{study.changes[name].title}; {route}", *cells])
    return markdown(["", *ZERO_SHOT], rows)


def _rows(
    study: Study, records: Sequence[Record], names: Sequence[str], pairs: Sequence[str]
) -> list[list[str]]:
    """A row per change with results: the pairs, parameters, training time and number of seeds."""
    rows = []
    for name in names:
        if runs := store.select(records, RECIPE, name):
            cells = [cell(runs, pair) for pair in pairs]
            facts = [f"{runs[0]['parameters'] / 1e6:.1f} M", f"{mean_seconds(runs):.0f}"]
            rows.append([study.changes[name].title, *cells, *facts, str(len(runs))])
    return rows


FACTS = ("parameters", "seconds", "seeds")


def small(study: Study, records: Sequence[Record]) -> str:
    """English to German with little data, alone and with other pairs."""
    names = [name for name, change in study.changes.items() if "small_pairs" in change.facts]
    rows = _rows(study, records, [*names, "en-de"], ["en-de"])
    return markdown(["trained on", "en→de", *FACTS], rows)


def sharing(study: Study, records: Sequence[Record]) -> str:
    """The training pairs of the multilingual models."""
    rows = _rows(study, records, [*ZERO_SHOT_MODELS, "en-de"], CENTRED)
    return markdown(["trained on", *CENTRED, *FACTS], rows)
