"""Recipes and tables of the study of training and decoding techniques."""

import statistics
from collections.abc import Sequence
from typing import Any

from bench import store
from bench.measure import Context
from bench.store import Record
from bench.study import Job, Study
from bench.tables import Runs, format_difference, format_spread, markdown, mean_seconds, values_of
from seqloom.config.loading.bundled import bundled_presets
from seqloom.config.loading.loader import load_recipe
from seqloom.core.signature import Signature, Tokens
from seqloom.models.build import build_model

DEFAULT = "beam 5"
PRESETS = ("tiny", "small", "base", "low-resource", "exportable")


def recipe_source(job: Job, context: Context) -> tuple[Any, list[str]]:
    """The preset `small` with the data of the recipe. Changes to a preset have no base settings."""
    source, target = job.recipe.facts["languages"]
    if job.recipe.data is None:
        corpus = {"kind": "bundled", "source": source, "target": target}
        data = {**dict.fromkeys(("train", "dev", "test"), corpus), "merge_references": True}
    else:
        data = {"folder": str(context.data_folder(job))} | {
            split: {
                "kind": "parallel",
                "source": f"{file}.{source}.gz",
                "target": f"{file}.{target}.gz",
            }
            for split, file in (("train", "train"), ("dev", "val"), ("test", "test_2016_flickr"))
        }
    base = [] if job.change.facts.get("preset") else job.study.facts["base"]
    return {"preset": "small", "data": data}, [*base, *job.change.settings]


def decodings(study: Study, records: Sequence[Record], recipe: str, change: str) -> str:
    """A row per decoding of the runs of a change, and one for their ensemble."""
    runs = store.select(records, recipe, change)
    base = decoded(runs, DEFAULT, "BLEU")
    rows = []
    for name, facts in study.decodings.items():
        values = decoded(runs, name, "BLEU")
        if values:
            seconds = statistics.mean(decoded(runs, name, "seconds"))
            difference = "" if name == DEFAULT else format_difference(values, base)
            title = facts.get("title", name)
            rows.append([title, format_spread(values), difference, f"{seconds:.1f} s"])
    for each in records:
        if store.key_of(each) == (recipe, change, None):
            values = decoded([each], DEFAULT, "BLEU")
            title = f"{DEFAULT}, ensemble of {len(each['seeds'])} seeds"
            seconds = decoded([each], DEFAULT, "seconds")[0]
            rows.append(
                [title, format_spread(values), format_difference(values, base), f"{seconds:.1f} s"]
            )
    head = f"decoding, trained with: {study.changes[change].title}"
    return markdown([head, "BLEU", "difference from beam 5", "time for the test set"], rows)


def decoded(runs: Runs, decoding: str, score: str) -> list[float]:
    return [
        run["decodings"][decoding]["test"][score] for run in runs if decoding in run["decodings"]
    ]


def presets(study: Study, records: Sequence[Record]) -> str:
    """Size and score of each preset."""
    head = "preset;for;layers x width;pieces;parameters;memory;steps;Multi30k de→en, BLEU;trained"
    return markdown(head.split(";"), [preset_row(name, records) for name in PRESETS])


def preset_row(name: str, records: Sequence[Record]) -> list[str]:
    pairs = {"kind": "bundled", "source": "de", "target": "en"}
    config = load_recipe({"preset": name, "data": {"train": pairs, "dev": pairs}}).config
    tokenizer: Any = config.text.tokenizer
    encoder: Any = config.model.encoder
    decoder: Any = config.model.decoder
    ids = Tokens(tokenizer.size)
    model = build_model(config.model, Signature(ids, ids, shared=True))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    comment = bundled_presets()[name].read_text(encoding="utf-8").split("\n\n")[0]
    description = " ".join(line.removeprefix("# ") for line in comment.splitlines())
    runs = store.select(records, "multi30k-de-en", f"preset {name}")
    return [
        f"`{name}`",
        description.split(". ")[0].rstrip("."),
        f"{encoder.layers}+{decoder.layers} x {decoder.width}",
        f"{ids.count:,}",
        f"{parameters / 1e6:.1f} M",
        f"{parameters * 16 / 2**20:.0f} MiB",
        f"{config.training.steps:,}",
        format_spread(values_of(runs, "BLEU")) if runs else "–",
        f"{mean_seconds(runs):.0f} s" if runs else "–",
    ]
