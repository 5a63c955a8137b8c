"""RunConfig: a complete recipe, and checks that its sections fit together."""

from typing import Annotated, Self

from pydantic import model_validator

from seqloom.config.extensions.section import ExtensionConfig, find_metric, list_extensions
from seqloom.config.extensions.unions import ByKind
from seqloom.config.schema.corpora import (
    CorpusConfig,
    ForecastCorpusConfig,
    HoldOutConfig,
    LongTextConfig,
    SplitDataConfig,
)
from seqloom.config.schema.data import DataConfig, FilterConfig
from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, EngineConfig
from seqloom.config.schema.model import ModelConfig
from seqloom.config.schema.names import METRICS
from seqloom.config.schema.section import Section
from seqloom.config.schema.tags import tag_problems, training_tags
from seqloom.config.schema.task import (
    CaptioningConfig,
    ForecastConfig,
    LabelsConfig,
    TaskConfig,
    TranslationConfig,
)
from seqloom.config.schema.text import TextConfig
from seqloom.config.schema.training import (
    DecoderInputConfig,
    FreeRunningConfig,
    ScheduledSamplingConfig,
    TeacherForcingConfig,
    TrainingConfig,
)
from seqloom.extensions.registry import FORM, built_in_parts


class RunConfig(Section):
    """A complete recipe: everything that defines a run."""

    task: Annotated[TaskConfig, ByKind()] = TranslationConfig()
    """What the model learns to do. Default: kind "translation"."""
    data: DataConfig
    """Training, development and test data."""
    text: TextConfig = TextConfig()
    """Tokenizers and vocabularies."""
    model: ModelConfig
    """Encoder and decoder."""
    training: TrainingConfig
    """Optimiser, schedule, batches, evaluation and stopping."""
    decoding: DecodingConfig = BeamConfig()
    """How outputs are searched for. Default: kind "beam"; "greedy" for labels."""
    engine: EngineConfig = EngineConfig()
    """Engine that computes outputs."""

    @property
    def decoder_input(self) -> DecoderInputConfig:
        """What the decoder reads in training: true targets, its own predictions, or a mixture.

        If task.rollout is set, the decoder reads its own predictions (free running). Otherwise the
        setting training.decoder_input decides.
        """
        is_rollout = isinstance(self.task, ForecastConfig) and self.task.rollout
        return FreeRunningConfig() if is_rollout else self.training.decoder_input

    @property
    def is_free_running(self) -> bool:
        """True if the decoder reads its own predictions in training, at some or all positions."""
        return not isinstance(self.decoder_input, TeacherForcingConfig)

    @property
    def extensions(self) -> dict[str, ExtensionConfig]:
        """Maps the path of a setting to the extension that it names.

        Extensions are parts of the model, metrics and the like that are written outside seqloom.
        """
        metrics = {
            f"task.scores[{index}]": find_metric(name)
            for index, name in enumerate(self.task.selected_scores or ())
            if name not in METRICS
        }
        return {**list_extensions(self), **metrics}

    @property
    def modality(self) -> str:
        """What the sources of the task are. "none" for a language model."""
        return self.data.modality if self.task.has_source else "none"

    @property
    def has_text_source(self) -> bool:
        """True if the source is text."""
        return self.modality == "text"

    @property
    def splits_sentences(self) -> bool:
        """True if predictions split a text into sentences by default.

        The setting text.split_sentences decides. If it is "auto",
        texts are split if the tokens are words or subwords. Only translation splits texts; for all
        other tasks this is False.
        """
        if not isinstance(self.task, TranslationConfig):
            return False
        if self.text.split_sentences == "auto":
            return self.text.tokenizer.kind in ("subwords", "words")
        return self.text.split_sentences

    @property
    def passes_through(self) -> bool:
        """True if predictions copy parts of the source that the model cannot translate.

        Such parts are, for example, URLs and characters that the vocabulary does not contain.
        """
        if not isinstance(self.task, TranslationConfig):
            return False
        setting = self.text.pass_through
        return self.splits_sentences if setting == "auto" else setting

    @model_validator(mode="after")
    def _check_sections(self) -> Self:
        problems = [
            *self._input_problems(),
            *self._long_text_data_problems(),
            *self._source_problems(),
            *self._modality_problems(),
            *tag_problems(self.data, self.text.tags),
            *self._language_model_tag_problems(),
            *self._unusable_training_problems(),
            *self._score_problems(),
            *self._label_problems(),
            *self._image_problems(),
            *self._forecast_problems(),
            *self._minimum_risk_problems(),
            *self._batching_problems(),
            *self._long_text_problems(),
            *self._vocabulary_problems(),
            *self._fine_tuning_problems(),
        ]
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _long_text_data_problems(self) -> list[str]:
        data = self.data
        problems = []
        splits = {"train": data.train, "dev": data.dev, "test": data.test}
        for name, corpora in splits.items():
            other_kinds = {
                corpus.kind for corpus in corpora if corpus.is_long_text != data.is_long_text
            }
            if other_kinds == {"hold-out"}:
                problems.append(
                    f"data.{name}: single lines cannot be held out of long text; hold out its end: "
                    f"data.train.end = 0.9 and data.{name} = {{ kind = 'long-text', path = …, "
                    "begin = 0.9 }"
                )
            elif other_kinds:
                problems.append(
                    f"data.{name}: {', '.join(sorted(other_kinds))} cannot be mixed with the kind "
                    "of data.train, because only one of them is long text; use one kind for all "
                    "splits"
                )
            window_shapes = {
                (corpus.length, corpus.context)
                for corpus in corpora
                if isinstance(corpus, LongTextConfig)
            }
            if len(window_shapes) > 1:
                problems.append(
                    f"data.{name}: its files are read as one text, so they must have the same "
                    "length and context; make them equal"
                )
        if data.is_long_text and data.filter != FilterConfig():
            problems.append(
                "data.filter: single lines cannot be dropped from long text; remove data.filter"
            )
        return problems

    def _source_problems(self) -> list[str]:
        problems = []
        has_encoder = self.model.has_encoder
        if not self.task.has_source and has_encoder:
            problems.append(
                "model.encoder: a language model has no source; set model.encoder.kind = 'none'"
            )
        if self.task.has_source and not has_encoder:
            problems.append(
                f"model.encoder: the task '{self.task.kind}' has a source; "
                "set model.encoder.kind = 'recurrent' or another encoder"
            )
        return problems

    def _modality_problems(self) -> list[str]:
        """Return the problems of corpora that the task cannot use, or whose sources differ in kind."""
        problems: dict[str, None] = {}
        splits = {"train": self.data.train, "dev": self.data.dev, "test": self.data.test}
        for name, split in splits.items():
            for corpus in split:
                if isinstance(corpus, HoldOutConfig):
                    continue
                if corpus.modality not in self.task.modalities:
                    has_no_source = corpus.modality == "none"
                    sources = "no sources" if has_no_source else f"{corpus.modality} as sources"
                    problem = (
                        f"the task '{self.task.kind}' cannot use '{corpus.kind}', which has "
                        f"{sources}; {_remedy(self.task, corpus)}"
                    )
                elif self.task.has_source and corpus.modality != self.data.modality:
                    problem = (
                        f"'{corpus.kind}' has {corpus.modality} as sources, and the first corpus of "
                        f"data.train has {self.data.modality}; use one kind of sources in all splits"
                    )
                else:
                    continue
                problems[f"data.{name}: {problem}"] = None
        return list(problems)

    def _language_model_tag_problems(self) -> list[str]:
        if not self.task.has_source and training_tags(self.data):
            return ["data.train: a language model has no source, so it reads no tags; remove tag"]
        return []

    def _unusable_training_problems(self) -> list[str]:
        problems = (
            corpus.training_problem
            for corpus in self.data.train
            if isinstance(corpus, CorpusConfig)
        )
        return [f"data.train: {problem}" for problem in problems if problem is not None]

    def _score_problems(self) -> list[str]:
        score = self.training.stopping.score
        if score == "loss":
            return []
        if not self.task.has_source:
            return [
                "training.stopping.score: outputs of a language model have no references; use 'loss'"
            ]
        available = self.task.selected_scores
        if available is not None and score not in available:
            return [
                f"training.stopping.score: '{score}' is not one of task.scores; use 'loss' or one "
                f"of {', '.join(available)}, or add it to task.scores"
            ]
        return []

    def _label_problems(self) -> list[str]:
        predicts_labels = self.model.decoder.predicts_labels
        is_label_task = isinstance(self.task, LabelsConfig)
        problems = []
        if is_label_task and not predicts_labels:
            problems.append(
                f"model.decoder: the task 'labels' needs kind = 'labels', not "
                f"'{self.model.decoder.kind}', whose outputs may have any length"
            )
        if predicts_labels and not is_label_task:
            problems.append(
                f"model.decoder: kind = 'labels' predicts labels only; set task.kind = 'labels', "
                f"not '{self.task.kind}'"
            )
        if is_label_task and self.text.target.kind != "whitespace":
            problems.append(
                f"text.target_tokenizer: labels are separated by white space, not "
                f"'{self.text.target.kind}'; set target_tokenizer.kind = 'whitespace'"
            )
        problems += self._frame_problems()
        rules = self.decoding
        if is_label_task and (
            rules.min_length or rules.max_length or rules.no_repeat_ngram or rules.rules
        ):
            problems.append(
                "decoding: the source determines the number of labels, and labels may repeat; "
                "remove min_length, max_length, no_repeat_ngram and rules"
            )
        return problems

    def _frame_problems(self) -> list[str]:
        problems: list[str] = []
        if not self.data.has_vectors:
            return problems
        if self.training.batching not in ("auto", "padded"):
            problems.append("training.batching: vectors cannot be packed or bucketed; use 'padded'")
        if self.training.loop == "captured":
            problems.append(
                "training.loop: steps on vectors have many shapes and are not captured; use 'plain'"
            )
        if "sari" in (self.task.selected_scores or ()):
            problems.append(
                "task.scores: 'sari' compares texts, but the sources are vectors; remove it"
            )
        return problems

    def _image_problems(self) -> list[str]:
        problems = []
        task, encoder = self.task, self.model.encoder
        is_captioning = isinstance(task, CaptioningConfig)
        if is_captioning and encoder.reads not in ("images", "any"):
            problems.append(
                f"model.encoder: '{encoder.kind}' reads no images; use kind = 'convolution' or "
                "'patches'"
            )
        if not is_captioning and encoder.reads == "images":
            problems.append(
                f"model.encoder: '{encoder.kind}' reads images, but the task is '{task.kind}'; set "
                "task.kind = 'captioning', or choose an encoder of tokens"
            )
        if isinstance(task, CaptioningConfig):
            problems += encoder.image_problems(task.size)
        return problems

    def _forecast_problems(self) -> list[str]:
        if not isinstance(self.task, ForecastConfig):
            return []
        problems = []
        training = self.training
        if self.task.rollout and isinstance(training.decoder_input, ScheduledSamplingConfig):
            problems.append(
                "task.rollout: selects free running, but training.decoder_input.kind is "
                "'scheduled-sampling'; remove one of the two"
            )
        if training.label_smoothing or training.r_drop:
            problems.append(
                "training.label_smoothing and training.r_drop: are about probabilities, but a "
                "forecast has none; set both to 0"
            )
        if training.batching not in ("auto", "padded"):
            problems.append("training.batching: windows are all of one size; use 'padded'")
        if self.model.tie != "none":
            problems.append("model.tie: numbers have no embeddings; set tie = 'none'")
        if training.stopping.score != "loss":
            problems.append("training.stopping.score: a forecast is judged by its loss; use 'loss'")
        problems += self.model.decoder.forecast_problems()
        has_context = self.task.use_context
        names = [
            corpus.column_names
            for corpus in self.data.train
            if isinstance(corpus, ForecastCorpusConfig)
        ]
        if self.task.random_rotation and any(
            len(columns) != 2 or (context and has_context) for columns, context in names
        ):
            problems.append(
                "task.random_rotation: rotation needs exactly two columns and no context"
            )
        return problems

    def _input_problems(self) -> list[str]:
        if isinstance(self.task, TranslationConfig):
            return []
        settings = {
            "split_sentences": self.text.split_sentences,
            "pass_through": self.text.pass_through,
        }
        return [
            f"text.{name}: only translation can do this, and the task is '{self.task.kind}'; remove "
            "the setting"
            for name, value in settings.items()
            if value is True
        ]

    def _minimum_risk_problems(self) -> list[str]:
        if self.training.minimum_risk is None:
            return []
        task = self.task
        if not isinstance(task, TranslationConfig | CaptioningConfig):
            return [
                f"training.minimum_risk: compares output texts with references, and the task "
                f"'{task.kind}' has none; remove it"
            ]
        if isinstance(task, TranslationConfig) and task.tag_side == "target":
            return [
                "training.minimum_risk: sampled outputs would choose their target tag themselves; "
                "set task.tag_side = 'source'"
            ]
        return []

    def _batching_problems(self) -> list[str]:
        if self.training.batching == "packed" and not self.model.supports_packing:
            return [
                "training.batching: only Transformers can separate pairs that share a row; a "
                "recurrent state would continue from one pair into the next; use 'bucketed' or "
                "'padded'"
            ]
        return []

    def _long_text_problems(self) -> list[str]:
        is_long_text = self.data.is_long_text
        problems = []
        if is_long_text and self.training.batching != "auto":
            problems.append(
                "training.batching: long text is always read in windows of one length; set it to "
                "'auto'"
            )
        if self.decoding.stop_at_newline and not is_long_text:
            problems.append("decoding.stop_at_newline: only long text has several lines; remove it")
        if is_long_text and self.text.sampling is not None:
            problems.append(
                "text.sampling: long text does not support subword sampling; remove sampling"
            )
        return problems

    def _vocabulary_problems(self) -> list[str]:
        problems = []
        if self.model.tie == "all" and not self.text.shared:
            problems.append(
                "model.tie: one matrix for source and target needs one vocabulary; "
                "set text.shared = true, or model.tie = 'output'"
            )
        if self.model.has_encoder and self.model.decoder.copies:
            if not self.has_text_source:
                problems.append(
                    f"model.decoder.copying: the task '{self.task.kind}' has no source text to "
                    "copy from; set copying = false"
                )
            elif not self.text.shared:
                problems.append(
                    "model.decoder.copying: copied tokens need one vocabulary for source and "
                    "target; set text.shared = true, or copying = false"
                )
        return problems

    def _fine_tuning_problems(self) -> list[str]:
        problems = []
        is_fine_tuning = self.training.start is not None
        advice = "give the run to fine-tune: seqloom train RECIPE --from RUN"
        if self.text.new_tags and not is_fine_tuning:
            problems.append(
                f"text.new_tags: adds tags to the vocabulary of another run; {advice}. For "
                "training from random weights, use text.tags"
            )
        if self.text.new_tags and not isinstance(self.task, TranslationConfig):
            problems.append(
                f"text.new_tags: the task '{self.task.kind}' has no tags; remove new_tags"
            )
        if self.text.new_tags and "embeddings" in self.training.freeze:
            problems.append(
                "training.freeze: 'embeddings' also freezes the embeddings of text.new_tags, so the "
                "new tags would not be learned; remove one of the two"
            )
        if self.data.replay is not None and self.data.parent is None:
            problems.append(f"data.replay: there is no data to replay; {advice}")
        if self.data.replay is not None and (
            isinstance(self.task, ForecastConfig) or self.data.is_long_text
        ):
            problems.append(
                "data.replay: series and long text cannot be replayed; remove replay, and add the "
                "old files to data.train"
            )
        return problems


MAX_LISTED_KINDS = 4
"""Maximum number of kinds of corpora that an error message lists."""


def _remedy(task: TaskConfig, corpus: SplitDataConfig) -> str:
    """Return what to do if a task cannot use a corpus: other corpora, or other tasks."""
    corpora = [
        f"'{kind}'"
        for kind, section in built_in_parts("reader").items()
        if section.builds and kind != FORM and section.modality in task.modalities
    ]
    tasks = [
        f"'{kind}'"
        for kind, section in built_in_parts("task").items()
        if corpus.modality in section.modalities
    ]
    more = ", …" if len(corpora) > MAX_LISTED_KINDS else ""
    listed = ", ".join(corpora[:MAX_LISTED_KINDS]) + more
    return f"use kind = {listed}, or set task.kind = {' or '.join(tasks)}"
