"""Language model: generates or completes text without a source."""

from collections.abc import Sequence

from seqloom.config.schema.recipe import RunConfig
from seqloom.data.corpus.corpus import build_corpus
from seqloom.data.corpus.dataset import Dataset, ProgressCallback
from seqloom.data.corpus.long_text import LongTextDataset, window_shape
from seqloom.data.example import Example, Split
from seqloom.data.preparation.request import CorpusRequest
from seqloom.metrics.score import Score
from seqloom.tasks.task import ModelInput
from seqloom.tasks.token_task import TokenTask
from seqloom.text.long_text import newline_id


class LanguageModel(TokenTask):
    """Predicts the next token of a text."""

    def prepare(self, text: str) -> ModelInput:
        """Convert an input text to a model input. The text becomes the prefix of the output."""
        return ModelInput(None, tuple(self.target_tokenizer.encode(text)))

    def corpus(self, config: RunConfig, split: Split, progress: ProgressCallback) -> Dataset:
        """Load a split. Each line is an example.

        A corpus without line structure, such as a book, is cut into windows instead.
        """
        shape, newline = window_shape(config.data, split), newline_id(self.target_tokenizer)
        if shape is None or newline is None:
            return super().corpus(config, split, progress)
        lines = build_corpus(
            CorpusRequest(config.data, split, None, self.target_tokenizer), progress
        )
        seed = config.training.seed if split == "train" else None
        return LongTextDataset(lines, shape, newline, seed)

    def compute_scores(self, outputs: Sequence[str], examples: Sequence[Example]) -> list[Score]:
        """Return an empty list: generated text has no reference to compare it with."""
        return []
