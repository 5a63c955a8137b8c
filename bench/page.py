"""docs/benchmarks.md: one JSON file and one function for each of its sections.

A section stands on the page if its file lies in docs/results/benchmarks. The function is named as
"module:function" and imported only then; it takes the file's content and returns Markdown.
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

Written by `python -m bench page` from the files in [results/benchmarks](results/benchmarks); how they
are made and what each contender is: [bench/README.md](../bench/README.md).
"""
IMAGE = """
![Training and decoding on a CPU: seqloom and its peers](pictures/benchmarks.png)
"""


@dataclass(frozen=True)
class Section:
    """A part of the page: its file, its title, and who writes it."""

    file: str
    title: str
    renderer: str


SECTIONS = (
    Section("training-cpu", "Training on a CPU", "bench.page:training_cpu"),
    Section("decoding-cpu", "Decoding on a CPU", "bench.page:decoding_cpu"),
    Section("latency", "One sentence at a time", "bench.latency:table"),
    Section("engine-cpu", "The CPU engine", "bench.engine_cpu:table"),
    Section("training-gpu", "Training on a GPU", "bench.train_gpu:table"),
    Section("decoding-gpu", "Decoding on a GPU", "bench.decode_gpu:table"),
    Section("growth", "Cost as the work grows", "bench.growth.table:table"),
)


def page(results: Path) -> str:
    """The whole page, from the files that are there."""
    parts = [TOP]
    if (results / "training-cpu.json").exists() and (results / "decoding-cpu.json").exists():
        parts.append(IMAGE)
    for section in SECTIONS:
        path = results / f"{section.file}.json"
        if path.exists():
            render = _function(section.renderer)
            parts.append(
                f"\n## {section.title}\n\n{render(json.loads(path.read_text())).strip()}\n"
            )
    return "".join(parts)


def _function(name: str) -> Callable[[dict[str, Any]], str]:
    module, function = name.split(":")
    found: Callable[[dict[str, Any]], str] = getattr(import_module(module), function)
    return found


MODELS = {
    "transformer": "Transformer, 3+3 layers of width 256, 4 heads, feed-forward 1024",
    "recurrent": "One-layer bidirectional GRU with attention, width 512, without input feeding",
    "recurrent-feeding": "The same with input feeding",
}

TRAINING_TEXT = """{data}, 8,000 joint BPE pieces, fp32, batches of about 4,096 tokens, dropout 0.1, Adam, no label
smoothing. Everybody trains with their own loop on the same pieces; windows of a few seconds take
turns ({rounds} rounds), and only windows of one round are compared: median, and from lowest to
highest. The ceiling is the matrix products of the same model alone, in the same rounds; a share of
it counts 6 x weights x real tokens, and 12 x width x keys x queries for attention.
"""


def training_cpu(results: dict[str, Any]) -> str:
    parts = [origin(results), TRAINING_TEXT.format(**results)]
    for model, groups in results["models"].items():
        parts.append(f"**{MODELS[model]}**\n\n{training_table.table(groups)}\n")
        parts.append(f"{training_table.sites(groups)}\n")
    return "\n".join(parts)


DECODING_TEXT = """The Transformer above with random weights, sources of {data}, 16 tokens forced. Sentences a second
in batches of 32, milliseconds for a sentence alone; in brackets how many times as fast seqloom's
`--engine compiled` is (median of {rounds} rounds, lowest–highest). That compiles the two searches once, before
anything is measured ({compiled:.0f} s here), for sentences alone; those of a batch are searched as by `--engine torch`.
"""


def decoding_cpu(results: dict[str, Any]) -> str:
    took = results["contenders"]["seqloom"]["about"]["seconds_to_prepare"]
    text = DECODING_TEXT.format(**results, compiled=took)
    return "\n".join([origin(results), text, decoding_table.table(results["contenders"])])


def origin(results: dict[str, Any]) -> str:
    """Where and when and by which command."""
    about = results["about"]
    return (
        f"*{about['machine']}; Python {about['python']}, torch {about['torch']}, "
        f"{about['threads']} threads; seed {about['seed']}; {about['date']}; "
        f"`{about['command']}`.*\n"
    )


def write() -> None:
    """The page and its picture, from what was measured."""
    PAGE.write_text(page(RESULTS), encoding="utf-8")
    paths = [RESULTS / f"{name}-cpu.json" for name in ("training", "decoding")]
    if all(path.exists() for path in paths):
        from bench.picture import draw

        training, decoding = (json.loads(path.read_text()) for path in paths)
        draw(training, decoding, PICTURE)
