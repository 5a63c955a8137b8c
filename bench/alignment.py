"""How well attention aligns words: German and English, both ways, against alignments by people.

    python -m bench.alignment OUT --data FOLDER --jobs 4    train four runs and score them; FOLDER
                                                            holds tatoeba, multi30k,
                                                            europarl20k-de-en and word-alignment
    python -m bench.alignment OUT --write                   docs/results/alignment.md

A recurrent network and a Transformer, each in both directions. The pairs with an even number choose
the heads, and the step; those with an odd number are the test. What is there already is not done
again: run folders lie in --work, left out OUT with -runs behind. `--set` changes every run.
"""

import argparse
import gzip
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

import seqloom
from bench.alignment_page import PAGE, page
from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.recipe import RunConfig
from seqloom.metrics.alignment import Symmetrisation, symmetrise
from seqloom.metrics.alignment_error import AlignmentScores, GoldLinks, parse_gold, score_alignments
from seqloom.runs.alignment import (
    WordAlignment,
    combine_alignments,
    find_heads,
    save_alignment_heads,
    word_alignment,
)

DIRECTIONS = ("de-en", "en-de")
CORPORA = {
    "tatoeba": ("tatoeba/eng-deu.train.tsv.gz",),
    "multi30k": ("multi30k/train.de.gz", "multi30k/train.en.gz"),
    "europarl": ("europarl20k-de-en/train.de.gz", "europarl20k-de-en/train.en.gz"),
}
GOLD = "word-alignment/de-en.europarl100"
WAYS: tuple[Symmetrisation, ...] = ("intersection", "grow-diag", "grow-diag-final", "union")
Pair = tuple[str, str]

_TOKEN = re.compile(r"\d+(?:[.,]\d+)+|\w+(?:-\w+)*|['’]\w+|\S")

_RECURRENT = {
    "encoder": {
        "kind": "recurrent",
        "cell": "gru",
        "width": 256,
        "embedding": {"width": 256},
        "dropout": 0.2,
    },
    "decoder": {
        "kind": "recurrent",
        "cell": "gru",
        "width": 512,
        "attention": {"score": {"kind": "additive", "width": 256}},
        "context": ["input", "readout"],
        "readout": "tanh",
        # Who cannot trust what was said before looks harder at what was read.
        "embedding": {"width": 256, "word_dropout": 0.2},
        "dropout": 0.2,
    },
}
_LAYERS = {
    "kind": "transformer",
    "width": 256,
    "layers": 4,
    "feedforward": 1024,
    "attention": {"heads": 4},
    "dropout": 0.1,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "recurrent": {"model": _RECURRENT, "steps": 5000, "rate": 1e-3, "compile": False},
    "transformer": {
        "model": {"tie": "all", "encoder": _LAYERS, "decoder": _LAYERS},
        "steps": 3500,
        "rate": 2e-3,
        "compile": True,
    },
}


def tokenised(text: str) -> str:
    """As the gold sentences are: lower case, marks apart from words."""
    return respelled(" ".join(_TOKEN.findall(text.lower())))


def respelled(text: str) -> str:
    """Two spellings of one German word as one; both are in the gold sentences."""
    return re.sub(r"\bdaß\b", "dass", text)


def lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def prepare(data: Path, folder: Path) -> None:
    """Every corpus as two files of tokenised lines, one of each language."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, files in CORPORA.items():
        if (folder / f"{name}.en").exists():
            continue
        for language, column in zip(("de", "en"), _columns(data, files), strict=True):
            text = "".join(f"{tokenised(line)}\n" for line in column)
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")


def _columns(data: Path, files: Sequence[str]) -> tuple[list[str], list[str]]:
    """German and English."""
    if len(files) == 2:
        return lines(data / files[0]), lines(data / files[1])
    rows = [line.split("\t") for line in lines(data / files[0])]
    return [row[1] for row in rows], [row[0] for row in rows]


def config_of(family: str, direction: str, texts: Path, settings: Sequence[str]) -> RunConfig:
    source, target = direction.split("-")
    chosen = FAMILIES[family]
    tables = {
        "data": {
            "folder": str(texts),
            "train": [
                {"kind": "parallel", "source": f"{name}.{source}", "target": f"{name}.{target}"}
                for name in CORPORA
            ],
            "filter": {"max_source_tokens": 100, "max_target_tokens": 100},
        },
        "text": {"tokenizer": {"kind": "subwords", "algorithm": "bpe", "size": 10_000}, "shared": True},
        "model": chosen["model"],
        "training": {
            "steps": chosen["steps"],
            "batch_tokens": 8192,
            "optimizer": {"learning_rate": chosen["rate"]},
            "schedule": {"kind": "cosine", "warmup": 300},
            "label_smoothing": 0.1,
            "averaging": {"kind": "moving", "decay": 0.998},
            "evaluate_every": chosen["steps"],
            "evaluate_examples": 200,
            "checkpoint_every": chosen["steps"],
            "compile": chosen["compile"],
        },
    }  # fmt: skip
    return load_recipe(tables, settings).config


def train(family: str, direction: str, chosen: argparse.Namespace) -> None:
    """Into a run folder, with the seconds it took beside it."""
    folder = chosen.work / f"{family}.{direction}"
    config = config_of(family, direction, chosen.work / "text", chosen.settings)
    began = time.monotonic()
    seqloom.train(config, folder)
    seconds = round(time.monotonic() - began, 1)
    (chosen.work / f"{family}.{direction}.json").write_text(json.dumps({"seconds": seconds}))


def gold_pairs(data: Path) -> tuple[list[Pair], list[GoldLinks]]:
    """Words as the gold alignments count them."""
    german, english, links = (
        lines(data / f"{GOLD}.{ending}.gz") for ending in ("de", "en", "align")
    )
    spelled = [respelled(line) for line in german]
    return list(zip(spelled, english, strict=True)), [parse_gold(line) for line in links]


def turned(gold: GoldLinks) -> GoldLinks:
    """Target before source."""
    back = [frozenset((b, a) for a, b in links) for links in (gold.sure, gold.possible)]
    return GoldLinks(*back)


def score(family: str, chosen: argparse.Namespace) -> dict[str, Any]:
    """Both directions and what they say together: on the odd pairs, and on all."""
    pairs, gold = gold_pairs(chosen.data)
    found: dict[str, list[WordAlignment]] = {}
    record: dict[str, Any] = {"family": family, "scores": {}, "directions": {}}
    for direction in DIRECTIONS:
        found[direction], record["directions"][direction] = _direction(
            family, direction, pairs, gold, chosen
        )
    links: dict[str, list[Any]] = {"de-en": [one.links for one in found["de-en"]]}
    links["en-de"] = [[(b, a) for a, b in one.links] for one in found["en-de"]]
    for how in WAYS:
        sides = zip(links["de-en"], links["en-de"], strict=True)
        links[how] = [symmetrise(one, other, how) for one, other in sides]
        both = zip(found["de-en"], found["en-de"], strict=True)
        links[f"{how}, weights multiplied"] = [
            combine_alignments(one, other, how) for one, other in both
        ]
    for name, own in links.items():
        record["scores"][name] = {
            "test": asdict(_on(own, gold, slice(1, None, 2))),
            "all": asdict(_on(own, gold, slice(None))),
        }
    cuda = torch.cuda.is_available()
    record["machine"] = torch.cuda.get_device_name() if cuda else "a CPU"
    return {**record, "torch": torch.__version__, "seqloom": seqloom.__version__}


def _on(links: Sequence[Any], gold: Sequence[GoldLinks], part: slice) -> AlignmentScores:
    return score_alignments(links[part], gold[part])


def _direction(
    family: str,
    direction: str,
    pairs: Sequence[Pair],
    gold: Sequence[GoldLinks],
    chosen: argparse.Namespace,
) -> tuple[list[WordAlignment], dict[str, Any]]:
    """One run, aligned by the heads that it is found to align best by on the even pairs."""
    folder = chosen.work / f"{family}.{direction}"
    forward = direction == "de-en"
    sources, targets = zip(*(pair if forward else pair[::-1] for pair in pairs), strict=True)
    own = [one if forward else turned(one) for one in gold]
    run = seqloom.load(folder)
    plain = [list(one.alignment) for one in run.score(sources, targets)]
    candidates = find_heads(run.score(sources[::2], targets[::2], heads=True), own[::2])
    save_alignment_heads(folder, candidates[0], run.weights_digest)
    outputs = seqloom.load(folder).score(sources, targets)
    facts = {
        "heads": str(candidates[0].choice),
        "dev": asdict(candidates[0].scores),
        "all heads": {
            "test": asdict(_on(plain, own, slice(1, None, 2))),
            "all": asdict(_on(plain, own, slice(None))),
        },
        "candidates": [
            {"heads": str(one.choice), "error_rate": one.scores.error_rate}
            for one in candidates[:20]
        ],
        "parameters": sum(one.numel() for one in run.model.parameters()),
        **json.loads((chosen.work / f"{family}.{direction}.json").read_text()),
    }
    return [word_alignment(one) for one in outputs], facts


def start(job: Sequence[str], chosen: argparse.Namespace) -> int:
    """Train in a process of its own; nothing if that was done."""
    if (chosen.work / f"{'.'.join(job)}.json").exists():
        return 0
    command = [sys.executable, "-m", "bench.alignment", str(chosen.out), f"--work={chosen.work}"]
    command += [f"--data={chosen.data}", *(f"--set={one}" for one in chosen.settings)]
    return subprocess.run([*command, "--one", *job], check=False).returncode


def jobs() -> Iterator[tuple[str, str]]:
    """The slow ones first."""
    return ((family, direction) for family in FAMILIES for direction in DIRECTIONS)


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.alignment",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, help="folder with the folders of the data sets")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    return parser


def main() -> None:
    parser = arguments()
    chosen = parser.parse_args()
    chosen.work = chosen.work or chosen.out.with_name(f"{chosen.out.name}-runs")
    if chosen.write:
        PAGE.write_text(page([json.loads((chosen.out / f"{one}.json").read_text()) for one in FAMILIES]))  # fmt: skip
        return
    if chosen.data is None:
        parser.error("--data FOLDER is needed to train")
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.one:
        family, direction = chosen.one
        train(family, direction, chosen)
        return
    prepare(chosen.data, chosen.work / "text")
    with ThreadPoolExecutor(chosen.jobs) as pool:
        codes = list(pool.map(lambda job: start(job, chosen), jobs()))
    failed = [".".join(job) for job, code in zip(jobs(), codes, strict=True) if code]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")
    for family in FAMILIES:
        record = score(family, chosen)
        (chosen.out / f"{family}.json").write_text(json.dumps(record, indent=1))
        best = min(one["test"]["error_rate"] for one in record["scores"].values())
        print(f"{family}: error rate on the test pairs down to {best:.3f}", flush=True)


if __name__ == "__main__":
    main()
