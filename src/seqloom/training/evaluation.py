"""Evaluation on the dev split during training."""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from seqloom.core.errors import TrainingError
from seqloom.data.corpus.dataset import Dataset
from seqloom.data.example import Example
from seqloom.inference.evaluation.groups import mean_scores, score_groups
from seqloom.inference.evaluation.perplexity import corpus_batches, corpus_loss
from seqloom.inference.predictor import Predictor
from seqloom.inference.search_settings import greedy_config
from seqloom.models.build import build_model
from seqloom.runs.integrity import WEIGHTS, weights_store
from seqloom.runs.weights import weights_of, write_tensors
from seqloom.tasks.token_task import TokenTask
from seqloom.training.event_log import Event
from seqloom.training.session import Session
from seqloom.training.step import ADVICE, check_weights_are_finite

T = TypeVar("T")

KEPT_WEIGHTS = 1
"""Number of versions of the weights in the folder weights/ of a run: one, the best."""


@dataclass(frozen=True)
class DevScores:
    """The scores of one evaluation.

    values:           the scores by name. The setting training.stopping.score is one of these names
    higher_is_better: names of the scores for which higher is better
    groups:           the scores of each group of the dev split, such as a language pair; empty if
                      there is only one group
    """

    values: dict[str, float]
    higher_is_better: frozenset[str] = frozenset()
    groups: dict[str, dict[str, float]] = field(default_factory=dict)


def evaluate(session: Session, check_signals: Callable[[], None]) -> None:
    """Score the model on the dev split and save its weights if they are the best so far.

    The ranks share the work, and every rank gets all scores.

    check_signals: called between batches, equally often on all ranks. It raises an exception if a
                   signal should end the evaluation
    """
    check_weights_are_finite(session.model)
    if session.step:  # the start weights of a fine-tuning do not belong to the average
        session.averager.before_evaluation(session.model, session.step)
    session.model.eval()
    try:
        with session.averager.applied(session.model):
            scored = _with_whole_model(session)
            scores = score_dev(scored, check_signals)
            general = _score_general(scored, check_signals)
            name = session.config.training.stopping.score
            session.best_score = session.best_score.after(
                scores.values[name],
                session.step,
                name in scores.higher_is_better,
                scores.values["loss"],
            )
            is_best = session.best_score.is_best(session.step)
            if is_best and session.world.is_main:
                _save_weights(scored)
    finally:
        session.model.train()
    session.evaluated = session.step
    groups = {"parts": scores.groups} if scores.groups else {}
    data = {**scores.values, "best": is_best, **groups, **general}
    session.log(Event("evaluate", session.step, data))


def _with_whole_model(session: Session) -> Session:
    """Return the session with a model that is not sharded, because searches need whole weights."""
    if not session.gradients.is_sharded:
        return session
    from seqloom.training.parallel.sharding import copy_whole_weights

    scored = copy.copy(session)
    scored.model = build_model(session.config.model, session.task.signature)
    scored.model.to(session.world.device).eval()
    copy_whole_weights(session.model, scored.model)
    return scored


def score_dev(session: Session, check_signals: Callable[[], None]) -> DevScores:
    """Score the model on the dev split."""
    return _score(session, "dev split", session.dev, session.dev_examples, check_signals)


def _score_general(
    session: Session, check_signals: Callable[[], None]
) -> dict[str, dict[str, float]]:
    """Score the model on the general dev set, a second dev set without influence on training.

    Returns {"general": scores}, or {} if there is no general dev set.
    """
    if session.general is None:
        return {}
    dataset, examples = session.general.dataset, session.general.examples
    scores = _score(session, "general dev set", dataset, examples, check_signals)
    return {"general": scores.values}


def _score(
    session: Session,
    name: str,
    dataset: Dataset,
    examples: list[Example],
    check_signals: Callable[[], None],
) -> DevScores:
    """Compute the loss on a whole dataset.

    If the task generates tokens from a source, also decode `examples` with greedy search and score
    the outputs.

    name: name of the dataset, for the error message
    """
    device, world = session.world.device, session.world
    total, count = dataset_loss(session, dataset, check_signals)
    if not math.isfinite(total):
        raise TrainingError(f"the loss on the {name} is {total}. {ADVICE}")
    values = {"loss": total / count}
    task = session.task
    if not isinstance(task, TokenTask):
        return DevScores(values)
    values["perplexity"] = math.exp(min(total / count, 100.0))
    sources = [task.source_text(example) for example in examples]
    if not any(sources):
        return DevScores(values)
    check_signals()
    predictor = Predictor(session.model, task, device)
    greedy = greedy_config(session.config.decoding)
    # Ranks decode different numbers of batches, so only a single rank can check in between.
    progress = (lambda done, of: check_signals()) if world.size == 1 else None
    predictions = predictor.predict(sources[world.rank :: world.size], greedy, progress=progress)
    outputs = _interleave(world.gather([best[0].text for best in predictions]))
    task = task.with_fast_scores(session.config.training.stopping.score)
    groups = score_groups(task, examples, outputs)
    # With several groups, the score is the mean over the groups. Every group has the same weight,
    # regardless of its size.
    scores = mean_scores(groups) or task.scores(outputs, examples)
    values |= {score.key: score.value for score in scores}
    return DevScores(
        values,
        frozenset(score.key for score in scores if score.higher_is_better),
        {group.part: {one.key: one.value for one in group.scores} for group in groups},
    )


def dataset_loss(
    session: Session, dataset: Dataset, check_signals: Callable[[], None]
) -> tuple[float, int]:
    """Compute the loss on a dataset. Returns (sum of the losses of all targets, number of targets).

    The ranks share the batches. The losses are added in the order of the batches, so the sum does
    not depend on the number of ranks.
    """
    world = session.world
    losses = []
    batches = corpus_batches(dataset, session.config.training.batch_tokens)
    for number, batch in enumerate(batches):
        if number % world.size == 0:
            check_signals()
        if number % world.size == world.rank:
            losses.append(corpus_loss(session.model, session.task, [batch], world.device))
    dealt = _interleave(world.gather(losses))
    return sum(loss for loss, _ in dealt), sum(count for _, count in dealt)


def _interleave(lists: Sequence[Sequence[T]]) -> list[T]:
    """Return the elements of several lists in turn: the first of each, the second of each, …"""
    return [
        each[index] for index in range(max(map(len, lists))) for each in lists if index < len(each)
    ]


def _save_weights(session: Session) -> None:
    def write(folder: Path) -> None:
        write_tensors(folder / WEIGHTS, weights_of(session.model))

    weights_store(session.folder).add(session.step, write, KEPT_WEIGHTS)
