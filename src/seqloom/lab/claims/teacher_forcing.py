"""Tests two claims about teacher forcing.

1. A model learns faster with teacher forcing than with free running.
2. A model trained with scheduled sampling is more robust to its own errors than one trained with
   teacher forcing only.
"""

from dataclasses import dataclass

from seqloom.config.schema.decoding import GreedyConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.data.example import Example
from seqloom.inference.run import Run
from seqloom.lab.charts import condition_bars, condition_lines
from seqloom.lab.claim import Trial, declare_claim
from seqloom.lab.models.trained_models import (
    Tables,
    build_recipe,
    learning_curve,
    letter_accuracy,
    letter_corpus,
    strings_to_test,
    train_once,
    training_tables,
)
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.viz.chart import Chart

TEACHER_FORCING, FREE_RUNNING = "teacher forcing", "free running"
SCHEDULED_SAMPLING = "scheduled sampling"
CONDITIONS = (TEACHER_FORCING, SCHEDULED_SAMPLING, FREE_RUNNING)
LONGEST = 12
MIDDLE = LONGEST // 2
CORPUS = letter_corpus("copy", 2, LONGEST, symbols=10)
EVALUATIONS = 10
"""Number of evaluations during training."""
EXACT = [f"exact after {tenth} tenths" for tenth in range(1, EVALUATIONS + 1)]


@dataclass(frozen=True)
class TeacherForcingSettings:
    examples: int
    steps: int
    width: int
    tests: int


def configure(trial: Trial[TeacherForcingSettings]) -> RunConfig:
    """Return the recipe of an encoder-decoder without attention.

    The condition of the trial determines what the decoder reads during training: target letters
    (teacher forcing), its own predictions (free running), or a mixture of both (scheduled
    sampling).
    """
    settings = trial.settings
    decoder_inputs: dict[str, Tables] = {
        TEACHER_FORCING: {"kind": "teacher-forcing"},
        FREE_RUNNING: {"kind": "free-running"},
        SCHEDULED_SAMPLING: {"kind": "scheduled-sampling", "end": 0.5, "steps": settings.steps},
    }
    decoder = {"kind": "recurrent", "width": settings.width, "initial_state": "copy"}
    return build_recipe(
        {
            "task": {"scores": ["exact-match"]},
            "data": {
                "train": {**CORPUS, "examples": settings.examples, "seed": trial.seed},
                "dev": {**CORPUS, "examples": settings.tests},
            },
            "text": {"tokenizer": {"kind": "characters"}},
            "model": {
                "encoder": {"kind": "recurrent", "width": settings.width // 2},
                "decoder": {**decoder, "attention": {"kind": "none"}},
            },
            "training": {
                **training_tables(settings.steps, trial.seed, 4e-3),
                "decoder_input": decoder_inputs[trial.condition],
                "evaluate_every": settings.steps // EVALUATIONS,
                "evaluate_examples": settings.tests,
                "stopping": {"score": "exact-match"},
            },
        }
    )


def measure(trial: Trial[TeacherForcingSettings]) -> Numbers:
    """Measure the percentage of exact outputs during training, and robustness after training.

    To measure robustness, the first letters of each output are given. The last given letter is
    correct in one test and wrong in another test. Both tests measure the fraction of correct
    letters after the given ones.
    """
    run = train_once(trial, configure(trial))
    curve = [value for _, value in learning_curve(run, "exact-match")]
    examples = strings_to_test(CORPUS, LONGEST, trial.settings.tests)
    correct = [example.target[: MIDDLE + 1] for example in examples]
    wrong = [prefix[:-1] + _next_letter(prefix[-1]) for prefix in correct]
    return {
        **dict(zip(EXACT, curve, strict=True)),
        "mean exact match": sum(curve) / len(curve),
        "final exact match": curve[-1],
        "after a correct prefix": _accuracy_after(correct, run, examples),
        "after an error": _accuracy_after(wrong, run, examples),
    }


def _accuracy_after(prefixes: list[str], run: Run, examples: list[Example]) -> float:
    """Return the fraction of correct letters after the given prefixes.

    prefixes: for each example, the letters with which its output is forced to start
    """
    predictions = run.translate(
        [example.source for example in examples], decoding=GreedyConfig(), prefixes=prefixes
    )
    return letter_accuracy(
        [prediction.text[MIDDLE + 1 :] for prediction in predictions],
        [example.target[MIDDLE + 1 :] for example in examples],
    )


def _next_letter(letter: str) -> str:
    """Return the next letter of the ten-letter alphabet. After the last letter comes the first."""
    return chr(ord("a") + (ord(letter) - ord("a") + 1) % 10)


def judge(results: Results) -> Verdict:
    return conclude(
        Effect(
            "averaged over the training, teacher forcing is better than free running by",
            results.difference("mean exact match", TEACHER_FORCING, FREE_RUNNING),
            unit="percent of exact outputs",
        ),
        Effect(
            "after an error, scheduled sampling has more correct letters than teacher forcing, by",
            results.difference("after an error", SCHEDULED_SAMPLING, TEACHER_FORCING),
            format_spec=".1%",
        ),
    )


def plot(results: Results) -> list[Chart]:
    fractions = [tenth / EVALUATIONS for tenth in range(1, EVALUATIONS + 1)]
    labels = ("fraction of the training", "exact outputs, percent")
    bars = "fraction of correct letters after an error"
    return [
        condition_lines(results, labels, CONDITIONS, fractions, EXACT),
        condition_bars(results, bars, CONDITIONS, "after an error"),
    ]


CLAIM = declare_claim(
    "teacher-forcing",
    conditions=CONDITIONS,
    sizes=TeacherForcingSettings,
    measure=measure,
    judge=judge,
    plot=plot,
)
