"""Training data, models and scores of the alignment benchmark."""

import gzip
import json
import re
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

import seqloom
from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.recipe import RunConfig
from seqloom.inference.alignment import (
    WordAlignment,
    combine_alignments,
    find_heads,
    save_alignment_heads,
    word_alignment,
)
from seqloom.metrics.alignment import Symmetrisation, symmetrise
from seqloom.metrics.alignment_error import AlignmentScores, GoldLinks, parse_gold, score_alignments

DIRECTIONS = ("de-en", "en-de")
CORPORA = {
    "tatoeba": ("tatoeba/eng-deu.train.tsv.gz",),
    "multi30k": ("multi30k/train.de.gz", "multi30k/train.en.gz"),
    "europarl": ("europarl20k-de-en/train.de.gz", "europarl20k-de-en/train.en.gz"),
}
GOLD = "word-alignment/de-en.europarl100"
SYMMETRISATIONS: tuple[Symmetrisation, ...] = (
    "intersection",
    "grow-diag",
    "grow-diag-final",
    "union",
)
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
        # With fewer previous words the decoder relies more on the source.
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


def tokenise(text: str) -> str:
    """Lower-case the text and separate punctuation from words, as in the gold sentences."""
    return normalise_spelling(" ".join(_TOKEN.findall(text.lower())))


def normalise_spelling(text: str) -> str:
    """Replace an old German spelling. The gold sentences contain both."""
    return re.sub(r"\bdaß\b", "dass", text)


def read_lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def prepare(data: Path, folder: Path) -> None:
    """Write each corpus as two files of tokenised lines, one per language."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, files in CORPORA.items():
        if (folder / f"{name}.en").exists():
            continue
        for language, column in zip(("de", "en"), _read_columns(data, files), strict=True):
            text = "".join(f"{tokenise(line)}\n" for line in column)
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")


def _read_columns(data: Path, files: Sequence[str]) -> tuple[list[str], list[str]]:
    """The German and the English sentences."""
    if len(files) == 2:
        return read_lines(data / files[0]), read_lines(data / files[1])
    rows = [line.split("\t") for line in read_lines(data / files[0])]
    return [row[1] for row in rows], [row[0] for row in rows]


def config_of(family: str, direction: str, texts: Path, settings: Sequence[str]) -> RunConfig:
    source, target = direction.split("-")
    values = FAMILIES[family]
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
        "model": values["model"],
        "training": {
            "steps": values["steps"],
            "batch_tokens": 8192,
            "optimizer": {"learning_rate": values["rate"]},
            "schedule": {"kind": "cosine", "warmup": 300},
            "label_smoothing": 0.1,
            "averaging": {"kind": "ema", "decay": 0.998},
            "evaluate_every": values["steps"],
            "evaluate_examples": 200,
            "checkpoint_every": values["steps"],
            "compile": values["compile"],
        },
    }  # fmt: skip
    return load_recipe(tables, settings).config


def train(family: str, direction: str, work: Path, settings: Sequence[str]) -> None:
    """Train a run folder in `work`, and write the training time beside it."""
    config = config_of(family, direction, work / "text", settings)
    start = time.monotonic()
    seqloom.train(config, work / f"{family}.{direction}")
    seconds = round(time.monotonic() - start, 1)
    (work / f"{family}.{direction}.json").write_text(json.dumps({"seconds": seconds}))


def gold_pairs(data: Path) -> tuple[list[Pair], list[GoldLinks]]:
    """The gold sentence pairs and their links."""
    german, english, links = (
        read_lines(data / f"{GOLD}.{ending}.gz") for ending in ("de", "en", "align")
    )
    german = [normalise_spelling(line) for line in german]
    return list(zip(german, english, strict=True)), [parse_gold(line) for line in links]


def reverse_links(gold: GoldLinks) -> GoldLinks:
    """Exchange source and target of each link."""
    reversed_links = [
        frozenset((target, source) for source, target in links)
        for links in (gold.sure, gold.possible)
    ]
    return GoldLinks(*reversed_links)


def score(family: str, data: Path, work: Path) -> dict[str, Any]:
    """Scores of both directions and their combinations, on the odd pairs and on all pairs."""
    pairs, gold = gold_pairs(data)
    alignments: dict[str, list[WordAlignment]] = {}
    result: dict[str, Any] = {"family": family, "scores": {}, "directions": {}}
    for direction in DIRECTIONS:
        alignments[direction], result["directions"][direction] = _score_direction(
            family, direction, pairs, gold, work
        )
    forward, backward = alignments["de-en"], alignments["en-de"]
    links: dict[str, list[Any]] = {
        "de-en": [alignment.links for alignment in forward],
        "en-de": [[(b, a) for a, b in alignment.links] for alignment in backward],
    }
    for method in SYMMETRISATIONS:
        link_pairs = zip(links["de-en"], links["en-de"], strict=True)
        links[method] = [symmetrise(first, second, method) for first, second in link_pairs]
        links[f"{method}, weights multiplied"] = [
            combine_alignments(first, second, method)
            for first, second in zip(forward, backward, strict=True)
        ]
    for name, candidate in links.items():
        result["scores"][name] = {
            "test": asdict(_score_subset(candidate, gold, slice(1, None, 2))),
            "all": asdict(_score_subset(candidate, gold, slice(None))),
        }
    cuda = torch.cuda.is_available()
    result["machine"] = torch.cuda.get_device_name() if cuda else "a CPU"
    return {**result, "torch": torch.__version__, "seqloom": seqloom.__version__}


def _score_subset(
    links: Sequence[Any], gold: Sequence[GoldLinks], subset: slice
) -> AlignmentScores:
    return score_alignments(links[subset], gold[subset])


def _score_direction(
    family: str,
    direction: str,
    pairs: Sequence[Pair],
    gold: Sequence[GoldLinks],
    work: Path,
) -> tuple[list[WordAlignment], dict[str, Any]]:
    """Align with the heads that are best on the even pairs. Returns alignments and facts."""
    folder = work / f"{family}.{direction}"
    forward = direction == "de-en"
    sources, targets = zip(*(pair if forward else pair[::-1] for pair in pairs), strict=True)
    gold = [links if forward else reverse_links(links) for links in gold]
    run = seqloom.load(folder)
    all_heads = [list(prediction.alignment) for prediction in run.score(sources, targets)]
    candidates = find_heads(run.score(sources[::2], targets[::2], heads=True), gold[::2])
    save_alignment_heads(folder, candidates[0], run.weights_digest)
    predictions = seqloom.load(folder).score(sources, targets)
    facts = {
        "heads": str(candidates[0].choice),
        "dev": asdict(candidates[0].scores),
        "all heads": {
            "test": asdict(_score_subset(all_heads, gold, slice(1, None, 2))),
            "all": asdict(_score_subset(all_heads, gold, slice(None))),
        },
        "candidates": [
            {"heads": str(candidate.choice), "error_rate": candidate.scores.error_rate}
            for candidate in candidates[:20]
        ],
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
        **json.loads((work / f"{family}.{direction}.json").read_text()),
    }
    return [word_alignment(prediction) for prediction in predictions], facts
