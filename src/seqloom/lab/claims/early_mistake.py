"""One wrong word leads to others; looking for the likeliest sentence avoids some of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig
from seqloom.data.example import Example
from seqloom.lab.claim import Claim, Column, Trial
from seqloom.lab.experiment import trained
from seqloom.lab.results import Numbers, Results
from seqloom.lab.translators import (
    TRANSLATOR_SIZES,
    TranslatorSettings,
    translator,
    unseen_sentences,
)
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.metrics.bleu import bleu
from seqloom.metrics.rouge import rouge
from seqloom.runs.run import Run
from seqloom.viz.chart import BarChart, Chart, LineChart, Series

RIGHT, WRONG = "first word right", "first word wrong"
GREEDY, BEAM = "greedy", "beam of 5"
AFTER = (1, 2, 3, 4)
NAMES = [f"right {count} words later" for count in AFTER]
LATEST = 100
"""No sentence has more words."""
ALTERNATIVES = 10
"""Hypotheses among which a wrong first word is looked for."""


def measure(trial: Trial[TranslatorSettings]) -> Numbers:
    """Either a search over whole sentences, or greedy search from a first word that is given."""
    run = trained(trial, translator(trial.settings, trial.seed))
    sentences = unseen_sentences(run, trial.settings.sentences)
    if trial.condition in (GREEDY, BEAM):
        beam = BeamConfig(width=5) if trial.condition == BEAM else GreedyConfig()
        return _search(run, sentences, beam)
    chosen = _mistakes(run, sentences)
    words = [one.first if trial.condition == RIGHT else one.wrong for one in chosen]
    return _go_on(run, [one.sentence for one in chosen], words)


def _search(run: Run, sentences: Sequence[Example], decoding: DecodingConfig) -> Numbers:
    found = run.translate([one.source for one in sentences], decoding=decoding, attention=False)
    likelihood = [sum(one.log_probabilities) / len(one.log_probabilities) for one in found]
    return {
        "BLEU": bleu([one.text for one in found], [one.references for one in sentences]).value,
        "log p a piece": sum(likelihood) / len(likelihood),
    }


@dataclass(frozen=True)
class Mistake:
    """A sentence, its first word, and one that the model might have taken and that no reference
    begins with."""

    sentence: Example
    first: str
    wrong: str


def _mistakes(run: Run, sentences: Sequence[Example]) -> list[Mistake]:
    """Sentences of three words or more for which the model has a wrong first word to offer."""
    sources = [one.source for one in sentences]
    beam = BeamConfig(width=ALTERNATIVES, finished=ALTERNATIVES)
    offers = run.translate_n_best(sources, ALTERNATIVES, decoding=beam, attention=False)
    chosen = []
    for sentence, several in zip(sentences, offers, strict=True):
        firsts = {_first(reference) for reference in sentence.references}
        wrong = [word for one in several if (word := _first(one.text)) and word not in firsts]
        if wrong and len(sentence.target.split()) > 2:
            chosen.append(Mistake(sentence, _first(sentence.target), wrong[0]))
    return chosen


def _first(text: str) -> str:
    return (text.split() or [""])[0]


def _go_on(run: Run, sentences: Sequence[Example], words: Sequence[str]) -> Numbers:
    """Greedy search from these first words: what becomes of the rest."""
    if not sentences:
        return dict.fromkeys(("rest", "later", "sentences", *NAMES), 0.0)
    found = run.translate(
        [one.source for one in sentences],
        decoding=GreedyConfig(),
        attention=False,
        prefixes=words,
    )
    rests = [one.text.split()[1:] for one in found]
    wanted = [one.target.split()[1:] for one in sentences]
    texts, references = ([" ".join(words) for words in side] for side in (rests, wanted))
    return {
        "rest": rouge("rouge-1", texts, [(reference,) for reference in references]).value,
        "later": _right(rests, wanted, range(2, LATEST)),
        "sentences": float(len(sentences)),
        **{name: _right(rests, wanted, [count]) for count, name in zip(AFTER, NAMES, strict=True)},
    }


def _right(
    rests: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]], after: Sequence[int]
) -> float:
    """The share of right words so many words after the first, where a reference has so many."""
    pairs = [
        (rest[count - 1 : count], [true[count - 1]])
        for rest, true in zip(rests, wanted, strict=True)
        for count in after
        if len(true) >= count
    ]
    return sum(one == other for one, other in pairs) / max(1, len(pairs))


def judge(results: Results) -> Verdict:
    return conclude(
        Effect(
            "after a wrong first word, the rest is less like the reference, by",
            results.difference("rest", RIGHT, WRONG),
            unit="points of ROUGE-1",
        ),
        Effect(
            "two words after it and later, right words are rarer by",
            results.difference("later", RIGHT, WRONG),
            form=".1%",
        ),
        Effect(
            "a beam of 5 is ahead of greedy search by",
            results.difference("BLEU", BEAM, GREEDY),
            unit="BLEU",
        ),
    )


def plot(results: Results) -> list[Chart]:
    series = [Series(one, AFTER, results.curve(one, NAMES)) for one in (RIGHT, WRONG)]
    bars = [results.over_seeds(one, "BLEU") for one in (GREEDY, BEAM)]
    return [
        LineChart("words after the first", "share of right words", series),
        BarChart("BLEU", (GREEDY, BEAM), bars),
    ]


CLAIM = Claim(
    name="early-mistake",
    sentence="Taking the likeliest word at each step, one early mistake leads to others; looking "
    "for the likeliest sentence, with a beam, avoids some of them.",
    source="L3, Basic translator: inference (a small mistake can lead to a sequence of mistakes)",
    setup="A translator from German to English, trained on Tatoeba. Where the ten best hypotheses "
    "begin with a word that no reference begins with, greedy search is made to begin with it, or "
    "with the reference's word, and goes on by itself: the rest is compared with the reference's "
    "(ROUGE-1 F, and word by word). Beside it, whole sentences by greedy search and by a beam of 5.",
    confirms="After a wrong first word the rest shares fewer words with the reference, even two "
    "words later and beyond fewer are right, and the beam has the higher BLEU.",
    refutes="One of these is the other way round with every seed.",
    conditions=(RIGHT, WRONG, GREEDY, BEAM),
    sizes=TRANSLATOR_SIZES,
    measure=measure,
    judge=judge,
    plot=plot,
    columns=(
        Column("rest", "the rest, ROUGE-1", ".1f"),
        Column("later", "right words, later", ".1%"),
        Column("BLEU", "BLEU", ".1f"),
        Column("log p a piece", "log p a piece", ".3f"),
    ),
)
