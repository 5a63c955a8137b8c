"""Labelling: predicts one label for a sequence, or one label for each of its positions."""

from dataclasses import replace

from seqloom.config.schema.recipe import RunConfig
from seqloom.data.checks.lengths import label_count_error
from seqloom.data.corpus.dataset import Dataset, ProgressCallback
from seqloom.data.corpus.vocabularies import Tokenizers
from seqloom.data.example import Split
from seqloom.tasks.task import ModelInput
from seqloom.tasks.translation import Translation


class Labelling(Translation):
    """Predicts labels for a text or for frames. This is a translation task in which the source
    determines the number of target tokens. The decoder is in `models/labels.py`.
    """

    def prepare(self, text: str) -> ModelInput:
        """Convert an input to a model input.

        The maximum length of the output is the number of source positions plus 1, because END
        follows the labels.
        """
        prepared = super().prepare(text)
        return replace(prepared, max_length=max(prepared.source_length or 0, 1) + 1)

    def corpus(self, config: RunConfig, split: Split, progress: ProgressCallback) -> Dataset:
        """Load a split. Raise DataError if the number of labels of an example is wrong."""
        corpus = super().corpus(config, split, progress)
        tokenizers = Tokenizers(self.source_tokenizer, self.target_tokenizer)
        lengths = (corpus.source_lengths, corpus.target_lengths)
        problem = label_count_error(config, tokenizers, split, *lengths)
        if problem is not None:
            raise problem
        return corpus
