"""Memory and time as the work grows: corpus size, output length, beam width, source length; start-up.

`--full` measures up to 10^7 pairs (4 GB of disk, half an hour or more). `--only` measures one part and
keeps the earlier results of the others.
"""

import argparse
import os
import platform
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import store
from bench.scaling import corpora, decoding, startup
from bench.scaling.metrics import growth_exponent, phase_seconds
from bench.tables import markdown

PICTURE = store.ROOT / "docs" / "pictures" / "growth.png"
PARTS = ("corpora", "decoding", "startup")
MIB = 2**20
MIN_SECONDS = 1.0
"""Shorter tokenising times are within the noise of the start-up time."""
CURVES = {
    "output length": "decoding, by output length",
    "beam width": "decoding, by beam width",
    "source length": "encoding, by source length",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="up to 10^7 pairs")
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS, help="default: all")
    parser.add_argument("--pairs", nargs="*", type=int, help="only these corpus sizes")
    parser.add_argument("--work", type=Path, help="corpora and runs (default: a temporary folder)")


def measure(options: Namespace) -> Iterator[dict[str, Any]]:
    sizes = options.pairs or [10**power for power in range(3, 8 if options.full else 6)]
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        yield from measure_parts(options.only, sizes, work, dict(options.earlier or {}))


def measure_parts(
    parts: Sequence[str], sizes: Sequence[int], work: Path, results: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Add the measurements to the results."""
    machine = {
        "processors": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
    if "startup" in parts:
        # Start-up is often measured alone, on another machine than the other parts.
        results |= {"startup": startup.measure(work), "startup_machine": machine}
        yield results
    if set(parts) - {"startup"}:
        results["machine"] = machine
    if "decoding" in parts:
        results["decoding"] = decoding.measure()
        yield results
    for pairs in sizes if "corpora" in parts else ():
        others = [corpus for corpus in results.get("corpora", []) if corpus["pairs"] != pairs]
        measured = [*others, corpora.measure(pairs, work)]
        results["corpora"] = sorted(measured, key=lambda corpus: int(corpus["pairs"]))
        yield results


def table(results: dict[str, Any], part: str | None = None) -> str:
    """The tables of all parts, or of one of them."""
    tables = {"corpora": corpora_table, "decoding": decoding_table, "startup": startup_table}
    chosen = [name for name in PARTS if part in (None, name) and results.get(name)]
    return "\n\n".join(tables[name](results) for name in chosen)


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


CORPORA_HEAD = (
    "pairs;pairs tokenised per second of processor time;memory while tokenising, MiB;"
    "time to the first step, s;steps/s;memory in training above the smallest corpus, MiB (anonymous)"
)


def corpora_table(results: dict[str, Any]) -> str:
    corpora = results["corpora"]
    kinds = (memory_above_smallest(corpora, kind) for kind in ("resident", "anonymous"))
    memory = zip(*kinds, strict=True)
    rows = [corpus_row(each, *sizes) for each, sizes in zip(corpora, memory, strict=True)]
    return markdown(CORPORA_HEAD.split(";"), rows)


def corpus_row(corpus: dict[str, Any], resident: float, anonymous: float) -> list[str]:
    warm, seconds = corpus["warm"], tokenising_seconds(corpus)
    steps = warm["steps"] - warm["steps"] // 4
    return [
        f"{corpus['pairs']:,}",
        "–" if seconds is None else f"{corpus['pairs'] / seconds:,.0f}",
        f"{corpus['cold']['peaks']['opening']['resident'] / MIB:,.0f}",
        f"{phase_seconds(warm, 'importing', 'opening'):.1f}",
        f"{steps / phase_seconds(warm, 'warming up', 'training'):.0f}",
        f"{resident / MIB:,.0f} ({anonymous / MIB:,.0f})",
    ]


def decoding_table(results: dict[str, Any]) -> str:
    rows = []
    for part, curves in results["decoding"].items():
        model = "Transformer" if part in ("transformer", "attention") else "GRU"
        for name, curve in curves.items():
            sizes, times = curve["sizes"], curve["seconds"]
            exponent = f"{growth_exponent(sizes[-3:], times[-3:]):.2f}"
            rows.append([f"{model}: {CURVES[name]}", str(sizes[0]), str(sizes[-1]), exponent])
    return markdown(["", "from", "to", "exponent k in time ~ size^k"], rows)


def startup_table(results: dict[str, Any]) -> str:
    """The start-up times. The import of torch is the floor of commands that use a model."""
    medians = {name: times[len(times) // 2] for name, times in results["startup"].items()}
    machine = results["startup_machine"]
    floor, translate, train = (
        medians[name] for name in (startup.IMPORT_TORCH, "translate, one line", "train, one step")
    )
    python = medians["python -c pass"]
    rows = [
        [f"`{name}`", f"{seconds:.2f}", f"{seconds / python:.1f}"]
        for name, seconds in medians.items()
    ]
    return (
        f"Start-up in processor seconds ({machine['machine']}, {machine['processors']} cores). Commands "
        f"that use a model import torch, which\ntakes {floor:.1f} s of the {translate:.1f} s of `translate` "
        f"and of the {train:.1f} s of `train`.\n\n"
        + markdown(["command", "processor seconds", "relative to `python -c pass`"], rows)
    )


def draw() -> None:
    """Plot memory and the time to the first step by corpus size. Flat lines are good."""
    import matplotlib.pyplot as plt

    corpora = store.read("scaling")["corpora"]
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
    figure.savefig(PICTURE, dpi=150)
    plt.close(figure)
