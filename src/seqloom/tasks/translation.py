"""Translation: maps a sequence of tokens to a sequence of tokens."""

from collections.abc import Sequence

from seqloom.config.schema.names import METRICS
from seqloom.config.schema.task import LabelsConfig, TranslationConfig
from seqloom.data.example import Example
from seqloom.data.modalities.modality import Modality
from seqloom.extensions.registry import load_part
from seqloom.metrics.build import build_metric
from seqloom.metrics.score import Score
from seqloom.tasks.task import ModelInput
from seqloom.tasks.token_task import TokenTask
from seqloom.text.tokenizer import Tokenizer

SLOW_SCORES = frozenset(name for name, facts in METRICS.items() if facts.is_slow)
SOURCE_SCORES = frozenset(name for name, facts in METRICS.items() if facts.reads_sources)


class Translation(TokenTask):
    """Maps a source text to a target text."""

    config: TranslationConfig | LabelsConfig
    modality: Modality

    def __init__(
        self,
        config: TranslationConfig | LabelsConfig,
        modality: Modality,
        target: Tokenizer,
    ) -> None:
        super().__init__(config, modality, target)
        names = config.scores
        self.metrics = [
            build_metric(name, target.preprocessing.lowercase)
            for name in names
            if name not in SOURCE_SCORES
        ]
        self.scores_sources = not SOURCE_SCORES.isdisjoint(names)
        self.tag_side = config.tag_side if isinstance(config, TranslationConfig) else "source"

    def with_fast_scores(self, needed: str) -> "Translation":
        scores = [name for name in self.config.scores if name not in SLOW_SCORES or name == needed]
        config = self.config.model_copy(update={"scores": tuple(scores)})
        return Translation(config, self.modality, self.target_tokenizer)

    def prepare(self, text: str) -> ModelInput:
        """Convert an input text to a model input.

        White space around the text is removed. If `tag_side` is "target", a tag at the start of
        the text, such as a target language, is removed too. The output then starts with this tag.
        """
        tag, rest = "", text.strip()
        if self.tag_side == "target":
            tag, rest = self.target_tokenizer.preprocessing.tags.first(rest)
        prefix = tuple(self.target_tokenizer.encode(tag)) if tag else ()
        return ModelInput(self.modality.prepare(rest), prefix, hidden_prefix=len(prefix))

    def compute_scores(self, outputs: Sequence[str], examples: Sequence[Example]) -> list[Score]:
        """Compute the scores that the recipe lists, in the same order.

        SARI compares outputs with sources and references, the other scores only with references.
        """
        references = [example.references for example in examples]
        sources = [example.source for example in examples]
        reference_scores = (metric(outputs, references) for metric in self.metrics)
        return [
            load_part(METRICS[name].builds)(sources, outputs, references)
            if name in SOURCE_SCORES
            else next(reference_scores)
            for name in self.config.scores
        ]
