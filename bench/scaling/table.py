"""The tables and the figure of the scaling benchmark, from its JSON file."""

from pathlib import Path
from typing import Any

from bench.scaling.metrics import growth_exponent, phase_seconds
from bench.scaling.startup import IMPORT_TORCH

MIB = 2**20
MIN_SECONDS = 1.0
"""Shorter tokenising times are within the noise of the start-up time."""
ABOUT = """`python -m bench.scaling --full` trains a tiny Transformer on synthetic pairs with one thread, once with an empty cache
and once with a full cache, each in a separate process. Resident memory includes the mapped pages of the tokenised corpus,
which the operating system can reclaim; anonymous memory has no file behind it. The time to the first step starts after all
imports, with a full cache. Exponents are fitted to the three largest sizes."""
CURVES = {
    "output length": "decoding, by output length",
    "beam width": "decoding, by beam width",
    "source length": "encoding, by source length",
}


def table(results: dict[str, Any]) -> str:
    """All results as Markdown: the section of docs/benchmarks.md."""
    parts = []
    if results.get("corpora"):
        parts += [ABOUT, "![Memory and time by corpus size](pictures/growth.png)"]
        parts.append(_corpora(results["corpora"]))
    if results.get("decoding"):
        parts.append(_decoding(results["decoding"]))
    if results.get("startup"):
        parts += [_about_startup(results), _startup(results["startup"])]
    return "\n\n".join(parts)


def memory_above_smallest(corpora: list[dict[str, Any]], kind: str) -> list[float]:
    """Bytes of RAM in training, minus those of the smallest corpus with the same model."""
    peaks = [corpus["warm"]["peaks"]["training"][kind] for corpus in corpora]
    return [peak - peaks[0] for peak in peaks]


def tokenising_seconds(corpus: dict[str, Any]) -> float | None:
    """Processor seconds to tokenise the corpus. None if the time is too short to measure.

    The time from the vocabulary to the first step with an empty cache, minus that with a full one.
    """
    cold, warm = (
        phase_seconds(corpus[run], "vocabulary", "opening", "processor") for run in ("cold", "warm")
    )
    return cold - warm if cold - warm > MIN_SECONDS else None


def _corpora(corpora: list[dict[str, Any]]) -> str:
    head = (
        "| pairs | pairs tokenised per second of processor time | memory while tokenising, MiB "
        "| time to the first step, s | steps/s | memory in training above the smallest corpus, MiB "
        "(anonymous) |\n|---|---|---|---|---|---|"
    )
    memory = zip(
        memory_above_smallest(corpora, "resident"),
        memory_above_smallest(corpora, "anonymous"),
        strict=True,
    )
    rows = [_corpus_row(corpus, *sizes) for corpus, sizes in zip(corpora, memory, strict=True)]
    return "\n".join([head, *rows])


def _corpus_row(corpus: dict[str, Any], resident: float, anonymous: float) -> str:
    warm, seconds = corpus["warm"], tokenising_seconds(corpus)
    speed = "–" if seconds is None else f"{corpus['pairs'] / seconds:,.0f}"
    steps = warm["steps"] - warm["steps"] // 4
    return (
        f"| {corpus['pairs']:,} | {speed} "
        f"| {corpus['cold']['peaks']['opening']['resident'] / MIB:,.0f} "
        f"| {phase_seconds(warm, 'importing', 'opening'):.1f} "
        f"| {steps / phase_seconds(warm, 'warming up', 'training'):.0f} "
        f"| {resident / MIB:,.0f} ({anonymous / MIB:,.0f}) |"
    )


def _decoding(results: dict[str, Any]) -> str:
    rows = ["| | from | to | exponent k in time ~ size^k |", "|---|---|---|---|"]
    for part, curves in results.items():
        model = "Transformer" if part in ("transformer", "attention") else "GRU"
        for name, curve in curves.items():
            sizes, times = curve["sizes"], curve["seconds"]
            exponent = growth_exponent(sizes[-3:], times[-3:])
            rows.append(f"| {model}: {CURVES[name]} | {sizes[0]} | {sizes[-1]} | {exponent:.2f} |")
    return "\n".join(rows)


def _about_startup(results: dict[str, Any]) -> str:
    """Describe the start-up times. The import of torch is the floor of commands that use a model."""
    medians = {name: times[len(times) // 2] for name, times in results["startup"].items()}
    machine = results["startup_machine"]
    floor, translate, train = (
        medians[name] for name in (IMPORT_TORCH, "translate, one line", "train, one step")
    )
    return (
        f"Start-up in processor seconds ({machine['machine']}, {machine['processors']} cores, "
        "`python -m bench.scaling --only startup`).\nCommands that use a model import torch, which "
        f"takes {floor:.1f} s of the {translate:.1f} s of `translate` and of the {train:.1f} s of "
        "`train`\nwith a tiny model. The rest is the import of seqloom and of other libraries, and the "
        "work itself."
    )


def _startup(results: dict[str, Any]) -> str:
    medians = {name: times[len(times) // 2] for name, times in results.items()}
    python = medians["python -c pass"]
    rows = ["| command | processor seconds | relative to `python -c pass` |", "|---|---|---|"]
    rows += [
        f"| `{name}` | {seconds:.2f} | {seconds / python:.1f} |"
        for name, seconds in medians.items()
    ]
    return "\n".join(rows)


def save_figure(results: dict[str, Any], path: Path) -> None:
    """Plot memory and the time to the first step by corpus size. Flat lines are good."""
    import matplotlib.pyplot as plt

    corpora = results["corpora"]
    pairs = [corpus["pairs"] for corpus in corpora]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for run, phase, label in (("cold", "opening", "tokenising"), ("warm", "training", "training")):
        peaks = [corpus[run]["peaks"][phase]["resident"] / MIB for corpus in corpora]
        left.plot(pairs, peaks, marker="o", label=label)
    left.set(xscale="log", xlabel="pairs", ylabel="MiB in RAM", ylim=(0, None))
    left.legend()
    seconds = [phase_seconds(corpus["warm"], "importing", "opening") for corpus in corpora]
    right.plot(pairs, seconds, marker="o", label="until the first step, all cached")
    right.set(xscale="log", xlabel="pairs", ylabel="seconds", ylim=(0, None))
    right.legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)
