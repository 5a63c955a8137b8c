"""What all tasks have in common whose outputs are tokens."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from torch import Tensor

from seqloom.config.run import RunConfig
from seqloom.config.training import RiskConfig
from seqloom.core.sequences import Batch
from seqloom.core.signature import Signature
from seqloom.data.corpus import CorpusRequest, build_corpus
from seqloom.data.example import Example, Split
from seqloom.data.examples import Examples
from seqloom.data.variants import build_variants
from seqloom.metrics.score import Metric, Score
from seqloom.metrics.sentences import each_bleu, each_chrf
from seqloom.models.seq2seq import Model
from seqloom.tasks.consistency import r_drop_loss
from seqloom.tasks.likelihood import token_loss
from seqloom.tasks.objective import LIKELIHOOD, Objective
from seqloom.tasks.risk import Ids, Judge, risk_loss
from seqloom.tasks.task import Prepared
from seqloom.text.tokenizer import Tokenizer


class TokenTask:
    """Cuts text into tokens, and is wrong by -log p.

    source_tokenizer: None: no text is read
    image_size:       pixels along one side of the images that are read; None: none are
    tag_side:         where a tag goes that a text begins with: it stays there, or begins the output
    """

    source_tokenizer: Tokenizer | None = None
    target_tokenizer: Tokenizer
    image_size: int | None = None
    tag_side: Literal["source", "target"] = "source"
    metrics: Sequence[Metric] = ()
    """How outputs are judged, the most telling first; empty if there is nothing to compare with."""

    signature: Signature

    def prepare(self, text: str) -> Prepared:
        """What a user typed, as a model takes it in."""
        raise NotImplementedError

    def question(self, example: Example) -> str:
        """What a user would type to get the example's target; blank if there is nothing to ask."""
        raise NotImplementedError

    def scores(self, outputs: Sequence[str], examples: Sequence[Example]) -> list[Score]:
        """How good these outputs are; empty if outputs cannot be compared with anything."""
        raise NotImplementedError

    def while_training(self, wanted: str) -> "TokenTask":
        """The same, judged by what is quick to compute, and by the score that is wanted."""
        return self

    def save(self, folder: Path) -> None:
        if self.source_tokenizer is not None:
            self.source_tokenizer.save(folder, "source")
        self.target_tokenizer.save(folder, "target")

    def corpus(self, config: RunConfig, split: Split, progress: Callable[[int], None]) -> Examples:
        request = CorpusRequest(
            config.data,
            split,
            self.source_tokenizer,
            self.target_tokenizer,
            self.image_size,
            self.tag_side,
        )
        sampling = config.text.sampling
        if split == "train" and sampling is not None:
            return build_variants(request, sampling, config.training.seed, progress)
        return build_corpus(request, progress)

    def loss(self, model: Model, batch: Batch, objective: Objective = LIKELIHOOD) -> Tensor:
        if objective.risk is not None:
            return self._risk(model, batch, objective, objective.risk)
        if objective.r_drop:
            return r_drop_loss(model, batch, objective.smoothing, objective.r_drop)
        return token_loss(model, batch, objective.smoothing)

    def _risk(self, model: Model, batch: Batch, objective: Objective, risk: RiskConfig) -> Tensor:
        """That of its own outputs, and as much of the truth's loss as is left."""
        judge = utility_of(risk.utility, self.target_tokenizer)
        own = risk.share * risk_loss(model, batch, judge, risk.samples)
        if risk.share == 1:
            return own
        return own + (1 - risk.share) * self.loss(model, batch, replace(objective, risk=None))


def utility_of(name: Literal["bleu", "chrf"], tokenizer: Tokenizer) -> Judge:
    """How like the truth outputs are as texts, 0 to 1."""
    scores = {"bleu": each_bleu, "chrf": each_chrf}[name]

    def judge(outputs: Sequence[Ids], truth: Ids) -> Sequence[float]:
        found = scores([tokenizer.decode(one) for one in outputs], [tokenizer.decode(truth)])
        return [score / 100 for score in found]

    return judge
