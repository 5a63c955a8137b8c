"""How much of an output is literally right."""

from collections.abc import Sequence

from seqloom.metrics.score import References, Score, check_references


def exact_match(hypotheses: Sequence[str], references: References) -> Score:
    """Outputs, in percent, that equal one of their references character by character."""
    check_references(hypotheses, references)
    hits = sum(
        hypothesis in several for hypothesis, several in zip(hypotheses, references, strict=True)
    )
    return Score("exact match", 100 * hits / len(hypotheses), None, True)


def tokenised_match(hypotheses: Sequence[str], references: References) -> Score:
    """Outputs, in percent, with the tokens of one of their references, whatever the white space
    between them."""
    check_references(hypotheses, references)
    hits = sum(
        hypothesis.split() in [reference.split() for reference in several]
        for hypothesis, several in zip(hypotheses, references, strict=True)
    )
    return Score("exact match tokenised", 100 * hits / len(hypotheses), None, True)


def token_accuracy(hypotheses: Sequence[str], references: References) -> Score:
    """Tokens, in percent, that stand where they should.

    Tokens are what white space separates. A token is right if the reference has the same one
    at the same place, counted from the start; one too many or too few is a wrong one:

        100 · Σ right / Σ max(length of output, length of reference)

    Of several references the one with the greatest share of right tokens counts. Where there
    is no token at all, in no output and no reference, everything is right.
    """
    check_references(hypotheses, references)
    right = total = 0
    for hypothesis, several in zip(hypotheses, references, strict=True):
        counts = [_compare(hypothesis.split(), reference.split()) for reference in several]
        best = max(counts, key=lambda count: count[0] / count[1] if count[1] else 1.0)
        right += best[0]
        total += best[1]
    return Score("token accuracy", 100 * right / total if total else 100.0, None, True)


def _compare(output: Sequence[str], reference: Sequence[str]) -> tuple[int, int]:
    """Tokens that are right, and tokens in all."""
    right = sum(one == other for one, other in zip(output, reference, strict=False))
    return right, max(len(output), len(reference))
