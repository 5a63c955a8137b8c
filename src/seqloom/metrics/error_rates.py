"""Exact match, token accuracy, and error rates by edit distance."""

from collections.abc import Sequence

from seqloom.metrics.score import References, Score, check_references


def exact_match(hypotheses: Sequence[str], references: References) -> Score:
    """Percentage of outputs that are exactly equal to one of their references."""
    check_references(hypotheses, references)
    hits = sum(
        hypothesis in texts for hypothesis, texts in zip(hypotheses, references, strict=True)
    )
    return Score("exact match", 100 * hits / len(hypotheses), None, True)


def tokenised_match(hypotheses: Sequence[str], references: References) -> Score:
    """Percentage of outputs that have the same tokens as one of their references.

    White space separates tokens. Its amount does not matter.
    """
    check_references(hypotheses, references)
    hits = sum(
        hypothesis.split() in [reference.split() for reference in texts]
        for hypothesis, texts in zip(hypotheses, references, strict=True)
    )
    return Score("exact match tokenised", 100 * hits / len(hypotheses), None, True)


def token_accuracy(hypotheses: Sequence[str], references: References) -> Score:
    """Percentage of tokens that are correct at their position.

    White space separates tokens. A token is correct if the reference has the same token at the
    same position; a missing or an additional token is wrong:

        100 · Σ correct / Σ max(length of output, length of reference)

    If an output has several references, the one with the largest share of correct tokens is used.
    If neither outputs nor references have tokens, the accuracy is 100.
    """
    check_references(hypotheses, references)
    correct = total = 0
    for hypothesis, texts in zip(hypotheses, references, strict=True):
        counts = [_count_correct(hypothesis.split(), reference.split()) for reference in texts]
        best = max(counts, key=lambda count: count[0] / count[1] if count[1] else 1.0)
        correct += best[0]
        total += best[1]
    return Score("token accuracy", 100 * correct / total if total else 100.0, None, True)


def _count_correct(output: Sequence[str], reference: Sequence[str]) -> tuple[int, int]:
    """Return the number of positions with equal tokens, and the length of the longer sequence."""
    correct = sum(token == target for token, target in zip(output, reference, strict=False))
    return correct, max(len(output), len(reference))


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the minimum number of insertions, deletions and substitutions that turn one sequence
    into the other (Levenshtein 1966)."""
    row = list(range(len(second) + 1))  # distance of the empty sequence to each prefix of `second`
    for count, first_item in enumerate(first, start=1):
        diagonal, row[0] = row[0], count
        for column, second_item in enumerate(second, start=1):
            substituted = diagonal + (first_item != second_item)
            diagonal = row[column]
            row[column] = min(substituted, row[column] + 1, row[column - 1] + 1)
    return row[-1]


def phoneme_error_rate(hypotheses: Sequence[str], references: References) -> Score:
    """Edits per hundred phonemes of the reference; lower is better.

    White space separates phonemes. If a word has several pronunciations (references), the one with
    the fewest edits is used. If several have equally few edits, the longest of them is used:

        100 · Σ edits / Σ phonemes of the reference that is used

    If all these references are empty, the rate is 0 without edits and otherwise 100, as for TER.
    """
    check_references(hypotheses, references)
    edits = phonemes = 0
    for hypothesis, texts in zip(hypotheses, references, strict=True):
        pronunciations = [reference.split() for reference in texts]
        output = hypothesis.split()
        nearest = min(
            (edit_distance(output, pronunciation), -len(pronunciation))
            for pronunciation in pronunciations
        )
        edits += nearest[0]
        phonemes -= nearest[1]
    rate = 100 * edits / phonemes if phonemes else 100.0 * bool(edits)
    return Score("phoneme error rate", rate, None, False)


def word_error_rate(hypotheses: Sequence[str], references: References) -> Score:
    """Percentage of words whose output differs from all their references; lower is better.

    Each input is one word, and its output is either correct or wrong. This is not the word error
    rate of speech recognition, which counts edits of words.
    """
    correct = exact_match(hypotheses, references)
    return Score("word error rate", 100 - correct.value, None, False)
