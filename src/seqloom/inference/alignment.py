"""Word alignment of given sentence pairs, computed from attention weights.

This module also finds the attention heads that align words best. The chosen heads are stored in the
run folder, in alignment/heads.json.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqloom.core.errors import ConfigError, DataError, StorageError
from seqloom.core.storage import atomic_folder, find_damage
from seqloom.inference.attention_maps import ALL_HEADS, Head, HeadChoice
from seqloom.inference.prediction import Prediction
from seqloom.metrics.alignment import (
    Alignment,
    Symmetrisation,
    align_by_agreement,
    align_words,
    attention_between_words,
    symmetrise,
)
from seqloom.metrics.alignment_error import AlignmentScores, GoldLinks, score_alignments

ALIGNMENT = "alignment"
HEADS = "heads.json"
MAX_AVERAGED = 8
"""`find_heads` tries the mean of the best 2, 3, … heads, up to this number of heads."""
SHIFTS = (0, 1)
"""Values of `HeadChoice.shift` that `find_heads` tries."""


@dataclass(frozen=True)
class WordAlignment:
    """The alignment of a sentence pair.

    links:   pairs (index of source word, index of target word). Each target word is linked to the
             source word with the highest weight.
    weights: attention weights, one row per target word and one column per source word. A row may
             sum to less than 1, because tokens that belong to no word, such as END, are left out.
    targets: for each row of `weights`, the index of its word in the target sentence
    sources: for each column of `weights`, the index of its word in the source sentence
    """

    links: Alignment
    weights: NDArray[np.float64]
    targets: list[int]
    sources: list[int]


def word_alignment(output: Prediction) -> WordAlignment:
    """Return the word alignment of a prediction, computed from its `alignment_weights`."""
    if output.alignment_weights is None:
        raise ConfigError(
            "this model has no attention, so it cannot align words. Use a run with attention"
        )
    weights, targets, sources = attention_between_words(
        output.alignment_weights.numpy(), output.word_of, output.source_word_of
    )
    return WordAlignment(list(output.alignment), weights, targets, sources)


def combine_alignments(
    forward: WordAlignment, backward: WordAlignment, how: Symmetrisation
) -> Alignment:
    """Combine the alignments of two runs that translate in opposite directions.

    Multiplies the attention weights of both runs, takes the best links in each direction, and
    symmetrises them with the method `how`.
    """
    if forward.weights.shape != backward.weights.shape[::-1]:
        raise DataError(
            "the two runs find different numbers of (source, target) words in a sentence pair: "
            f"{forward.weights.shape[::-1]} and {backward.weights.shape}. Separate words by spaces"
        )
    links = symmetrise(*align_by_agreement(forward.weights, backward.weights), how)
    return [(forward.sources[source], forward.targets[target]) for source, target in links]


@dataclass(frozen=True)
class ScoredHeads:
    """A choice of attention heads, and the scores of the word alignment computed with them."""

    choice: HeadChoice
    scores: AlignmentScores


def find_heads(outputs: Sequence[Prediction], gold: Sequence[GoldLinks]) -> list[ScoredHeads]:
    """Score how well different choices of attention heads align words. Best choices come first.

    The choices are: each single head, the mean of the best 2, 3, … heads, the mean of each layer,
    and the mean of all heads. Each choice is scored twice: with the attention of the step that
    generates a token, and with the attention of the next step. If two choices have the same error
    rate, the one with fewer heads comes first.

    outputs: predictions with the attention of every head, from `run.score(…, heads=True)`
    gold:    the correct links of each sentence pair
    """
    assert outputs, "choosing heads needs examples"
    if any(output.heads is None for output in outputs):
        raise ConfigError(
            "this model has no attention, so it has no heads to choose from. Use a run with "
            "attention"
        )
    scored: list[ScoredHeads] = []
    for shift in SHIFTS:
        single = [
            ScoredHeads(choice, _score(outputs, gold, choice))
            for choice in _single_heads(outputs, shift)
        ]
        single.sort(key=_sort_key)
        scored += single
        ranked = [candidate.choice.heads[0] for candidate in single]
        for choice in _head_groups(ranked, shift):
            scored.append(ScoredHeads(choice, _score(outputs, gold, choice)))
    return sorted(scored, key=_sort_key)


def _sort_key(scored: ScoredHeads) -> tuple[float, int]:
    return scored.scores.error_rate, len(scored.choice.heads)


def _single_heads(outputs: Sequence[Prediction], shift: int) -> Iterator[HeadChoice]:
    heads = outputs[0].heads
    assert heads is not None
    for layer in range(heads.shape[1]):
        for head in range(heads.shape[2]):
            yield HeadChoice(((layer, head),), shift)


def _head_groups(ranked: Sequence[Head], shift: int) -> Iterator[HeadChoice]:
    """Yield the groups of heads to average: the best two, three, …; each layer; all heads.

    ranked: all heads, best first
    shift:  0 to align a token by the attention of the step that generates it, 1 to align it by the
            attention of the next step
    """
    groups = [tuple(ranked[:count]) for count in range(2, min(MAX_AVERAGED, len(ranked)) + 1)]
    for layer in sorted({layer for layer, _ in ranked}):
        groups.append(tuple(sorted(head for head in ranked if head[0] == layer)))
    groups.append(tuple(sorted(ranked)))
    for heads in dict.fromkeys(groups):
        if len(heads) > 1:
            yield HeadChoice(heads, shift)


def _score(
    outputs: Sequence[Prediction], gold: Sequence[GoldLinks], choice: HeadChoice
) -> AlignmentScores:
    links = []
    for output in outputs:
        assert output.heads is not None
        weights = choice.shift_rows(choice.mean(output.heads))
        links.append(align_words(weights.numpy(), output.word_of, output.source_word_of))
    return score_alignments(links, gold)


def save_alignment_heads(folder: Path, best: ScoredHeads, weights: str) -> Path:
    """Write the chosen heads to a file in the run folder, atomically. Returns the file path.

    weights: digest of the weights for which the heads were chosen
    """
    content = {
        "heads": [list(head) for head in best.choice.heads],
        "shift": best.choice.shift,
        "weights": weights,
        "found": asdict(best.scores),
    }
    with atomic_folder(folder / ALIGNMENT) as temporary:
        (temporary / HEADS).write_text(json.dumps(content, indent=1), encoding="utf-8")
    return folder / ALIGNMENT / HEADS


def load_alignment_heads(folder: Path, weights: str) -> tuple[HeadChoice, str]:
    """Load the stored alignment heads. Returns the heads and a note for the user.

    weights: digest of the weights in use

    If no heads are stored, returns all heads and an empty note. If the stored heads were chosen for
    other weights, returns all heads and a note that says so.
    """
    stored = folder / ALIGNMENT
    if not stored.exists():
        return ALL_HEADS, ""
    if problems := find_damage(stored):
        listed = "\n".join(f"  {problem}" for problem in problems)
        raise StorageError(
            f"{stored}: is damaged:\n{listed}\nRemove this folder and choose the heads again with "
            "`seqloom alignment-heads`."
        )
    content = json.loads((stored / HEADS).read_bytes())
    if content["weights"] != weights:
        return ALL_HEADS, (
            f"{stored / HEADS}: these heads were chosen for other weights, so all heads are averaged. "
            "Choose them again with `seqloom alignment-heads`"
        )
    heads = tuple((int(layer), int(head)) for layer, head in content["heads"])
    return HeadChoice(heads, int(content["shift"])), ""


def check_gold_links(
    gold: Sequence[GoldLinks], pairs: Sequence[tuple[str, str]], name: str
) -> None:
    """Raise a DataError if a gold link refers to a word beyond the end of its sentence."""
    problems = [
        f"  line {number}: {', '.join(f'{source}-{target}' for source, target in beyond)}"
        for number, (links, pair) in enumerate(zip(gold, pairs, strict=True), start=1)
        if (beyond := links.beyond(*(len(sentence.split()) for sentence in pair)))
    ]
    if problems:
        raise DataError(
            "\n".join(
                [
                    f"{name}: some links refer to words beyond the end of a sentence. Words are "
                    "separated by spaces and counted from 0: the link 0-1 joins source word 0 and "
                    "target word 1. Correct these links:",
                    *problems[:10],
                    *([f"  and {len(problems) - 10} more lines"] if len(problems) > 10 else []),
                ]
            )
        )
