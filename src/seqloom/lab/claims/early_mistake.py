"""Tests the claim: in an output, one wrong word leads to more wrong words.

A search for the most probable sentence avoids some of these errors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, product, zip_longest
from pathlib import Path
from random import Random

from seqloom.config.schema.decoding import (
    BeamConfig,
    DecodingConfig,
    GreedyConfig,
    SampleConfig,
)
from seqloom.config.schema.recipe import RunConfig
from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run
from seqloom.lab.charts import condition_bars, condition_lines
from seqloom.lab.claim import Trial, declare_claim
from seqloom.lab.models.text_files import write_lines
from seqloom.lab.models.toy_languages import ENGLISH, Clause, clauses, sentence
from seqloom.lab.models.trained_models import (
    Tables,
    build_recipe,
    train_once,
    training_tables,
    translate_alone,
)
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.viz.chart import Chart

OWN, WRONG, WRONG_BEAM = "own first word", "wrong first word", "wrong first word, beam of 5"
GREEDY, BEAM, SAMPLES = "greedy", "beam of 5", "best of 5 samples"
BEAM_WIDTH = 5
DISTANCES = (1, 2, 3, 4, 5, 6)
ERRORS = [f"errors {distance} words later" for distance in DISTANCES]
CANDIDATES = SampleConfig(samples=20, temperature=2.0)
"""How to sample the outputs in which `_find_first_words` looks for a wrong first word. The high
temperature makes these outputs diverse."""
Words = tuple[str, ...]


@dataclass(frozen=True)
class EarlyMistakeSettings:
    """Sizes of the experiment.

    examples: number of training sentences
    nouns:    number of different nouns. There are half as many adjectives and half as many verbs.
    tests:    number of test sentences
    """

    examples: int
    steps: int
    width: int
    nouns: int
    tests: int


def translations(clause: Clause) -> list[Words]:
    """Return the eight valid translations of a clause.

    The target language has two synonyms for every noun, one of each gender. A phrase starts with
    its noun; adjectives and article follow and agree with it in gender. A translation is active,
    with the subject first, or passive, with the object first. The verb agrees with the first noun.
    Two subjects, two objects and two voices give 2 · 2 · 2 translations.
    """
    valid = []
    for genders in product("mf", repeat=2):
        phrases = [
            tuple(f"{concept}.{gender}" for concept in reversed(phrase))
            for phrase, gender in zip((clause.subject, clause.object), genders, strict=True)
        ]
        subject, object_ = phrases
        valid.append((*subject, f"{clause.verb}.{genders[0]}", *object_))
        valid.append((*object_, f"{clause.verb}.passive.{genders[1]}", *subject))
    return valid


def configure(trial: Trial[EarlyMistakeSettings]) -> RunConfig:
    """Return the recipe of a recurrent encoder-decoder without attention.

    All conditions of the experiment use this recipe.
    """
    settings = trial.settings
    data: Tables = {"folder": str(_folder(trial))}
    for split in ("train", "dev"):
        sides = {"source": f"{split}.source", "target": f"{split}.target"}
        data[split] = {"kind": "parallel", **sides}
    return build_recipe(
        {
            "data": data,
            "text": {"tokenizer": {"kind": "whitespace"}},
            "model": {
                "encoder": {"kind": "recurrent", "width": settings.width // 2},
                "decoder": {
                    "kind": "recurrent",
                    "width": settings.width,
                    "initial_state": "copy",
                    "attention": {"kind": "none"},
                },
            },
            "training": training_tables(settings.steps, trial.seed, 4e-3, batch_tokens=1_024),
        }
    )


def _folder(trial: Trial[EarlyMistakeSettings]) -> Path:
    settings = trial.settings
    return trial.models / f"renderings-{settings.examples}-{settings.nouns}-{trial.seed}"


def _write_corpus(trial: Trial[EarlyMistakeSettings]) -> None:
    """Write training sentences, each with one of its translations, chosen at random."""
    settings = trial.settings
    random = Random(trial.seed)
    drawn = list(islice(clauses("train", trial.seed, settings.nouns), settings.examples))
    sides = {
        "source": [sentence(clause, ENGLISH) for clause in drawn],
        "target": [" ".join(random.choice(translations(clause))) for clause in drawn],
    }
    for split, count in (("train", settings.examples), ("dev", 20)):
        files = {f"{split}.{side}": lines[:count] for side, lines in sides.items()}
        write_lines(_folder(trial), files)


def measure(trial: Trial[EarlyMistakeSettings]) -> Numbers:
    """Measure the fraction of valid outputs or of wrong words, depending on the condition.

    In the conditions GREEDY, BEAM and SAMPLES, the result contains the fraction of valid outputs.
    In the other conditions, the first word of each output is given, and the result contains the
    fraction of wrong words after the first word.
    """
    _write_corpus(trial)
    run = train_once(trial, configure(trial))
    tests = list(islice(clauses("test", 0, trial.settings.nouns), trial.settings.tests))
    if trial.condition in (GREEDY, BEAM, SAMPLES):
        return _measure_search(run, tests, trial.condition)
    starts = _find_first_words(run, tests)
    words = [each.own if trial.condition == OWN else each.wrong for each in starts]
    decoding = BeamConfig(width=BEAM_WIDTH) if trial.condition == WRONG_BEAM else GreedyConfig()
    return _measure_rest(run, [each.clause for each in starts], words, decoding)


def _measure_search(run: Run, tests: Sequence[Clause], condition: str) -> Numbers:
    """Measure the fraction of valid outputs and the fraction of outputs with a valid first word.

    Also measures the mean log-probability of the outputs.
    """
    outputs = _decode(run, tests, condition)
    valid = [translations(clause) for clause in tests]
    words = [tuple(output.text.split()) for output in outputs]
    is_valid = [each in options for each, options in zip(words, valid, strict=True)]
    starts = [
        each[:1] in {option[:1] for option in options}
        for each, options in zip(words, valid, strict=True)
    ]
    return {
        "valid": sum(is_valid) / len(tests),
        "valid first word": sum(starts) / len(tests),
        "log p": sum(sum(output.log_probabilities) for output in outputs) / len(outputs),
    }


def _decode(run: Run, tests: Sequence[Clause], condition: str) -> list[Prediction]:
    """Decode with greedy search, beam search or sampling, according to the condition.

    Beam search and sampling both consider five candidates per sentence. Sampling returns the
    candidate with the highest score.
    """
    sources = [sentence(clause, ENGLISH) for clause in tests]
    if condition != SAMPLES:
        decoding = BeamConfig(width=BEAM_WIDTH) if condition == BEAM else GreedyConfig()
        return translate_alone(run, sources, decoding)
    sampling = SampleConfig(samples=BEAM_WIDTH)
    candidates = run.translate_n_best(
        sources, BEAM_WIDTH, decoding=sampling, attention=False, split=False, pass_through=False
    )
    return [max(each, key=lambda output: output.score) for each in candidates]


@dataclass(frozen=True)
class FirstWords:
    """A clause and two first words for its translation, both proposed by the model itself.

    own:   first word of the output of greedy search. At least one valid translation starts with it.
    wrong: the most probable wrong first word in sampled outputs. No valid translation starts with
           this word.
    """

    clause: Clause
    own: str
    wrong: str


def _find_first_words(run: Run, tests: Sequence[Clause]) -> list[FirstWords]:
    """Find a valid and a wrong first word for the translation of each clause.

    The model itself proposes both words. If it does not propose both, the clause is left out.
    """
    sources = [sentence(clause, ENGLISH) for clause in tests]
    greedy = translate_alone(run, sources, GreedyConfig())
    samples = run.translate_n_best(
        sources,
        CANDIDATES.samples,
        decoding=CANDIDATES,
        attention=False,
        split=False,
        pass_through=False,
    )
    selected = []
    for clause, output, candidates in zip(tests, greedy, samples, strict=True):
        valid = {option[0] for option in translations(clause)}
        own = first_word(output.text)
        wrong = {
            word: candidate.log_probabilities[0]
            for candidate in candidates
            if (word := first_word(candidate.text)) and word not in valid
        }
        if own in valid and wrong:
            selected.append(FirstWords(clause, own, max(wrong, key=lambda word: wrong[word])))
    return selected


def first_word(text: str) -> str:
    return (text.split() or [""])[0]


def _measure_rest(
    run: Run, tests: Sequence[Clause], words: Sequence[str], decoding: DecodingConfig
) -> Numbers:
    """Translate sentences with given first words, and measure how many other words are wrong.

    Returns these values:

    errors:               fraction of wrong words among all words after the first word
    later errors:         fraction of wrong words among all words after the second word
    errors n words later: fraction of wrong words among the words at distance n from the first word
    sentences:            number of sentences
    """
    if not tests:
        return dict.fromkeys(("errors", "later errors", "sentences", *ERRORS), 0.0)
    outputs = run.translate(
        [sentence(clause, ENGLISH) for clause in tests],
        decoding=decoding,
        attention=False,
        prefixes=words,
    )
    errors = [
        word_errors(tuple(output.text.split())[1:], [each[1:] for each in translations(clause)])
        for output, clause in zip(outputs, tests, strict=True)
    ]
    return {
        "errors": _mean([error for sentence_errors in errors for error in sentence_errors]),
        "later errors": _mean([error for each in errors for error in each[1:]]),
        "sentences": float(len(tests)),
        **{
            name: _mean([each[distance - 1] for each in errors if len(each) >= distance])
            for distance, name in zip(DISTANCES, ERRORS, strict=True)
        },
    }


def word_errors(rest: Words, valid_rests: Sequence[Words]) -> list[bool]:
    """Return, for each position after the first word, whether the word is wrong.

    The words are compared with the valid translation that gives the fewest errors. Missing and
    additional words are wrong.

    rest:        output without its first word
    valid_rests: all valid translations without their first words
    """
    compared = [
        [word != valid_word for word, valid_word in zip_longest(rest, valid)]
        for valid in valid_rests
    ]
    return min(compared, key=sum)


def _mean(errors: Sequence[bool]) -> float:
    return sum(errors) / max(1, len(errors))


def judge(results: Results) -> Verdict:
    return conclude(
        Effect(
            "after a wrong first word, the fraction of wrong words is higher by",
            results.difference("errors", WRONG, OWN),
            format_spec=".1%",
        ),
        Effect(
            "at distance two and more, it is higher by",
            results.difference("later errors", WRONG, OWN),
            format_spec=".1%",
        ),
        Effect(
            "a beam of 5 has more valid outputs than greedy search, by",
            results.difference("valid", BEAM, GREEDY),
            format_spec=".1%",
        ),
        Effect(
            "a beam of 5 has more valid outputs than the best of 5 samples, by",
            results.difference("valid", BEAM, SAMPLES),
            format_spec=".1%",
        ),
    )


def plot(results: Results) -> list[Chart]:
    labels = ("words after the first", "fraction of wrong words")
    return [
        condition_lines(results, labels, (OWN, WRONG, WRONG_BEAM), DISTANCES, ERRORS),
        condition_bars(results, "fraction of valid outputs", (GREEDY, SAMPLES, BEAM), "valid"),
    ]


CLAIM = declare_claim(
    "early-mistake",
    conditions=(OWN, WRONG, WRONG_BEAM, GREEDY, SAMPLES, BEAM),
    sizes=EarlyMistakeSettings,
    measure=measure,
    judge=judge,
    plot=plot,
)
