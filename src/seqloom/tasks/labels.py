"""Labels: one for a sequence of tokens, or one for each of its positions."""

from collections.abc import Callable
from dataclasses import replace

from seqloom.config.run import RunConfig
from seqloom.data.example import Split
from seqloom.data.examples import Examples
from seqloom.data.labelled import label_problem
from seqloom.data.survey import Tokenizers
from seqloom.tasks.task import Prepared
from seqloom.tasks.translation import Translation


class Labels(Translation):
    """A translation whose model knows where the output ends: see `models/labels.py`."""

    def prepare(self, text: str) -> Prepared:
        """Room for a label at every position, however many there are, and for END."""
        prepared = super().prepare(text)
        return replace(prepared, length=max(len(prepared.source or ()), 1) + 1)

    def corpus(self, config: RunConfig, split: Split, progress: Callable[[int], None]) -> Examples:
        """Labels too many or too few are refused: nothing could be learned from them."""
        found = super().corpus(config, split, progress)
        tokenizers = Tokenizers(self.source_tokenizer, self.target_tokenizer)
        lengths = (found.source_lengths, found.target_lengths)
        problem = label_problem(config, tokenizers, split, *lengths)
        if problem is not None:
            raise problem
        return found
