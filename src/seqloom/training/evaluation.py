"""A look at the dev split: is this the best model so far?"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from seqloom.core.errors import TrainingError
from seqloom.runs.choices import greedily
from seqloom.runs.likelihood import corpus_batches, summed_loss
from seqloom.runs.parts import mean_scores, score_parts
from seqloom.runs.predictor import Predictor
from seqloom.runs.soundness import WEIGHTS, weights_shelf
from seqloom.runs.weights import weights_of, write_tensors
from seqloom.tasks.tokens import TokenTask
from seqloom.training.journal import Event
from seqloom.training.session import Session
from seqloom.training.step import ADVICE, refuse_non_finite_weights

KEPT = 1
"""The best weights alone; checkpoints hold the others."""


def evaluate(session: Session, pause: Callable[[], None]) -> None:
    """Measure, remember, and put the weights on the shelf if they are the best so far.

    `pause` is called between pieces of work and may raise: an evaluation can be done again.
    """
    refuse_non_finite_weights(session.model)
    session.averager.before_evaluation(session.model, session.step)
    session.model.eval()
    try:
        with session.averager.applied(session.model):
            found = _measure(session, pause)
            wanted = session.config.training.stopping.score
            session.progress = session.progress.after(
                session.world.agreed(found.figures[wanted]),
                session.step,
                wanted in found.rising,
            )
            best = session.progress.is_best(session.step)
            if best and session.world.leads:
                _keep(session)
    finally:
        session.model.train()
    session.evaluated = session.step
    parts = {"parts": found.parts} if found.parts else {}
    session.tell(Event("evaluate", session.step, {**found.figures, "best": best, **parts}))


@dataclass(frozen=True)
class Measured:
    """What a look at the dev split has found.

    figures: by their names in recipes
    rising:  those of which more is better
    parts:   the scores of each pair of languages, or other part, if there are several
    """

    figures: dict[str, float]
    rising: frozenset[str] = frozenset()
    parts: dict[str, dict[str, float]] = field(default_factory=dict)


def _measure(session: Session, pause: Callable[[], None]) -> Measured:
    """Loss over the whole dev split, scores of greedy outputs over the first of it."""
    device, budget = session.world.device, session.config.training.batch_tokens
    batches = corpus_batches(session.dev, budget)
    total, count = summed_loss(session.model, session.task, batches, device, pause)
    if not math.isfinite(total):
        raise TrainingError(f"the loss on the dev split is {total}. {ADVICE}")
    figures = {"loss": total / count}
    task, examples = session.task, session.dev_examples
    if not isinstance(task, TokenTask):
        return Measured(figures)
    figures["perplexity"] = math.exp(min(total / count, 100.0))
    questions = [task.question(example) for example in examples]
    if not any(questions):
        return Measured(figures)
    predictor = Predictor(session.model, task, device)
    greedy = greedily(session.config.decoding)
    found = predictor.predict(questions, greedy, advance=lambda done, of: pause())
    outputs = [best[0].text for best in found]
    task = task.while_training(session.config.training.stopping.score)
    parts = score_parts(task, examples, outputs)
    # Where there are several parts none outweighs another, however many sentences it has.
    scores = mean_scores(parts) or task.scores(outputs, examples)
    figures |= {score.key: score.value for score in scores}
    return Measured(
        figures,
        frozenset(score.key for score in scores if score.higher_is_better),
        {part.part: {one.key: one.value for one in part.scores} for part in parts},
    )


def _keep(session: Session) -> None:
    def fill(folder: Path) -> None:
        write_tensors(folder / WEIGHTS, weights_of(session.model))

    weights_shelf(session.folder).add(session.step, fill, KEPT)
