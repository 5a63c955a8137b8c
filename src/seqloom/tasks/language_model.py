"""Language model: nothing to a sequence of tokens. It makes sentences up, or finishes them."""

from collections.abc import Sequence

from torch import Tensor

from seqloom.core.sequences import Batch
from seqloom.core.signature import Nothing, Signature, Tokens
from seqloom.data.example import Example
from seqloom.metrics.score import Score
from seqloom.models.seq2seq import Model
from seqloom.tasks.consistency import r_drop_loss
from seqloom.tasks.likelihood import token_loss
from seqloom.tasks.task import Prepared
from seqloom.text.tokenizer import Tokenizer


class LanguageModel:
    source_tokenizer: Tokenizer | None = None

    def __init__(self, target: Tokenizer) -> None:
        self.target_tokenizer = target
        self.signature = Signature(Nothing(), Tokens(target.size), shared=False)

    def prepare(self, text: str) -> Prepared:
        """What is given is the beginning of the output; nothing is read."""
        return Prepared(None, tuple(self.target_tokenizer.encode(text)))

    def question(self, example: Example) -> str:
        return ""

    def loss(self, model: Model, batch: Batch, smoothing: float, r_drop: float = 0.0) -> Tensor:
        if r_drop:
            return r_drop_loss(model, batch, smoothing, r_drop)
        return token_loss(model, batch, smoothing)

    def scores(self, outputs: Sequence[str], examples: Sequence[Example]) -> list[Score]:
        """None: a made-up sentence has no reference. Perplexity says how good the model is."""
        return []
