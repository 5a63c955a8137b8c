"""RunConfig: a whole recipe, and the rules between its sections."""

from typing import Self

from pydantic import model_validator

from seqloom.config.corpora import CaptionsConfig, LinesConfig, RunningTextConfig, SeriesConfig
from seqloom.config.data import DataConfig
from seqloom.config.decoding import BeamConfig, DecodingConfig
from seqloom.config.engine import EngineConfig
from seqloom.config.image import PatchEncoderConfig
from seqloom.config.labels import LabelsDecoderConfig
from seqloom.config.model import ImageEncoderConfig, ModelConfig, NoEncoderConfig
from seqloom.config.recurrent import RecurrentDecoderConfig
from seqloom.config.running import running_text_problems
from seqloom.config.section import Section
from seqloom.config.tags import tag_problems, tags_of
from seqloom.config.task import (
    CaptioningConfig,
    ForecastConfig,
    LabelsConfig,
    LanguageModelConfig,
    TaskConfig,
    TranslationConfig,
)
from seqloom.config.text import TextConfig
from seqloom.config.training import TeacherForcingConfig, TrainingConfig


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
        problems = running_text_problems(self.data)
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
        sourceless = (LinesConfig, RunningTextConfig)
        if not speaks and any(isinstance(corpus, sourceless) for corpus in self.data.train):
            problems.append(
                "data.train: plain text has no source side; use 'parallel', 'tsv', 'csv' or "
                "'jsonl', or task.kind = 'language-model'"
            )
        problems += tag_problems(self.data, self.text.tags)
        if speaks and tags_of(self.data):
            problems.append(
                "data.train: a language model reads nothing, so no tag can tell it what is wanted; "
                "leave tag out"
            )
        problems += self._score_problems() + self._label_problems()
        problems += self._image_problems() + self._number_problems() + self._risk_problems()
        if self.training.batching == "packed" and not self.model.takes_packed:
            problems.append(
                "training.batching: only Transformers can keep apart the pairs that share a row; a "
                "recurrent state would run from one into the next; use 'bucketed' or 'padded'"
            )
        if self.data.is_running_text and self.training.batching != "auto":
            problems.append(
                "training.batching: running text always comes in windows of one length; leave it "
                "'auto'"
            )
        if self.decoding.one_line and not self.data.is_running_text:
            problems.append("decoding.one_line: only running text has several lines; leave it out")
        if self.data.is_running_text and self.text.sampling is not None:
            problems.append(
                "text.sampling: running text is cut into subwords in one way; leave sampling out"
            )
        if self.model.tie == "all" and not self.text.shared:
            problems.append(
                "model.tie: one matrix for source and target needs one vocabulary; "
                "set text.shared = true, or model.tie = 'output'"
            )
        if not alone:
            problems += self._copying_problems()
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _copying_problems(self) -> list[str]:
        decoder = self.model.decoder
        if isinstance(decoder, LabelsDecoderConfig) or not decoder.copying:
            return []
        if not self.task.reads_text:
            return [
                f"model.decoder.copying: the task '{self.task.kind}' reads no text that could be "
                "copied; switch copying off"
            ]
        if not self.text.shared:
            return [
                "model.decoder.copying: what is copied must mean the same on both sides, so they "
                "need one vocabulary; set text.shared = true, or switch copying off"
            ]
        return []

    def _number_problems(self) -> list[str]:
        if not isinstance(self.task, ForecastConfig):
            return []
        problems = []
        settings, decoder = self.training, self.model.decoder
        if self.task.rollout and not isinstance(decoder, RecurrentDecoderConfig):
            problems.append(
                "task.rollout: gradients run back through a chain of states, which a Transformer "
                "does not have; use a recurrent decoder, or rollout = false"
            )
        if not isinstance(settings.feeding, TeacherForcingConfig):
            problems.append(
                "training.feeding: is for words; numbers are fed back in by task.rollout = true"
            )
        if settings.label_smoothing or settings.r_drop:
            problems.append(
                "training.label_smoothing and training.r_drop: are about probabilities, which "
                "numbers have none of; set both to 0"
            )
        if settings.batching not in ("auto", "padded"):
            problems.append("training.batching: windows are all of one size; use 'padded'")
        if self.model.tie != "none":
            problems.append("model.tie: numbers have no embeddings; set tie = 'none'")
        if settings.stopping.score != "loss":
            problems.append("training.stopping.score: a forecast is judged by its loss; use 'loss'")
        if self.task.turn and any(
            isinstance(corpus, SeriesConfig) and (len(corpus.columns) != 2 or corpus.context)
            for corpus in self.data.train
        ):
            problems.append("task.turn: only a plane can be turned: two columns, and no context")
        return problems

    def _image_problems(self) -> list[str]:
        problems = []
        task, encoder = self.task, self.model.encoder
        looks = isinstance(task, CaptioningConfig)
        if looks and not isinstance(encoder, ImageEncoderConfig):
            problems.append(
                f"model.encoder: '{encoder.kind}' reads no images; use kind = 'convolution' or "
                "'patches'"
            )
        if not looks and isinstance(encoder, ImageEncoderConfig):
            problems.append(
                f"model.encoder: '{encoder.kind}' reads images, but the task is '{task.kind}'; set "
                "task.kind = 'captioning', or choose an encoder of tokens"
            )
        shown = [isinstance(corpus, CaptionsConfig) for corpus in self.data.train]
        if looks != all(shown) or looks != any(shown):
            problems.append(
                "data.train: captioning learns from images with captions, and other tasks cannot; "
                "use kind = 'captions' with task.kind = 'captioning'"
            )
        if (
            isinstance(task, CaptioningConfig)
            and isinstance(encoder, PatchEncoderConfig)
            and task.size % encoder.patch_size
        ):
            problems.append(
                f"model.encoder.patch_size: {task.size} pixels cannot be cut into patches of "
                f"{encoder.patch_size}; change one of the two"
            )
        return problems

    def _score_problems(self) -> list[str]:
        wanted = self.training.stopping.score
        if wanted == "loss":
            return []
        if isinstance(self.task, LanguageModelConfig):
            return [
                "training.stopping.score: what a language model makes up cannot be compared with "
                "anything; use 'loss'"
            ]
        known = (
            self.task.scores if isinstance(self.task, TranslationConfig | LabelsConfig) else None
        )
        if known is not None and wanted not in known:
            return [
                f"training.stopping.score: '{wanted}' is none of task.scores; use 'loss' or one of "
                f"{', '.join(known)}, or add it to task.scores"
            ]
        return []

    def _risk_problems(self) -> list[str]:
        if self.training.risk is None:
            return []
        task = self.task
        if not isinstance(task, TranslationConfig | CaptioningConfig):
            return [
                f"training.risk: compares texts that are put out with the truth, and the task "
                f"'{task.kind}' has none; leave it out"
            ]
        if isinstance(task, TranslationConfig) and task.tag_side == "target":
            return [
                "training.risk: an output that begins with a tag is not told which one is wanted; "
                "set task.tag_side = 'source'"
            ]
        return []

    def _label_problems(self) -> list[str]:
        labels = isinstance(self.model.decoder, LabelsDecoderConfig)
        wanted = isinstance(self.task, LabelsConfig)
        problems = []
        if wanted and not labels:
            problems.append(
                f"model.decoder: the task 'labels' needs kind = 'labels', not "
                f"'{self.model.decoder.kind}', which may put out any number of them"
            )
        if labels and not wanted:
            problems.append(
                f"model.decoder: kind = 'labels' gives labels alone; set task.kind = 'labels', not "
                f"'{self.task.kind}'"
            )
        if wanted and self.text.target.kind != "whitespace":
            problems.append(
                f"text.target_tokenizer: a label is what white space separates, not "
                f"'{self.text.target.kind}'; set target_tokenizer.kind = 'whitespace'"
            )
        rules = self.decoding
        if wanted and (rules.min_length or rules.max_length or rules.no_repeat_ngram):
            problems.append(
                "decoding: the source says how many labels there are, and they repeat; leave "
                "min_length, max_length and no_repeat_ngram out"
            )
        return problems
