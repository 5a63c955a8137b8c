"""Generates docs/tricks.md and docs/presets.md from the results."""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.tricks.moses import moses_bleu
from bench.tricks.variants import (
    BASE,
    DATASETS,
    DECODING_TITLES,
    DECODINGS,
    PRESETS,
    Dataset,
    config_of,
)
from seqloom.config.loading.bundled import bundled_presets
from seqloom.core.signature import Signature, Tokens
from seqloom.models.build import build_model

DOCS = Path(__file__).parents[2] / "docs"
DEFAULT_DECODING = "beam 5"
Result = dict[str, Any]

TRICKS = """# Effect of training and decoding techniques

Written by `python -m bench.tricks OUT --multi30k FOLDER` and `--write`; there is one JSON file per run in
`results/tricks/`. Each row adds one technique to the same base, or removes one from it. Figures are means over the seeds
± standard deviation; a difference below twice the deviation may be chance. The training runs shared one machine
({machine}), so the training times, from raw text to the last step, are upper bounds. They show only the cost of a technique
relative to the base.
"""
PRESET_PAGE = """# Presets

A preset is a named set of `[text]`, `[model]` and `[training]` settings. A recipe that starts with `preset = "small"`
needs only a `[data]` section. Its other tables are merged into those of the preset, key by key; a table with another
`kind` replaces that of the preset. `--set preset=tiny` has the same effect. `seqloom config RECIPE` shows the result
and the origin of each value.

`python -m bench.tricks OUT --write` generates this page. Memory is that of weights, gradients and Adam's moments;
`seqloom doctor RECIPE` measures how much a batch needs in addition. BLEU is measured on the 29,000 pairs of Multi30k,
over the seeds and on the machine of [tricks.md](tricks.md). `base` is made for a hundred times as much data and is not
measured here. "Pieces" is the number of subwords in the vocabulary.

Without `preset` and `[model]`, `seqloom train` chooses `low-resource` for up to 100,000 training pairs, `small` for up to a million,
and otherwise `base`. `seqloom new` does the same.

| preset | for | layers x width | pieces | parameters | memory | steps | Multi30k de→en, BLEU | trained |
|---|---|---|---|---|---|---|---|---|
{rows}
"""


def read_results(out: Path) -> list[Result]:
    """The results with the name of their file as `label`."""
    return [
        {**json.loads(path.read_text()), "label": path.stem} for path in sorted(out.glob("*.json"))
    ]


def format_spread(values: Sequence[float]) -> str:
    """Mean ± standard deviation."""
    deviation = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{deviation}"


def format_difference(values: Sequence[float], base: Sequence[float]) -> str:
    """The difference of the means, with a sign."""
    return f"{statistics.mean(values) - statistics.mean(base):+.1f}" if base else ""


def scores_of(
    results: Sequence[Result], decoding: str = DEFAULT_DECODING, key: str = "bleu"
) -> list[float]:
    """A score of each result that has this decoding."""
    return [
        result["decodings"][decoding][key] for result in results if decoding in result["decodings"]
    ]


def mean_seconds(results: Sequence[Result]) -> float:
    return statistics.mean([result["seconds"] for result in results])


def training_rows(
    dataset: Dataset, results: Sequence[Result], moses: dict[str, float]
) -> list[str]:
    """A row per variant, in the order of the data set."""
    base = scores_of([result for result in results if result["variant"] == BASE])
    rows = []
    for variant in dataset.variants:
        runs = [result for result in results if result["variant"] == variant.name]
        if not runs:
            continue
        values = scores_of(runs)
        moses_values = [moses[run["label"]] for run in runs if run["label"] in moses]
        rows.append(
            f"| {variant.label} | {format_spread(values)} "
            f"| {'' if variant.name == BASE else format_difference(values, base)} "
            f"| {format_spread(scores_of(runs, key='chrf'))} "
            f"| {format_spread(scores_of(runs, key='lowercased'))} "
            f"| {format_spread(moses_values) if moses_values else '–'} "
            f"| {runs[0]['parameters'] / 1e6:.1f} M "
            f"| {mean_seconds(runs):.0f} s | {len(runs)} "
            f"| {variant.source} |"
        )
    return rows


def decoding_rows(results: Sequence[Result], ensembles: Sequence[Result]) -> list[str]:
    """A row per decoding of the same runs, and one for their ensemble."""
    base = scores_of(results)
    rows = []
    for name in DECODINGS:
        values = scores_of(results, name)
        if values:
            seconds = statistics.mean(scores_of(results, name, "seconds"))
            difference = "" if name == DEFAULT_DECODING else format_difference(values, base)
            title = DECODING_TITLES.get(name, name)
            rows.append(f"| {title} | {format_spread(values)} | {difference} | {seconds:.1f} s |")
    for ensemble in ensembles:
        values = scores_of([ensemble])
        seconds = ensemble["decodings"][DEFAULT_DECODING]["seconds"]
        rows.append(
            f"| {DEFAULT_DECODING}, ensemble of {len(ensemble['seeds'])} seeds "
            f"| {format_spread(values)} | {format_difference(values, base)} | {seconds:.1f} s |"
        )
    return rows


