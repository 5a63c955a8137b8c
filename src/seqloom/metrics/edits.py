"""Error rates by edit distance: how pronunciations are scored."""

from collections.abc import Sequence

from seqloom.metrics.overlap import exact_match
from seqloom.metrics.score import References, Score, check_references


def edit_distance(one: Sequence[str], other: Sequence[str]) -> int:
    """The fewest insertions, deletions and substitutions that make one sequence the other
    (Levenshtein 1966)."""
    row = list(range(len(other) + 1))  # from nothing of `one` to each beginning of `other`
    for count, here in enumerate(one, start=1):
        diagonal, row[0] = row[0], count
        for place, there in enumerate(other, start=1):
            kept = diagonal + (here != there)
            diagonal = row[place]
            row[place] = min(kept, row[place] + 1, row[place - 1] + 1)
    return row[-1]


def phoneme_error_rate(hypotheses: Sequence[str], references: References) -> Score:
    """Edits for each hundred phones of the reference; lower is better.

    Phones are what white space separates. Of several pronunciations the one that takes the fewest
    edits counts, the longest of them if there are several, with its own length:

        100 · Σ edits / Σ phones of that reference

    Where no reference has a phone, every phone that is put out is one error in a hundred.
    """
    check_references(hypotheses, references)
    edits = phones = 0
    for hypothesis, several in zip(hypotheses, references, strict=True):
        ways = [reference.split() for reference in several]
        found = hypothesis.split()
        nearest = min((edit_distance(found, way), -len(way)) for way in ways)
        edits += nearest[0]
        phones -= nearest[1]
    return Score(
        "phoneme error rate", 100 * edits / phones if phones else float(edits), None, False
    )


def word_error_rate(hypotheses: Sequence[str], references: References) -> Score:
    """Words, in percent, whose pronunciation equals none of those listed; lower is better.

    What speech recognition calls by the same name counts edits of words. Here an input is a word,
    and its output as a whole is right or wrong.
    """
    right = exact_match(hypotheses, references)
    return Score("word error rate", 100 - right.value, None, False)
