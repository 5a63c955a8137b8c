"""Labelling of vectors: predicts one label for a sequence of frames, or one for each frame."""

from collections.abc import Sequence
from pathlib import Path

from seqloom.config.schema.names import ExtensionName, ScoreName, SourceScoreName
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.signature import Signature, Tokens, Vectors
from seqloom.data.checks.labels import label_count_error
from seqloom.data.corpus.dataset import Dataset, ProgressCallback
from seqloom.data.corpus.frame_store import FrameScale
from seqloom.data.corpus.vocabularies import Tokenizers
from seqloom.data.example import Example, Split
from seqloom.metrics.build import build_metric
from seqloom.metrics.score import Score
from seqloom.tasks.task import ModelInput
from seqloom.tasks.token_task import TokenTask
from seqloom.text.tokenizer import Tokenizer


class FrameLabelling(TokenTask):
    """Predicts one label for each frame, or one label for the whole sequence of frames.

    A frame is a vector of numbers.

    frame_scale: normalises the numbers of the frames
    """

    frame_scale: FrameScale

    def __init__(
        self,
        frame_scale: FrameScale,
        target: Tokenizer,
        scores: Sequence[ScoreName | SourceScoreName | ExtensionName],
    ) -> None:
        self.frame_scale = frame_scale
        self.target_tokenizer = target
        self.metrics = [
            build_metric(name, target.preprocessing.lowercase) for name in scores if name != "sari"
        ]
        self.signature = Signature(Vectors(frame_scale.width), Tokens(target.size), shared=False)

    def prepare(self, text: str) -> ModelInput:
        """Convert frames, given as text, to a model input: "0.5,-1.2 0.6,-1.1" is two frames."""
        frames = self.frame_scale.encode(text)
        return ModelInput(None, (), frames=frames, max_length=max(len(frames), 1) + 1)

    def source_text(self, example: Example) -> str:
        return example.source

    def compute_scores(self, outputs: Sequence[str], examples: Sequence[Example]) -> list[Score]:
        references = [example.references for example in examples]
        return [metric(outputs, references) for metric in self.metrics]

    def save(self, folder: Path) -> None:
        super().save(folder)
        self.frame_scale.save(folder)

    def corpus(self, config: RunConfig, split: Split, progress: ProgressCallback) -> Dataset:
        """Load a split. Raise DataError if an example has too many or too few labels."""
        corpus = super().corpus(config, split, progress)
        tokenizers = Tokenizers(None, self.target_tokenizer)
        lengths = (corpus.source_lengths, corpus.target_lengths)
        problem = label_count_error(config, tokenizers, split, *lengths)
        if problem is not None:
            raise problem
        return corpus