def moses_scores(out: Path, dataset: Dataset) -> tuple[dict[str, float], str | None]:
    """BLEU of Moses-tokenised text for each result of Multi30k, and its signature."""
    path = out / f"{dataset.name}.references.txt"
    if not dataset.name.startswith("multi30k") or not path.exists():
        return {}, None
    references = path.read_text().splitlines()
    scores, signature = {}, None
    for outputs in sorted(out.glob(f"{dataset.name}.*.txt")):
        if outputs == path:
            continue
        score = moses_bleu(outputs.read_text().splitlines(), references, dataset.languages[1])
        if score is not None:
            scores[outputs.stem], signature = score
    return scores, signature


def common_settings(dataset: Dataset, results: Sequence[Result]) -> str:
    """A sentence about the settings that `--set` changed in every run."""
    first = results[0]
    variant = next(each for each in dataset.variants if each.name == first["variant"])
    settings = first["settings"][len(variant.settings) :]
    options = " ".join(f"--set {setting}" for setting in settings)
    return f" All runs use `{options}`." if settings else ""


def section(out: Path, dataset: Dataset, results: Sequence[Result]) -> list[str]:
    """The lines of one data set."""
    moses, moses_signature = moses_scores(out, dataset)
    single_runs = [result for result in results if result["seed"] is not None]
    first = single_runs[0]["decodings"][DEFAULT_DECODING]
    lines = [
        f"\n## {dataset.name}\n",
        f"BLEU: {first['signature']}; lower-cased: {first['lowercased_signature']}"
        + (f"; Moses: {moses_signature}." if moses_signature else ".")
        + common_settings(dataset, single_runs),
        "\n| training | BLEU | difference | chrF2 | lower-cased | Moses | parameters | training time | seeds | source |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *training_rows(dataset, single_runs, moses),
    ]
    labels = {variant.name: variant.label for variant in dataset.variants}
    decoded = [
        result for result in results if len(result["decodings"]) > 2 or result["seed"] is None
    ]
    for variant in dict.fromkeys(result["variant"] for result in decoded):
        runs = [result for result in decoded if result["variant"] == variant]
        lines += [
            f"\n| decoding, trained with: {labels[variant]} | BLEU | difference from beam 5 "
            "| time for the test set |",
            "|---|---|---|---|",
            *decoding_rows(
                [run for run in runs if run["seed"] is not None],
                [run for run in runs if run["seed"] is None],
            ),
        ]
    return lines


def preset_row(name: str, results: Sequence[Result]) -> str:
    variant = next((each for each in PRESETS if each.name == f"preset {name}"), PRESETS[0])
    config = config_of(DATASETS["multi30k-de-en"], variant, None, [f"preset={name}"])
    tokenizer, encoder, decoder = config.text.tokenizer, config.model.encoder, config.model.decoder
    ids = Tokens(tokenizer.size)  # type: ignore[union-attr]
    model = build_model(config.model, Signature(ids, ids, shared=True))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    comment = bundled_presets()[name].read_text(encoding="utf-8").split("\n\n")[0]
    description = " ".join(line.removeprefix("# ") for line in comment.splitlines())
    purpose = description.split(". ")[0].rstrip(".")
    runs = [result for result in results if result["variant"] == f"preset {name}"]
    score = format_spread(scores_of(runs)) if runs else "–"
    training_time = f"{mean_seconds(runs):.0f} s" if runs else "–"
    return (
        f"| `{name}` | {purpose} | {encoder.layers}+{decoder.layers} x {decoder.width} "  # type: ignore[union-attr]
        f"| {ids.count:,} | {parameters / 1e6:.1f} M | {parameters * 16 / 2**20:.0f} MiB "
        f"| {config.training.steps:,} | {score} | {training_time} |"
    )


def write_pages(out: Path) -> None:
    """Write both pages. They contain only the variants with results."""
    results = read_results(out)
    by_dataset = {
        name: [result for result in results if result["dataset"] == name] for name in DATASETS
    }
    if results:
        machines = ", ".join(sorted({result["machine"] for result in results}))
        lines = [TRICKS.format(machine=machines)]
        for name, runs in by_dataset.items():
            lines += section(out, DATASETS[name], runs) if runs else []
        (DOCS / "tricks.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    names = ("tiny", "small", "base", "low-resource", "exportable")
    rows = [preset_row(name, by_dataset["multi30k-de-en"]) for name in names]
    page = PRESET_PAGE.format(rows="\n".join(rows))
    (DOCS / "presets.md").write_text(page, encoding="utf-8")
    pages = "docs/tricks.md and docs/presets.md" if results else "docs/presets.md"
    print(f"Wrote {pages} from {len(results)} results")
