"""Early stopping: the best dev score so far, and how long ago it was reached."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class BestScore:
    """The best dev score, its step, and the number of evaluations since then.

    Checkpoints store these fields by name.
    """

    best: float | None = None
    best_step: int = 0
    waited: int = 0

    def after(self, score: float, step: int, higher_is_better: bool) -> "BestScore":
        """The state after one more evaluation."""
        if self.best is None or (score > self.best if higher_is_better else score < self.best):
            return BestScore(score, step, 0)
        return replace(self, waited=self.waited + 1)

    def is_best(self, step: int) -> bool:
        """True if this step has the best score so far."""
        return self.best_step == step

    def should_stop(self, patience: int | None) -> bool:
        """True after `patience` evaluations without a better score; None means never."""
        return patience is not None and self.waited >= patience
