"""Translation: a sequence of tokens to a sequence of tokens, in whatever language."""

from collections.abc import Sequence
from typing import Literal

from seqloom.config.kinds import ScoreName, SourceScoreName
from seqloom.core.signature import Signature, Tokens
from seqloom.data.example import Example
from seqloom.metrics.build import build_metric
from seqloom.metrics.sari import sari
from seqloom.metrics.score import Score
from seqloom.tasks.task import Prepared
from seqloom.tasks.tokens import TokenTask
from seqloom.text.tokenizer import Tokenizer

SLOW = frozenset({"ter"})
"""Scores that can take longer than the training between two looks at them: word by word, TER tries
every shift of every phrase, for each reference."""


class Translation(TokenTask):
    def __init__(
        self,
        source: Tokenizer,
        target: Tokenizer,
        scores: Sequence[ScoreName | SourceScoreName],
        tag_side: Literal["source", "target"] = "source",
    ) -> None:
        self.source_tokenizer = source
        self.target_tokenizer = target
        self._names = scores
        self.metrics = [build_metric(name, target.lowercase) for name in scores if name != "sari"]
        self._source = source
        self.tag_side = tag_side
        self.signature = Signature(
            Tokens(source.size), Tokens(target.size), shared=source.digest == target.digest
        )

    def while_training(self, wanted: str) -> "Translation":
        names = [name for name in self._names if name not in SLOW or name == wanted]
        return Translation(self._source, self.target_tokenizer, names, self.tag_side)

    def prepare(self, text: str) -> Prepared:
        """White space around a line means nothing: there is none in training either."""
        tag, rest = "", text.strip()
        if self.tag_side == "target":
            tag, rest = self.target_tokenizer.tags.first(rest)
        begin = tuple(self.target_tokenizer.encode(tag)) if tag else ()
        return Prepared(tuple(self._source.encode(rest)), begin, hidden=len(begin))

    def question(self, example: Example) -> str:
        return example.source

    def scores(self, outputs: Sequence[str], examples: Sequence[Example]) -> list[Score]:
        """SARI alone compares outputs with their sources, too."""
        references = [example.references for example in examples]
        found = (metric(outputs, references) for metric in self.metrics)
        sources = [example.source for example in examples]
        return [
            sari(sources, outputs, references) if name == "sari" else next(found)
            for name in self._names
        ]
