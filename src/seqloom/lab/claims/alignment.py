"""Tests the claim: attention weights align target words with the source words they translate."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from torch import Tensor

from seqloom.config.schema.recipe import RunConfig
from seqloom.lab.charts import condition_lines
from seqloom.lab.claim import Trial, declare_claim
from seqloom.lab.models.toy_languages import (
    ENGLISH,
    FRENCH,
    alignment,
    clauses,
    sentence,
    write_pairs,
)
from seqloom.lab.models.trained_models import (
    Tables,
    build_recipe,
    letter_corpus,
    strings_to_test,
    train_once,
    training_tables,
)
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.viz.chart import BarChart, Chart

COPY, REVERSE, SWAP = "copy", "reverse", "adjectives after nouns"
TASKS = (COPY, REVERSE, SWAP)
LONGEST = 10
OFFSETS = (-3, -2, -1, 0, 1, 2, 3)
OFFSET_WEIGHTS = [f"weight at {offset:+d}" for offset in OFFSETS]


@dataclass(frozen=True)
class AlignmentSettings:
    """Sizes of the experiment.

    examples: number of training pairs
    tests:    number of test pairs
    nouns:    number of nouns in the toy languages
    """

    examples: int
    steps: int
    width: int
    tests: int
    nouns: int


@dataclass(frozen=True)
class AlignedPair:
    """A sentence pair with its alignment: the index of the source token for each target token."""

    source: str
    target: str
    alignment: list[int]


def configure(trial: Trial[AlignmentSettings]) -> RunConfig:
    """Return the recipe of a GRU with attention.

    The condition of the trial is a task: to copy or reverse strings of letters, or to translate
    between toy languages. For strings of letters, the recipe appends positional encodings to the
    embeddings of encoder and decoder.
    """
    settings = trial.settings
    shared: Tables = {"kind": "recurrent"}
    if trial.condition == SWAP:
        data = {"folder": str(_folder(trial)), "train": _FILES, "dev": _FILES | {"last_line": 20}}
        tokenizer = "whitespace"
    else:
        corpus = letter_corpus(trial.condition, 1, LONGEST)
        train = {**corpus, "examples": settings.examples, "seed": trial.seed}
        data = {"train": train, "dev": {**corpus, "examples": 20}}
        tokenizer = "characters"
        width = settings.width // 2
        shared["positions"] = {"kind": "sinusoidal", "join": "append", "width": width}
    attention = {"score": {"kind": "bilinear"}}
    return build_recipe(
        {
            "data": data,
            "text": {"tokenizer": {"kind": tokenizer}},
            "model": {
                "encoder": {**shared, "width": settings.width // 2},
                "decoder": {**shared, "width": settings.width, "attention": attention},
            },
            "training": training_tables(settings.steps, trial.seed, 4e-3, batch_tokens=1_024),
        }
    )


_FILES = {"kind": "parallel", "source": "en-fr.en", "target": "en-fr.fr"}


def _folder(trial: Trial[AlignmentSettings]) -> Path:
    settings = trial.settings
    return trial.models / f"en-fr-{settings.nouns}-{settings.examples}-{trial.seed}"


def measure(trial: Trial[AlignmentSettings]) -> Numbers:
    """Compare the attention weights, under teacher forcing, with the known alignment.

    Returns means over all target tokens. "weight at +1" is the weight of the source token that
    follows the correct source token.
    """
    settings = trial.settings
    if trial.condition == SWAP:
        pair = [(ENGLISH, FRENCH)]
        write_pairs(_folder(trial), pair, settings.examples, trial.seed, settings.nouns)
    run = train_once(trial, configure(trial))
    pairs = _test_pairs(trial)
    scored = run.score(
        [pair.source for pair in pairs], [pair.target for pair in pairs], attention=True
    )
    per_token = [
        compare_with_alignment(prediction.attention[row], source_index, row)
        for prediction, pair in zip(scored, pairs, strict=True)
        if prediction.attention is not None
        for row, source_index in enumerate(pair.alignment)
    ]
    return {name: sum(each[name] for each in per_token) / len(per_token) for name in per_token[0]}


def _test_pairs(trial: Trial[AlignmentSettings]) -> list[AlignedPair]:
    count = trial.settings.tests
    if trial.condition == SWAP:
        return [
            AlignedPair(
                sentence(clause, ENGLISH),
                sentence(clause, FRENCH),
                alignment(clause, ENGLISH, FRENCH),
            )
            for clause in islice(clauses("test", 0, trial.settings.nouns), count)
        ]
    indices = list(range(LONGEST))
    correct = indices if trial.condition == COPY else indices[::-1]
    examples = strings_to_test(letter_corpus(trial.condition, 1, LONGEST), LONGEST, count)
    return [AlignedPair(example.source, example.target, correct) for example in examples]


def compare_with_alignment(weights: Tensor, source_index: int, row: int) -> Numbers:
    """Compare the attention weights of one target token with the known alignment.

    Returns these values:

    correct:     1 if the source token with the largest weight is the aligned one, else 0
    diagonal:    1 if the aligned source token has the same index as the target token, else 0
    uniform:     weight that each source token would have if all weights were equal
    weight at n: weight of the source token n positions after the aligned one

    weights:      (S,) attention weights over the source tokens. END is one of them.
    source_index: index of the source token that is aligned with the target token
    row:          index of the target token in its sentence
    """
    near = {
        name: float(weights[source_index + offset])
        if 0 <= source_index + offset < len(weights)
        else 0.0
        for offset, name in zip(OFFSETS, OFFSET_WEIGHTS, strict=True)
    }
    return {
        "correct": float(int(weights.argmax()) == source_index),
        "diagonal": float(row == source_index),
        "uniform": 1 / len(weights),
        **near,
    }


def judge(results: Results) -> Verdict:
    return conclude(
        *(
            Effect(
                f"{task}: the token with the largest weight is correct in",
                results.over_seeds(task, "correct"),
                above=0.5,
                format_spec=".1%",
            )
            for task in TASKS
        ),
        *(
            Effect(
                f"{task}: it is correct more often than the diagonal, by",
                results.between((task, "correct"), (task, "diagonal")),
                format_spec=".1%",
            )
            for task in (REVERSE, SWAP)
        ),
    )


def plot(results: Results) -> list[Chart]:
    bars = [(task, "correct") for task in TASKS] + [(SWAP, "diagonal"), (SWAP, "uniform")]
    names = (*TASKS, f"diagonal, {SWAP}", f"at random, {SWAP}")
    labels = ("offset from the correct source token", "mean attention weight")
    return [
        condition_lines(results, labels, TASKS, OFFSETS, OFFSET_WEIGHTS),
        BarChart(
            "fraction of correctly aligned target tokens",
            names,
            [results.over_seeds(*bar) for bar in bars],
        ),
    ]


CLAIM = declare_claim(
    "alignment",
    conditions=TASKS,
    sizes=AlignmentSettings,
    measure=measure,
    judge=judge,
    plot=plot,
)
