"""RunConfig: a whole recipe, and the rules between its sections."""

from typing import Self

from pydantic import model_validator

from seqloom.config.data import DataConfig, LinesConfig
from seqloom.config.decoding import BeamConfig, DecodingConfig
from seqloom.config.engine import EngineConfig
from seqloom.config.model import ModelConfig, NoEncoderConfig
from seqloom.config.section import Section
from seqloom.config.task import LanguageModelConfig, TaskConfig, TranslationConfig
from seqloom.config.text import TextConfig
from seqloom.config.training import TrainingConfig


class RunConfig(Section):
    task: TaskConfig = TranslationConfig()
    data: DataConfig
    text: TextConfig = TextConfig()
    model: ModelConfig
    training: TrainingConfig
    decoding: DecodingConfig = BeamConfig()
    engine: EngineConfig = EngineConfig()

    @model_validator(mode="after")
    def _sections_agree(self) -> Self:
        problems = []
        alone = isinstance(self.model.encoder, NoEncoderConfig)
        speaks = isinstance(self.task, LanguageModelConfig)
        if speaks and not alone:
            problems.append(
                "model.encoder: a language model has no source; set model.encoder.kind = 'none'"
            )
        if not speaks and alone:
            problems.append(
                f"model.encoder: the task '{self.task.kind}' has a source to read; "
                "choose an encoder such as kind = 'recurrent'"
            )
        if not speaks and any(isinstance(corpus, LinesConfig) for corpus in self.data.train):
            problems.append(
                "data.train: plain lines have no source side; use 'parallel', 'tsv' or 'jsonl', or "
                "task.kind = 'language-model'"
            )
        if speaks and self.training.stopping.score != "loss":
            problems.append(
                "training.stopping.score: what a language model makes up cannot be compared with "
                "anything; use 'loss'"
            )
        if self.training.batching == "packed" and not self.model.takes_packed:
            problems.append(
                "training.batching: only Transformers can keep apart the pairs that share a row; a "
                "recurrent state would run from one into the next; use 'bucketed' or 'padded'"
            )
        if self.model.tie == "all" and not self.text.shared:
            problems.append(
                "model.tie: one matrix for source and target needs one vocabulary; "
                "set text.shared = true, or model.tie = 'output'"
            )
        if problems:
            raise ValueError("\n".join(problems))
        return self
