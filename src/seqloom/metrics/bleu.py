"""BLEU, chrF and TER, computed by sacrebleu so that they compare with everyone else's."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Literal

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from seqloom.metrics.score import References, Score, check_references

_WORD = re.compile(r"[\w'-]*\w[\w'-]*")
_WORD_OR_MARK = re.compile(rf"{_WORD.pattern}|\S")

Tokenizer = Literal["13a", "char", "zh", "none"]
"""How sacrebleu cuts words for BLEU; none of these downloads anything."""


def bleu_metric(lowercase: bool = False, tokenize: Tokenizer = "13a") -> BLEU:
    """sacreBLEU's own BLEU."""
    # `force` only silences a warning about text that looks tokenised.
    return BLEU(lowercase=lowercase, tokenize=tokenize, force=True)


def chrf_metric(lowercase: bool = False) -> CHRF:
    """sacreBLEU's own chrF."""
    return CHRF(lowercase=lowercase)


def in_columns(references: References) -> list[list[str]]:
    """References per sentence -> as sacrebleu wants them, first references, second references, …

    A sentence with fewer of them has None in the later columns, which sacrebleu leaves out. Its
    types do not admit that None.
    """
    columns: list[list[str]] = [list(column) for column in zip_longest(*references)]
    return columns


def _score(
    metric: Metric, hypotheses: Sequence[str], references: References, higher_is_better: bool
) -> Score:
    check_references(hypotheses, references)
    result = metric.corpus_score(hypotheses, in_columns(references))
    signature = metric.get_signature().format()
    return Score(result.name, float(result.score), signature, higher_is_better)


def bleu(
    hypotheses: Sequence[str],
    references: References,
    lowercase: bool = False,
    tokenize: Tokenizer = "13a",
) -> Score:
    """BLEU of a corpus, 0 to 100 (Papineni et al. 2002): the geometric mean of the precisions of
    1- to 4-grams, times a penalty for outputs that are too short."""
    return _score(bleu_metric(lowercase, tokenize), hypotheses, references, True)


def bleu_by_order(hypotheses: Sequence[str], references: References) -> list[Score]:
    """BLEU-1 to BLEU-4: n-grams up to so many words, as captions are scored. Case does not count,
    and neither does punctuation (Karpathy and Li 2015)."""
    scores = []
    for order in (1, 2, 3, 4):
        score = _caption_bleu(hypotheses, references, order, _WORD)
        signature = f"{score.signature}, without punctuation"
        scores.append(replace(score, name=f"BLEU-{order}", signature=signature))
    return scores


def bleu_1_with_punctuation(hypotheses: Sequence[str], references: References) -> Score:
    """The same with every mark as a word, as many report it: most captions end in a full stop, which
    is easily guessed, and is worth some points."""
    score = _caption_bleu(hypotheses, references, 1, _WORD_OR_MARK)
    return replace(score, name="BLEU-1 with punctuation")


def _caption_bleu(
    hypotheses: Sequence[str], references: References, order: int, word: re.Pattern[str]
) -> Score:
    """BLEU of n-grams up to an order of what counts as a word."""
    check_references(hypotheses, references)
    outputs = [" ".join(word.findall(one)) for one in hypotheses]
    wanted = [[" ".join(word.findall(one)) for one in several] for several in references]
    metric = BLEU(lowercase=True, tokenize="none", max_ngram_order=order, force=True)
    return _score(metric, outputs, wanted, True)


def tokenised_bleu(
    hypotheses: Sequence[str], references: References, lowercase: bool = False
) -> Score:
    """BLEU of text that was cut into words before: what is between spaces is a word (`tok:none`)."""
    score = bleu(hypotheses, references, lowercase, tokenize="none")
    return replace(score, name="BLEU tokenised")


def sentence_bleu(
    hypotheses: Sequence[str], references: References, lowercase: bool = False
) -> Score:
    """The mean of the BLEU of every single text, what is between spaces being a word. Generated code
    is judged so: a short line counts as much as a long one, and one that is right counts 100."""
    check_references(hypotheses, references)
    metric = BLEU(lowercase=lowercase, tokenize="none", effective_order=True, force=True)
    pairs = zip(hypotheses, references, strict=True)
    values = [metric.sentence_score(one, list(several)).score for one, several in pairs]
    signature = f"{metric.get_signature().format()}, mean of {len(values):,} sentences"
    return Score("BLEU of sentences", sum(values) / max(len(values), 1), signature, True)


def lowercased_bleu(hypotheses: Sequence[str], references: References) -> Score:
    """BLEU of a corpus when case does not count: sacreBLEU's with `case:lc` in its signature."""
    score = bleu(hypotheses, references, lowercase=True)
    return replace(score, name="BLEU lower-cased")


def chrf(hypotheses: Sequence[str], references: References, lowercase: bool = False) -> Score:
    """chrF2 of a corpus, 0 to 100 (Popović 2015): an F-score over character 1- to 6-grams in
    which recall counts twice."""
    return _score(chrf_metric(lowercase), hypotheses, references, True)


def ter(hypotheses: Sequence[str], references: References) -> Score:
    """Edits for each hundred words of the reference, shifts included (Snover et al. 2006).

    Lower is better. Case is ignored, as sacrebleu does unless told otherwise.
    """
    return _score(TER(), hypotheses, references, False)
