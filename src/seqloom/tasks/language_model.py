"""Language model: nothing to a sequence of tokens. It makes sentences up, or finishes them."""

from collections.abc import Sequence

from seqloom.core.signature import Nothing, Signature, Tokens
from seqloom.data.example import Example
from seqloom.metrics.score import Score
from seqloom.tasks.task import Prepared
from seqloom.tasks.tokens import TokenTask
from seqloom.text.tokenizer import Tokenizer


class LanguageModel(TokenTask):
    def __init__(self, target: Tokenizer) -> None:
        self.target_tokenizer = target
        self.signature = Signature(Nothing(), Tokens(target.size), shared=False)

    def prepare(self, text: str) -> Prepared:
        """What is given is the beginning of the output; nothing is read."""
        return Prepared(None, tuple(self.target_tokenizer.encode(text)))

    def question(self, example: Example) -> str:
        return ""

    def scores(self, outputs: Sequence[str], examples: Sequence[Example]) -> list[Score]:
        """None: a made-up sentence has no reference. Perplexity says how good the model is."""
        return []
