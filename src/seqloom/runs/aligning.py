"""Aligning given pairs by attention, and finding the heads that do it best.

alignment/heads.json    in the run folder: the heads that were found, for these weights
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqloom.core.errors import ConfigError, DataError, StorageError
from seqloom.core.storage import damage, new_folder
from seqloom.metrics.alignment import Alignment, align_words, between_words
from seqloom.metrics.alignment_error import AlignmentScores, GoldLinks, score_alignments
from seqloom.metrics.symmetrise import Symmetry, agreeing, symmetrise
from seqloom.runs.heads import ALL_HEADS, Head, HeadChoice
from seqloom.runs.prediction import Prediction

ALIGNMENT = "alignment"
HEADS = "heads.json"
MOST = 8
"""Heads that are averaged at most, the best by themselves first."""
SHIFTS = (0, 1)


@dataclass(frozen=True)
class WordAlignment:
    """A pair of sentences, aligned.

    links:   for each target word the source word that it looked at most
    weights: (target words, source words) what each looked at; the rest of a row went to END
    """

    links: Alignment
    weights: NDArray[np.float64]
    targets: list[int]
    sources: list[int]


def aligned(output: Prediction) -> WordAlignment:
    """Read from the attention that aligns."""
    if output.aligning is None:
        raise ConfigError("this model has no attention, and nothing to align words by")
    weights, targets, sources = between_words(
        output.aligning.numpy(), output.word_of, output.source_word_of
    )
    return WordAlignment(list(output.alignment), weights, targets, sources)


def joined(forward: WordAlignment, backward: WordAlignment, how: Symmetry) -> Alignment:
    """What two runs of opposite directions say together: weights multiplied, then symmetrised."""
    if forward.weights.shape != backward.weights.shape[::-1]:
        raise DataError(
            f"the two runs do not find the same words in a pair: {forward.weights.shape[::-1]} and "
            f"{backward.weights.shape}, source before target; words are separated by spaces"
        )
    links = symmetrise(*agreeing(forward.weights, backward.weights), how)
    return [(forward.sources[source], forward.targets[target]) for source, target in links]


@dataclass(frozen=True)
class Candidate:
    """Heads, and how well they align."""

    choice: HeadChoice
    scores: AlignmentScores


def find_heads(outputs: Sequence[Prediction], gold: Sequence[GoldLinks]) -> list[Candidate]:
    """Every head alone, the best few together, whole layers and all; the best first.

    outputs: given targets with the attention of every head (`run.score(…, heads=True)`)
    Of two that align equally well, the one of fewer heads comes first.
    """
    assert outputs, "heads are found by examples"
    if any(one.heads is None for one in outputs):
        raise ConfigError("this model has no attention, and no heads to choose among")
    found: list[Candidate] = []
    for shift in SHIFTS:
        alone = [Candidate(one, _score(outputs, gold, one)) for one in _single(outputs, shift)]
        alone.sort(key=_merit)
        found += alone
        ranked = [candidate.choice.heads[0] for candidate in alone]
        for choice in _together(ranked, shift):
            found.append(Candidate(choice, _score(outputs, gold, choice)))
    return sorted(found, key=_merit)


def _merit(candidate: Candidate) -> tuple[float, int]:
    return candidate.scores.error_rate, len(candidate.choice.heads)


def _single(outputs: Sequence[Prediction], shift: int) -> Iterator[HeadChoice]:
    heads = outputs[0].heads
    assert heads is not None
    for layer in range(heads.shape[1]):
        for head in range(heads.shape[2]):
            yield HeadChoice(((layer, head),), shift)


def _together(ranked: Sequence[Head], shift: int) -> Iterator[HeadChoice]:
    """The best two, three, … of them; the heads of each layer; all heads."""
    wanted = [tuple(ranked[:count]) for count in range(2, min(MOST, len(ranked)) + 1)]
    for layer in sorted({layer for layer, _ in ranked}):
        wanted.append(tuple(sorted(head for head in ranked if head[0] == layer)))
    wanted.append(tuple(sorted(ranked)))
    for heads in dict.fromkeys(wanted):
        if len(heads) > 1:
            yield HeadChoice(heads, shift)


def _score(
    outputs: Sequence[Prediction], gold: Sequence[GoldLinks], choice: HeadChoice
) -> AlignmentScores:
    links = []
    for one in outputs:
        assert one.heads is not None
        weights = choice.rows(choice.mean(one.heads))
        links.append(align_words(weights.numpy(), one.word_of, one.source_word_of))
    return score_alignments(links, gold)


def store_heads(folder: Path, best: Candidate, weights: str) -> Path:
    """In the run folder, whole or not at all.

    weights: the digest of the weights that these are the heads of
    """
    content = {
        "heads": [list(head) for head in best.choice.heads],
        "shift": best.choice.shift,
        "weights": weights,
        "found": asdict(best.scores),
    }
    with new_folder(folder / ALIGNMENT) as temporary:
        (temporary / HEADS).write_text(json.dumps(content, indent=1), encoding="utf-8")
    return folder / ALIGNMENT / HEADS


def stored_heads(folder: Path, weights: str) -> tuple[HeadChoice, str]:
    """The heads that were found for these weights, all if none were; and what to say about it."""
    place = folder / ALIGNMENT
    if not place.exists():
        return ALL_HEADS, ""
    if problems := damage(place):
        listed = "\n".join(f"  {problem}" for problem in problems)
        raise StorageError(
            f"{place}: is damaged:\n{listed}\nRemove that folder, and find the heads again with "
            "`seqloom align --find-heads`."
        )
    content = json.loads((place / HEADS).read_bytes())
    if content["weights"] != weights:
        return ALL_HEADS, (
            f"{place / HEADS}: those heads were found for other weights, so all heads are "
            "averaged; find them again with `seqloom align --find-heads`"
        )
    heads = tuple((int(layer), int(head)) for layer, head in content["heads"])
    return HeadChoice(heads, int(content["shift"])), ""


def refuse_links_beyond(
    gold: Sequence[GoldLinks], pairs: Sequence[tuple[str, str]], name: str
) -> None:
    """Every gold link must lead to words that are there."""
    problems = [
        f"  line {number}: {', '.join(f'{one}-{other}' for one, other in beyond)}"
        for number, (known, (source, target)) in enumerate(zip(gold, pairs, strict=True), start=1)
        if (beyond := known.beyond(len(source.split()), len(target.split())))
    ]
    if problems:
        raise DataError(
            "\n".join(
                [
                    f"{name}: links lead to words that the sentences do not have; words are "
                    "separated by spaces and counted from 0, source before target:",
                    *problems[:10],
                    *([f"  and {len(problems) - 10} more lines"] if len(problems) > 10 else []),
                ]
            )
        )
