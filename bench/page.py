"""Write docs/benchmarks.md from the JSON files in docs/results/benchmarks.

Each section of the page has one JSON file and one function that turns its content into Markdown.
The page contains a section if its file exists. The function is named as "module:function" and is
imported only then.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from bench import decoding_table, training_table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results" / "benchmarks"
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURE = ROOT / "docs" / "pictures" / "benchmarks.png"

TOP = """# Benchmarks

Written by `python -m bench page` from the files in [results/benchmarks](results/benchmarks). For the method and the
compared toolkits see [bench/README.md](../bench/README.md).
"""
FIGURE = """
![Training and decoding on a CPU: seqloom and other toolkits](pictures/benchmarks.png)
"""


@dataclass(frozen=True)
class Section:
    """A section of the page: its file, its title, and the function that renders it."""

    file: str
    title: str
    renderer: str


SECTIONS = (
    Section("training-cpu", "Training on a CPU", "bench.page:training_cpu"),
    Section(
        "training-cpu-aarch64",
        "Training on a CPU: aarch64, earlier batches",
        "bench.page:training_cpu_earlier",
    ),
    Section("decoding-cpu", "Decoding on a CPU", "bench.page:decoding_cpu"),
    Section("latency", "One sentence at a time", "bench.latency:table"),
    Section("engine-cpu", "The CPU engine", "bench.engine_cpu:table"),
    Section("training-gpu", "Training on a GPU", "bench.train_gpu:table"),
    Section("loss-curves", "Loss curves of fused layers on a GPU", "bench.loss_curves:table"),
    Section("decoding-gpu", "Decoding on a GPU", "bench.decode_gpu:table"),
    Section("file-gpu", "Translating a file on a GPU", "bench.file_gpu:table"),
    Section("growth", "Cost as the work grows", "bench.scaling.table:table"),
)


def page(results: Path) -> str:
    """Return the page as Markdown, with a section for each file that exists."""
    parts = [TOP]
    if (results / "training-cpu.json").exists() and (results / "decoding-cpu.json").exists():
        parts.append(FIGURE)
    for section in SECTIONS:
        path = results / f"{section.file}.json"
        if path.exists():
            render = _import_function(section.renderer)
            parts.append(
                f"\n## {section.title}\n\n{render(json.loads(path.read_text())).strip()}\n"
            )
    return "".join(parts)


def _import_function(name: str) -> Callable[[dict[str, Any]], str]:
    module, function = name.split(":")
    renderer: Callable[[dict[str, Any]], str] = getattr(import_module(module), function)
    return renderer


MODELS = {
    "transformer": "Transformer, 3+3 layers of width 256, 4 heads, feed-forward 1024",
    "recurrent": "One-layer bidirectional GRU with attention, width 512, without input feeding",
    "recurrent-feeding": "The same with input feeding",
}

TRAINING_TEXT = """{data}, 8,000 joint BPE pieces, fp32, batches of about 4,096 tokens, dropout 0.1, Adam, no label
smoothing. Each toolkit trains with its own loop on the same pieces. Measurement windows of a few seconds alternate
between the toolkits ({rounds} rounds), and ratios are taken within a round: median, and lowest–highest. The ceiling is
the speed of the model's matrix products alone, measured in the same rounds. The share of it counts only useful operations:
6 x weights x real tokens, and 12 x width x keys x queries for attention.
"""


def training_cpu(results: dict[str, Any]) -> str:
    parts = [origin(results), TRAINING_TEXT.format(**results)]
    for model, groups in results["models"].items():
        parts.append(f"**{MODELS[model]}**\n\n{training_table.table(groups)}\n")
        parts.append(f"{training_table.sites(groups)}\n")
    return "\n".join(parts)


EARLIER_TEXT = """The same comparison on another machine, measured before seqloom formed batches with targets of different
lengths. Its batches had less padding then.
"""


def training_cpu_earlier(results: dict[str, Any]) -> str:
    parts = [origin(results), EARLIER_TEXT]
    for model, groups in results["models"].items():
        parts.append(f"**{MODELS[model]}**\n\n{training_table.table(groups)}\n")
    return "\n".join(parts)


DECODING_TEXT = """The Transformer above with random weights, sources of {data}, outputs of exactly 16 tokens. Sentences per second
in batches of 32, milliseconds per single sentence; in brackets the speed-up of seqloom's
`--engine compiled` (median of {rounds} rounds, lowest–highest). This engine compiles both searches for single sentences
once before the measurement ({compiled:.0f} s here) and decodes batches as `--engine torch` does.
"""


def decoding_cpu(results: dict[str, Any]) -> str:
    seconds = results["contenders"]["seqloom"]["about"]["seconds_to_prepare"]
    text = DECODING_TEXT.format(**results, compiled=seconds)
    return "\n".join([origin(results), text, decoding_table.table(results["contenders"])])


def origin(results: dict[str, Any]) -> str:
    """Return a line with the machine, versions, date and command of the measurement."""
    about = results["about"]
    return (
        f"*{about['machine']}; Python {about['python']}, torch {about['torch']}, "
        f"{about['threads']} threads; seed {about['seed']}; {about['date']}; "
        f"`{about['command']}`.*\n"
    )


def write() -> None:
    """Write the page and its figure."""
    PAGE.write_text(page(RESULTS), encoding="utf-8")
    paths = [RESULTS / f"{name}-cpu.json" for name in ("training", "decoding")]
    if all(path.exists() for path in paths):
        from bench.picture import draw

        training, decoding = (json.loads(path.read_text()) for path in paths)
        draw(training, decoding, PICTURE)
