"""The tables and the picture of growth, from the JSON that measuring leaves."""

from pathlib import Path
from typing import Any

from bench.growth.figures import between, slope

MIB = 2**20
LEAST = 1.0
"""Seconds. Less cannot be told from what else a start takes."""
ABOUT = """`python -m bench.growth --full` trains a tiny Transformer on made-up pairs, once with nothing in
the cache and once with everything in it, one thread, each in a process of its own. Resident memory
counts the pages of the tokenised corpus that are mapped, which the system takes back when it needs
them; anonymous memory is what no file stands behind. The first step is counted from the end of all
imports, with everything in the cache. Slopes are over the three largest sizes."""
WORDS = {
    "output length": "decoding, against output length",
    "beam width": "decoding, against beam width",
    "source length": "reading, against source length",
}


def table(results: dict[str, Any]) -> str:
    """All that was measured, as Markdown."""
    parts = []
    if results.get("corpora"):
        parts += [ABOUT, "![Memory and time against the size of a corpus](pictures/growth.png)"]
        parts.append(_corpora(results["corpora"]))
    if results.get("decoding"):
        parts.append(_decoding(results["decoding"]))
    if results.get("startup"):
        parts.append(_startup(results["startup"]))
    return "\n\n".join(parts)


def above_smallest(corpora: list[dict[str, Any]], kind: str) -> list[float]:
    """Bytes of RAM in training, above those of the smallest corpus with the same model."""
    peaks = [one["warm"]["peaks"]["training"][kind] for one in corpora]
    return [peak - peaks[0] for peak in peaks]


def tokenising(one: dict[str, Any]) -> float | None:
    """Processor seconds from text to the first step, less those when all is in the cache; None
    where that is too little to be told."""
    cold, warm = (
        between(one[run], "vocabulary", "opening", "processor") for run in ("cold", "warm")
    )
    return cold - warm if cold - warm > LEAST else None


def _corpora(corpora: list[dict[str, Any]]) -> str:
    head = (
        "| pairs | tokenised, pairs/s of processor time | memory while tokenising, MiB "
        "| first step after, s | steps/s | memory in training above the smallest corpus, MiB "
        "(of it anonymous) |\n|---|---|---|---|---|---|"
    )
    above = zip(
        above_smallest(corpora, "resident"), above_smallest(corpora, "anonymous"), strict=True
    )
    rows = [_corpus_row(one, *sizes) for one, sizes in zip(corpora, above, strict=True)]
    return "\n".join([head, *rows])


def _corpus_row(one: dict[str, Any], resident: float, anonymous: float) -> str:
    warm, seconds = one["warm"], tokenising(one)
    speed = "–" if seconds is None else f"{one['pairs'] / seconds:,.0f}"
    steps = warm["steps"] - warm["steps"] // 4
    return (
        f"| {one['pairs']:,} | {speed} "
        f"| {one['cold']['peaks']['opening']['resident'] / MIB:,.0f} "
        f"| {between(warm, 'importing', 'opening'):.1f} "
        f"| {steps / between(warm, 'warming up', 'training'):.0f} "
        f"| {resident / MIB:,.0f} ({anonymous / MIB:,.0f}) |"
    )


def _decoding(found: dict[str, Any]) -> str:
    rows = ["| | from | to | time grows like size to the power of |", "|---|---|---|---|"]
    for part, curves in found.items():
        for name, curve in curves.items():
            sizes, times = curve["sizes"], curve["seconds"]
            ends = f"{sizes[0]} | {sizes[-1]}"
            steep = slope(sizes[-3:], times[-3:])
            model = "Transformer" if part in ("transformer", "attention") else "GRU"
            rows.append(f"| {model}: {WORDS[name]} | {ends} | {steep:.2f} |")
    return "\n".join(rows)


def _startup(found: dict[str, Any]) -> str:
    middle = {name: times[len(times) // 2] for name, times in found.items()}
    bare = middle["python -c pass"]
    rows = ["| command | seconds | times a bare Python |", "|---|---|---|"]
    rows += [f"| `{name}` | {took:.2f} | {took / bare:.1f} |" for name, took in middle.items()]
    return "\n".join(rows)


def picture(results: dict[str, Any], path: Path) -> None:
    """Memory and time to the first step against the size of the corpus, both flat if all is well."""
    import matplotlib.pyplot as plt

    corpora = results["corpora"]
    pairs = [one["pairs"] for one in corpora]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for run, phase, label in (("cold", "opening", "tokenising"), ("warm", "training", "training")):
        peaks = [one[run]["peaks"][phase]["resident"] / MIB for one in corpora]
        left.plot(pairs, peaks, marker="o", label=label)
    left.set(xscale="log", xlabel="pairs", ylabel="MiB in RAM", ylim=(0, None))
    left.legend()
    seconds = [between(one["warm"], "importing", "opening") for one in corpora]
    right.plot(pairs, seconds, marker="o", label="until the first step, all cached")
    right.set(xscale="log", xlabel="pairs", ylabel="seconds", ylim=(0, None))
    right.legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)
