"""One wrong word leads to more wrong words.

A search for the most probable sentence avoids some of these errors.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig
from seqloom.data.example import Example
from seqloom.lab.claim import Claim, Column, Trial
from seqloom.lab.models.trained_models import (
    TRANSLATION_SIZES,
    TranslationSettings,
    read_test_sentences,
    train_once,
    translation_recipe,
)
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.metrics.bleu import bleu
from seqloom.metrics.rouge import rouge
from seqloom.runs.run import Run
from seqloom.viz.chart import BarChart, Chart, LineChart, Series

CORRECT, WRONG = "correct first word", "wrong first word"
GREEDY, BEAM = "greedy", "beam of 5"
DISTANCES = (1, 2, 3, 4)
ACCURACIES = [f"accuracy {distance} words later" for distance in DISTANCES]
MAX_WORDS = 100
"""Upper bound on the number of words of a sentence."""
CANDIDATES = 10
"""Number of hypotheses per sentence in which to look for a wrong first word."""


def measure(trial: Trial[TranslationSettings]) -> Numbers:
    """Decode the test sentences as the condition requires, and score the outputs.

    Two conditions compare greedy search with beam search. In the other two, greedy search continues
    after a forced first word: the correct word or a wrong word.
    """
    run = train_once(trial, translation_recipe(trial.settings, trial.seed))
    sentences = read_test_sentences(run, trial.settings.sentences)
    if trial.condition in (GREEDY, BEAM):
        decoding = BeamConfig(width=5) if trial.condition == BEAM else GreedyConfig()
        return _measure_search(run, sentences, decoding)
    first_words = _find_first_words(run, sentences)
    words = [each.correct if trial.condition == CORRECT else each.wrong for each in first_words]
    return _measure_rest(run, [each.sentence for each in first_words], words)


def _measure_search(run: Run, sentences: Sequence[Example], decoding: DecodingConfig) -> Numbers:
    outputs = run.translate([each.source for each in sentences], decoding=decoding, attention=False)
    log_p = [sum(output.log_probabilities) / len(output.log_probabilities) for output in outputs]
    references = [each.references for each in sentences]
    return {
        "BLEU": bleu([output.text for output in outputs], references).value,
        "log p per token": sum(log_p) / len(log_p),
    }


@dataclass(frozen=True)
class FirstWords:
    """A sentence, its correct first word, and a plausible but wrong first word.

    wrong: first word of the best hypothesis that starts differently from every reference
    """

    sentence: Example
    correct: str
    wrong: str


def _find_first_words(run: Run, sentences: Sequence[Example]) -> list[FirstWords]:
    """Select the sentences that have at least one hypothesis with a wrong first word.

    Sentences whose target has fewer than three words are left out.
    """
    sources = [each.source for each in sentences]
    beam = BeamConfig(width=CANDIDATES, finished=CANDIDATES)
    candidates = run.translate_n_best(sources, CANDIDATES, decoding=beam, attention=False)
    selected = []
    for sentence, hypotheses in zip(sentences, candidates, strict=True):
        correct = {_first_word(reference) for reference in sentence.references}
        wrong = [
            word
            for hypothesis in hypotheses
            if (word := _first_word(hypothesis.text)) and word not in correct
        ]
        if wrong and len(sentence.target.split()) > 2:
            selected.append(FirstWords(sentence, _first_word(sentence.target), wrong[0]))
    return selected


def _first_word(text: str) -> str:
    return (text.split() or [""])[0]


def _measure_rest(run: Run, sentences: Sequence[Example], first_words: Sequence[str]) -> Numbers:
    """Decode each sentence greedily after a given first word, and score the words after it."""
    if not sentences:
        return dict.fromkeys(("rest", "later", "sentences", *ACCURACIES), 0.0)
    outputs = run.translate(
        [each.source for each in sentences],
        decoding=GreedyConfig(),
        attention=False,
        prefixes=first_words,
    )
    rests = [output.text.split()[1:] for output in outputs]
    reference_rests = [each.target.split()[1:] for each in sentences]
    texts, references = ([" ".join(words) for words in side] for side in (rests, reference_rests))
    return {
        "rest": rouge("rouge-1", texts, [(reference,) for reference in references]).value,
        "later": _accuracy(rests, reference_rests, range(2, MAX_WORDS)),
        "sentences": float(len(sentences)),
        **{
            name: _accuracy(rests, reference_rests, [distance])
            for distance, name in zip(DISTANCES, ACCURACIES, strict=True)
        },
    }


def _accuracy(
    rests: Sequence[Sequence[str]],
    reference_rests: Sequence[Sequence[str]],
    distances: Sequence[int],
) -> float:
    """Return the fraction of correct words at these distances from the first word.

    Distances at which the reference has no word are not counted.
    """
    pairs = [
        (rest[distance - 1 : distance], [reference[distance - 1]])
        for rest, reference in zip(rests, reference_rests, strict=True)
        for distance in distances
        if len(reference) >= distance
    ]
    return sum(word == reference for word, reference in pairs) / max(1, len(pairs))


def judge(results: Results) -> Verdict:
    return conclude(
        Effect(
            "after a wrong first word, the similarity of the rest to the reference is lower by",
            results.difference("rest", CORRECT, WRONG),
            unit="points of ROUGE-1",
        ),
        Effect(
            "at distance two and more, the fraction of correct words is lower by",
            results.difference("later", CORRECT, WRONG),
            format_spec=".1%",
        ),
        Effect(
            "a beam of 5 scores higher than greedy search by",
            results.difference("BLEU", BEAM, GREEDY),
            unit="BLEU",
        ),
    )


def plot(results: Results) -> list[Chart]:
    series = [
        Series(condition, DISTANCES, results.curve(condition, ACCURACIES))
        for condition in (CORRECT, WRONG)
    ]
    bars = [results.over_seeds(condition, "BLEU") for condition in (GREEDY, BEAM)]
    return [
        LineChart("words after the first", "fraction of correct words", series),
        BarChart("BLEU", (GREEDY, BEAM), bars),
    ]


CLAIM = Claim(
    name="early-mistake",
    sentence="In greedy search one early mistake leads to others; a beam, which searches for the "
    "most probable sentence, avoids some of them.",
    source="L3, Basic translator: inference (a small mistake can lead to a sequence of mistakes)",
    setup="A German to English model trained on Tatoeba. If one of the ten best hypotheses starts "
    "with a word that no reference starts with, greedy search continues from that word or from the "
    "reference's first word. The rest is compared with the rest of the reference (ROUGE-1 F, and "
    "word by word). In addition, complete sentences by greedy search and by a beam of 5.",
    confirms="After a wrong first word the rest shares fewer words with the reference, fewer words "
    "are correct even at distance two and more, and the beam has the higher BLEU.",
    refutes="The opposite of one of these statements holds with every seed.",
    conditions=(CORRECT, WRONG, GREEDY, BEAM),
    sizes=TRANSLATION_SIZES,
    measure=measure,
    judge=judge,
    plot=plot,
    columns=(
        Column("rest", "the rest, ROUGE-1", ".1f"),
        Column("later", "correct words, distance 2 and more", ".1%"),
        Column("BLEU", "BLEU", ".1f"),
        Column("log p per token", "log p per token", ".3f"),
    ),
)
