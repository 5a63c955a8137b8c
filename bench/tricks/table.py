"""docs/tricks.md and docs/presets.md, from the results."""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.tricks.moses import moses_bleu
from bench.tricks.variants import BASE, DATASETS, DECODINGS, PRESETS, Dataset, config_of
from seqloom.config.loading.bundled import bundled_presets
from seqloom.core.signature import Signature, Tokens
from seqloom.models.build import build_model

DOCS = Path(__file__).parents[2] / "docs"
USUAL = "beam 5"
Result = dict[str, Any]

TRICKS = """# What each trick is worth

Made by `python -m bench.tricks OUT --multi30k FOLDER` and `--write`: one JSON file for each run lies in
`results/tricks/`. Every trick is added to the same base, or taken from it, alone. Figures are means over the
seeds, ± their standard deviation; a difference smaller than twice that may be chance. Training runs shared one
machine ({machine}), so the seconds, from raw text to the last step, are upper bounds and say only what a trick
costs beside the base.
"""
PRESET_PAGE = """# Presets

A recipe may begin with `preset = "small"`: then it needs nothing but `[data]`, and whatever else it says is laid
over the preset, key by key (a table that names another `kind` stands alone). `--set preset=tiny` does the same.
`seqloom config RECIPE` shows the result and where each value comes from. Made by
`python -m bench.tricks OUT --write`. Memory is that of weights, gradients and Adam's moments; what a batch needs on
top, `seqloom doctor RECIPE` measures. BLEU is that of Multi30k's 29,000 pairs, over the seeds of [tricks.md](tricks.md):
`low-resource` is the one for so little text, and `base`, made for a hundred times as much, is not measured on it.

| preset | for | layers x width | pieces | parameters | memory | steps | Multi30k de→en, BLEU | trained |
|---|---|---|---|---|---|---|---|---|
{rows}
"""


def read(out: Path) -> list[Result]:
    return [json.loads(path.read_text()) for path in sorted(out.glob("*.json"))]


def spread(values: Sequence[float]) -> str:
    """Mean ± standard deviation."""
    deviation = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{deviation}"


def scores(results: Sequence[Result], decoding: str = USUAL, key: str = "bleu") -> list[float]:
    return [one["decodings"][decoding][key] for one in results if decoding in one["decodings"]]


def difference(values: Sequence[float], base: Sequence[float]) -> str:
    return f"{statistics.mean(values) - statistics.mean(base):+.1f}" if base else ""


def trick_rows(dataset: Dataset, results: Sequence[Result], moses: dict[str, float]) -> list[str]:
    """Base first, then as they are listed."""
    base = scores([one for one in results if one["variant"] == BASE])
    rows = []
    for variant in dataset.variants:
        own = [one for one in results if one["variant"] == variant.name]
        if not own:
            continue
        values, shown = scores(own), [moses[one["label"]] for one in own if one["label"] in moses]
        rows.append(
            f"| {variant.name} | {spread(values)} "
            f"| {'' if variant.name == BASE else difference(values, base)} "
            f"| {spread(scores(own, key='chrf'))} | {spread(scores(own, key='lowercased'))} "
            f"| {spread(shown) if shown else '–'} "
            f"| {own[0]['parameters'] / 1e6:.1f} M "
            f"| {statistics.mean([one['seconds'] for one in own]):.0f} s | {len(own)} "
            f"| {variant.source} |"
        )
    return rows


def decoding_rows(results: Sequence[Result], ensembles: Sequence[Result]) -> list[str]:
    """Every way to decode the same runs, and those runs as one."""
    base = scores(results)
    rows = []
    for name in DECODINGS:
        values = scores(results, name)
        if values:
            seconds = statistics.mean(scores(results, name, "seconds"))
            gap = "" if name == USUAL else difference(values, base)
            rows.append(f"| {name} | {spread(values)} | {gap} | {seconds:.1f} s |")
    for one in ensembles:
        values, seconds = scores([one]), one["decodings"][USUAL]["seconds"]
        rows.append(
            f"| {USUAL}, all {len(one['seeds'])} seeds as one | {spread(values)} "
            f"| {difference(values, base)} | {seconds:.1f} s |"
        )
    return rows


