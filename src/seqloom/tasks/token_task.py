"""Base class of the tasks whose outputs are tokens."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, Self

from torch import Tensor

from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import TaskConfig
from seqloom.core.batch import Batch
from seqloom.core.signature import NoSource, Signature, Tokens
from seqloom.data.corpus.corpus import build_corpus, build_variants
from seqloom.data.corpus.dataset import Dataset, ProgressCallback, ignore_progress
from seqloom.data.corpus.vocabularies import train_tokenizers
from seqloom.data.example import Example, Split
from seqloom.data.modalities.modality import Modality
from seqloom.data.modalities.registry import learn_modality, load_modality
from seqloom.data.preparation.request import CorpusRequest
from seqloom.data.readers.splits import read_split
from seqloom.metrics.score import Metric, Score
from seqloom.metrics.sentence_scores import sentence_bleu_scores, sentence_chrf_scores
from seqloom.models.seq2seq import Model
from seqloom.tasks.losses import LIKELIHOOD, Ids, Objective, Reward, minimum_risk_loss, r_drop_loss
from seqloom.tasks.scored_texts import ScoredTexts, normalise_texts
from seqloom.tasks.task import ModelInput
from seqloom.text.build import load_tokenizer
from seqloom.text.tokenizer import Tokenizer
from seqloom.text.vocabulary import PAD


class TokenTask:
    """A task with token outputs, trained with cross-entropy.

    config:           its settings
    modality:         what the sources are; None if there are none
    tag_side:         where the model reads the tag with which a source text starts, such as <2de>.
                      "source": the tag stays in the source. "target": the tag becomes the first
                      target token
    metrics:          the metrics that the recipe selects, except SARI, which also needs the
                      sources. Empty if a recipe cannot select metrics for this task
    scores_sources:   True if a score, such as SARI, also compares outputs with their sources
    """

    modality: Modality | None = None
    target_tokenizer: Tokenizer
    tag_side: Literal["source", "target"] = "source"
    metrics: Sequence[Metric] = ()
    scores_sources: bool = False
    signature: Signature

    def __init__(self, config: TaskConfig, modality: Modality | None, target: Tokenizer) -> None:
        self.config = config
        self.modality = modality
        self.target_tokenizer = target
        source = None if modality is None else modality.tokenizer
        self.signature = Signature(
            NoSource() if modality is None else modality.spec,
            Tokens(target.size),
            shared=source is not None and source.digest == target.digest,
        )

    @classmethod
    def learn(cls, config: RunConfig, progress: ProgressCallback = ignore_progress) -> Self:
        """Train the tokenizers on the training split, and compute what the sources need."""
        tokenizers = train_tokenizers(config, progress)
        sources = (example.source for example in read_split(config.data, "train"))
        modality = learn_modality(config, tokenizers.source, sources)
        return cls(config.task, modality, tokenizers.target)

    @classmethod
    def load(cls, config: RunConfig, folder: Path) -> Self:
        modality = load_modality(config, folder)
        return cls(config.task, modality, load_tokenizer(folder, "target"))

    @property
    def source_tokenizer(self) -> Tokenizer | None:
        """The tokenizer of the sources; None if the sources are not text."""
        return None if self.modality is None else self.modality.tokenizer

    def prepare(self, text: str) -> ModelInput:
        """Convert an input to a model input.

        text: the input text. For other sources, it is what `Modality.prepare` reads, such as the
              path of an image
        """
        assert self.modality is not None
        return ModelInput(self.modality.prepare(text), ())

    def source_text(self, example: Example) -> str:
        """Return the input text of an example; empty if the task has no source."""
        return "" if self.modality is None else example.source

    def scores(self, outputs: Sequence[str], examples: Sequence[Example]) -> list[Score]:
        """Score outputs against the references of their examples. Return an empty list if the task
        has no references.

        All texts are first converted to the Unicode form of the target tokenizer. If this changes
        a text, the name of the form is added to the signature of each score, which lists the
        settings of the score.
        """
        texts = self.scored_texts(outputs, examples)
        return texts.sign_scores(self.compute_scores(texts.outputs, texts.examples))

    def scored_texts(self, outputs: Sequence[str], examples: Sequence[Example]) -> ScoredTexts:
        """Convert outputs and examples to the Unicode form in which `scores` compares them."""
        tags = self.target_tokenizer.preprocessing.tags
        return normalise_texts(outputs, examples, tags, self.scores_sources)

    def compute_scores(self, outputs: Sequence[str], examples: Sequence[Example]) -> list[Score]:
        """Compute the scores of outputs against the references of their examples.

        The caller has already converted all texts to the same Unicode form.
        """
        raise NotImplementedError

    def with_fast_scores(self, needed: str) -> "TokenTask":
        """Return a copy of this task whose `scores` leaves out scores that take long to compute.

        needed: name of a score that the copy computes even if it is slow
        """
        return self

    def save(self, folder: Path) -> None:
        if self.modality is not None:
            self.modality.save(folder)
        self.target_tokenizer.save(folder, "target")

    def corpus(self, config: RunConfig, split: Split, progress: ProgressCallback) -> Dataset:
        request = CorpusRequest(
            config.data, split, self.modality, self.target_tokenizer, self.tag_side
        )
        sampling = config.text.sampling
        if split == "train" and sampling is not None:
            return build_variants(request, sampling, config.training.seed, progress)
        return build_corpus(request, progress)

    def loss(self, model: Model, batch: Batch, objective: Objective = LIKELIHOOD) -> Tensor:
        """Return the loss of a batch, summed over all target positions except padding.

        By default, the loss of a position is -log p(y_t | y_<t, source). `objective` may select
        another loss.
        """
        if objective.minimum_risk is not None:
            config = objective.minimum_risk
            reward = sentence_reward(config.utility, self.target_tokenizer)
            risk = config.share * minimum_risk_loss(model, batch, reward, config.samples)
            if config.share == 1:
                return risk
            likelihood = self.loss(model, batch, replace(objective, minimum_risk=None))
            return risk + (1 - config.share) * likelihood
        if objective.r_drop:
            return r_drop_loss(model, batch, objective.smoothing, objective.r_drop)
        # The loss ignores PAD. Set every position beyond the length of its row to PAD.
        targets = batch.targets.values.masked_fill(~batch.targets.mask, PAD)
        loss: Tensor = model(batch).loss(targets, objective.smoothing, PAD)
        return loss


def sentence_reward(name: Literal["bleu", "chrf"], tokenizer: Tokenizer) -> Reward:
    """Return a function that computes the reward of sampled outputs for minimum risk training.

    The reward of an output is its sentence BLEU or chrF, between 0 and 1.
    """
    score_each = {"bleu": sentence_bleu_scores, "chrf": sentence_chrf_scores}[name]

    def reward(outputs: Sequence[Ids], reference: Ids) -> Sequence[float]:
        texts = [tokenizer.decode(output) for output in outputs]
        return [score / 100 for score in score_each(texts, [tokenizer.decode(reference)])]

    return reward
