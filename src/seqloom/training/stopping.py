"""Which weights are the best so far, and when to give up hope for better ones."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Progress:
    """The best score so far and how many evaluations have passed since."""

    best: float | None = None
    best_step: int = 0
    waited: int = 0

    def after(self, score: float, step: int, higher_is_better: bool) -> "Progress":
        if self.best is None or (score > self.best if higher_is_better else score < self.best):
            return Progress(score, step, 0)
        return replace(self, waited=self.waited + 1)

    def is_best(self, step: int) -> bool:
        return self.best_step == step

    def should_stop(self, patience: int | None) -> bool:
        return patience is not None and self.waited >= patience