def moses_of(out: Path, dataset: Dataset) -> tuple[dict[str, float], str | None]:
    """For each result of a data set its published kind of BLEU, and how that is computed."""
    path = out / f"{dataset.name}.references.txt"
    if not dataset.name.startswith("multi30k") or not path.exists():
        return {}, None
    references = path.read_text().splitlines()
    found, signature = {}, None
    for outputs in sorted(out.glob(f"{dataset.name}.*.txt")):
        if outputs == path:
            continue
        score = moses_bleu(outputs.read_text().splitlines(), references, dataset.languages[1])
        if score is not None:
            found[outputs.stem], signature = score
    return found, signature


def given(dataset: Dataset, results: Sequence[Result]) -> str:
    """What `--set` changed in every run."""
    own = {variant.name: list(variant.settings) for variant in dataset.variants}
    extra = [
        setting for setting in results[0]["settings"] if setting not in own[results[0]["variant"]]
    ]
    return f" Every run with `{' '.join(f'--set {one}' for one in extra)}`." if extra else ""


def section(out: Path, dataset: Dataset, results: Sequence[Result]) -> list[str]:
    """The tables of one data set."""
    moses, how = moses_of(out, dataset)
    alone = [one for one in results if one["seed"] is not None]
    first = alone[0]["decodings"][USUAL]
    lines = [
        f"\n## {dataset.name}\n",
        f"BLEU: {first['signature']}; lower-cased: {first['lowercased_signature']}"
        + (f"; Moses: {how}." if how else ".")
        + given(dataset, alone),
        "\n| training | BLEU | to base | chrF2 | lower-cased | Moses | parameters | trained | seeds | from |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *trick_rows(dataset, alone, moses),
    ]
    decoded = [one for one in results if len(one["decodings"]) > 2 or one["seed"] is None]
    for variant in dict.fromkeys(one["variant"] for one in decoded):
        own = [one for one in decoded if one["variant"] == variant]
        lines += [
            f"\n| decoding, trained with: {variant} | BLEU | to beam 5 | time for the test set |",
            "|---|---|---|---|",
            *decoding_rows(
                [one for one in own if one["seed"] is not None],
                [one for one in own if one["seed"] is None],
            ),
        ]
    return lines


def preset_row(name: str, results: Sequence[Result]) -> str:
    variant = next((one for one in PRESETS if one.name == f"preset {name}"), PRESETS[0])
    settings = [f"preset={name}"]
    config = config_of(DATASETS["multi30k-de-en"], variant, None, settings)
    tokenizer, encoder, decoder = config.text.tokenizer, config.model.encoder, config.model.decoder
    ids = Tokens(tokenizer.size)  # type: ignore[union-attr]
    model = build_model(config.model, Signature(ids, ids, shared=True))
    parameters = sum(one.numel() for one in model.parameters())
    first = bundled_presets()[name].read_text(encoding="utf-8").split("\n\n")[0]
    words = " ".join(line.removeprefix("# ") for line in first.splitlines())
    purpose = words.split(". ")[0].rstrip(".")
    own = [one for one in results if one["variant"] == f"preset {name}"]
    reached = spread(scores(own)) if own else "–"
    took = f"{statistics.mean([one['seconds'] for one in own]):.0f} s" if own else "–"
    return (
        f"| `{name}` | {purpose} | {encoder.layers}+{decoder.layers} x {decoder.width} "  # type: ignore[union-attr]
        f"| {ids.count:,} | {parameters / 1e6:.1f} M | {parameters * 16 / 2**20:.0f} MiB "
        f"| {config.training.steps:,} | {reached} | {took} |"
    )


def write(out: Path) -> None:
    """Both pages; what was not measured is left out of them."""
    results = read(out)
    for one, path in zip(results, sorted(out.glob("*.json")), strict=True):
        one["label"] = path.stem
    known = {name: [one for one in results if one["dataset"] == name] for name in DATASETS}
    if results:
        machines = ", ".join(sorted({one["machine"] for one in results}))
        lines = [TRICKS.format(machine=machines)]
        for name, own in known.items():
            lines += section(out, DATASETS[name], own) if own else []
        (DOCS / "tricks.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    names = ("tiny", "small", "base", "low-resource")
    rows = [preset_row(name, known["multi30k-de-en"]) for name in names]
    page = PRESET_PAGE.format(rows="\n".join(rows))
    (DOCS / "presets.md").write_text(page, encoding="utf-8")
    pages = "docs/tricks.md and docs/presets.md" if results else "docs/presets.md"
    print(f"{len(results)} results; {pages} written")
