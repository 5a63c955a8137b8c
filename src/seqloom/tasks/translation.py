"""Translation: a sequence of tokens to a sequence of tokens, in whatever language."""

from collections.abc import Sequence

from seqloom.core.signature import Signature, Tokens
from seqloom.data.example import Example
from seqloom.metrics.bleu import bleu, chrf, ter
from seqloom.metrics.overlap import exact_match, token_accuracy
from seqloom.metrics.score import Score
from seqloom.tasks.task import Prepared
from seqloom.tasks.tokens import TokenTask
from seqloom.text.tokenizer import Tokenizer


class Translation(TokenTask):
    def __init__(self, source: Tokenizer, target: Tokenizer) -> None:
        self.source_tokenizer = source
        self.target_tokenizer = target
        self._source = source
        self.signature = Signature(
            Tokens(source.size), Tokens(target.size), shared=source.digest == target.digest
        )

    def prepare(self, text: str) -> Prepared:
        """White space around a line means nothing: there is none in training either."""
        return Prepared(tuple(self._source.encode(text.strip())), ())

    def question(self, example: Example) -> str:
        return example.source

    def scores(self, outputs: Sequence[str], examples: Sequence[Example]) -> list[Score]:
        """Where text is folded to lower case, references are as well: the signatures say so."""
        folded = self.target_tokenizer.lowercase
        references = [
            tuple(one.lower() if folded else one for one in example.references)
            for example in examples
        ]
        return [
            bleu(outputs, references, lowercase=folded),
            chrf(outputs, references, lowercase=folded),
            *(measure(outputs, references) for measure in (ter, exact_match, token_accuracy)),
        ]
