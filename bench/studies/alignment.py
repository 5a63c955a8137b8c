"""Word alignment by attention: corpora, models, scores and tables."""

import gzip
import re
import tomllib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import seqloom
from bench import store
from bench.measure import Context, count_parameters, describe_versions
from bench.measure import measure as train_and_score
from bench.store import Record
from bench.study import RECIPES, Job, Study
from bench.tables import markdown
from seqloom.inference.alignment import (
    WordAlignment,
    combine_alignments,
    find_heads,
    save_alignment_heads,
    word_alignment,
)
from seqloom.metrics.alignment import Symmetrisation, symmetrise
from seqloom.metrics.alignment_error import AlignmentScores, GoldLinks, parse_gold, score_alignments

FAMILIES = ("recurrent", "transformer")
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


def tokenise(text: str) -> str:
    """Lower-case the text and separate punctuation from words, as in the gold sentences."""
    return normalise_spelling(" ".join(_TOKEN.findall(text.lower())))


def normalise_spelling(text: str) -> str:
    """Replace an old German spelling. The gold sentences contain both."""
    return re.sub(r"\bdaß\b", "dass", text)


def read_lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def prepare(context: Context) -> None:
    """Write each corpus as two files of tokenised lines, one per language."""
    folder = context.work / "text"
    folder.mkdir(parents=True, exist_ok=True)
    for name, files in CORPORA.items():
        if (folder / f"{name}.en").exists():
            continue
        for language, column in zip(("de", "en"), _read_columns(context.data, files), strict=True):
            text = "".join(f"{tokenise(line)}\n" for line in column)
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")


def _read_columns(data: Path, files: Sequence[str]) -> tuple[list[str], list[str]]:
    """The German and the English sentences."""
    if len(files) == 2:
        return read_lines(data / files[0]), read_lines(data / files[1])
    rows = [line.split("\t") for line in read_lines(data / files[0])]
    return [row[1] for row in rows], [row[0] for row in rows]


def recipe_source(job: Job, context: Context) -> tuple[Any, list[str]]:
    source, target = job.change.name.split("-")
    corpora = [
        {"kind": "parallel", "source": f"{name}.{source}", "target": f"{name}.{target}"}
        for name in CORPORA
    ]
    tables = tomllib.loads((RECIPES / "alignment.toml").read_text(encoding="utf-8"))
    tables["data"] |= {"folder": str((context.work / "text").absolute()), "train": corpora}
    tables["model"] = job.recipe.facts["model"]
    return tables, [*job.recipe.settings, *job.change.settings]


def measure(job: Job, context: Context) -> Record:
    """Train one direction; `both` scores both directions together."""
    if job.change.name != "both":
        return train_and_score(job, context)
    record: Record = {
        "recipe": job.recipe.name,
        "change": "both",
        "seed": job.seed,
        "signatures": {},
    }
    return {**record, **score_both(job, context), **describe_versions()}


def score(job: Job, context: Context, folders: Sequence[Path]) -> Record:
    """There are no scores of one direction."""
    run = seqloom.load(folders[0])
    return {"parameters": count_parameters(run), "scores": {}, "signatures": {}}


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


def score_both(job: Job, context: Context) -> Record:
    """Scores of both directions and their combinations, on the odd pairs and on all pairs."""
    pairs, gold = gold_pairs(context.data)
    alignments: dict[str, list[WordAlignment]] = {}
    directions: dict[str, Any] = {}
    for direction in DIRECTIONS:
        folder = context.work / job.run_name(job.study.changes[direction], job.seed)
        alignments[direction], directions[direction] = _score_direction(
            folder, direction == "de-en", pairs, gold
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
    scores = {name: _test_and_all(candidate, gold) for name, candidate in links.items()}
    return {"scores": {}, "alignments": scores, "directions": directions}


def _test_and_all(links: Sequence[Any], gold: Sequence[GoldLinks]) -> dict[str, Any]:
    return {
        "test": asdict(_score_subset(links, gold, slice(1, None, 2))),
        "all": asdict(_score_subset(links, gold, slice(None))),
    }


def _score_subset(
    links: Sequence[Any], gold: Sequence[GoldLinks], subset: slice
) -> AlignmentScores:
    return score_alignments(links[subset], gold[subset])


def _score_direction(
    folder: Path, is_forward: bool, pairs: Sequence[Pair], gold: Sequence[GoldLinks]
) -> tuple[list[WordAlignment], dict[str, Any]]:
    """Align with the heads that are best on the even pairs. Returns alignments and facts."""
    sources, targets = zip(*(pair if is_forward else pair[::-1] for pair in pairs), strict=True)
    gold = [links if is_forward else reverse_links(links) for links in gold]
    run = seqloom.load(folder)
    all_heads = [
        list(prediction.alignment) for prediction in run.score(sources, targets, attention=True)
    ]
    candidates = find_heads(run.score(sources[::2], targets[::2], heads=True), gold[::2])
    save_alignment_heads(folder, candidates[0], run.weights_digest)
    predictions = seqloom.load(folder).score(sources, targets)
    facts = {
        "heads": str(candidates[0].choice),
        "dev": asdict(candidates[0].scores),
        "all heads": _test_and_all(all_heads, gold),
        "parameters": count_parameters(run),
    }
    return [word_alignment(prediction) for prediction in predictions], facts


def table(study: Study, records: Sequence[Record], family: str) -> str:
    """The facts of both directions, and a row for each of them and for their combinations."""
    (result,) = store.select(records, family, "both")
    lines, rows = [], []
    for direction, facts in result["directions"].items():
        (trained,) = store.select(records, family, direction)
        lines.append(
            f"{direction}: {facts['parameters'] / 1e6:.1f} M parameters, {trained['seconds']:.0f} s; "
            f"best on the even pairs: {facts['heads']} ({facts['dev']['error_rate']:.3f})."
        )
        rows.append(row(f"{direction}, mean of all heads", facts["all heads"]))
        rows.append(row(f"{direction}, best heads", result["alignments"][direction]))
    rows += [
        row(f"both, {name}", scores)
        for name, scores in result["alignments"].items()
        if name not in DIRECTIONS
    ]
    head = ["", "precision", "recall", "error rate, test", "all 100"]
    return "\n".join([*lines, "", markdown(head, rows)])


def row(name: str, scores: dict[str, Any]) -> list[str]:
    """Precision and recall are those of the test pairs."""
    test = scores["test"]
    return [
        name,
        f"{test['precision']:.2f}",
        f"{test['recall']:.2f}",
        f"**{test['error_rate']:.3f}**",
        f"{scores['all']['error_rate']:.3f}",
    ]
