"""Run: a trained model loaded from its run folder.

Its methods translate, label, complete and score texts, caption images, and evaluate the model.
"""

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar, Unpack
from weakref import ref

import torch

from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.decoding import DecodingConfig, EngineConfig, GreedyConfig
from seqloom.config.schema.names import EngineKind
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import LabelsConfig, TranslationConfig
from seqloom.core.device import best_device
from seqloom.core.errors import ConfigError, DataError
from seqloom.core.garbage_collection import without_garbage_collection
from seqloom.core.signature import NoSource, Pixels
from seqloom.data.corpus.long_text import window_shape
from seqloom.data.example import Split
from seqloom.data.readers.splits import merge_references, read_split
from seqloom.decoding.build import build_normalisation
from seqloom.inference.alignment import load_alignment_heads
from seqloom.inference.attention_maps import ALL_HEADS
from seqloom.inference.engine.select import TORCH, EngineChoice, Engines
from seqloom.inference.engine.store import ModelOrigin
from seqloom.inference.ensemble import join_bundles
from seqloom.inference.evaluation.groups import score_groups
from seqloom.inference.evaluation.report import (
    EvaluationReport,
    evaluate_outputs,
    likelihood_scores,
)
from seqloom.inference.later_attention import UnreadAttention
from seqloom.inference.options import (
    DEFAULT_OPTIONS,
    TEXT_ONLY,
    OptionValues,
    PredictionOptions,
    change_options,
)
from seqloom.inference.prediction import Prediction
from seqloom.inference.predictor import Predictor, ProgressCallback
from seqloom.inference.search_settings import (
    check_n_best,
    check_texts,
    completion_search,
    resolve_decoding,
    resolve_engine,
)
from seqloom.inference.source_tags import SourceTags
from seqloom.inference.target_language import TargetLanguages
from seqloom.inference.texts.preparation import Preparation, max_segment_tokens, unknown_parts
from seqloom.inference.texts.segments import (
    PreparedTexts,
    TextOutputs,
    add_pivot_reports,
    repeat_options,
)
from seqloom.metrics.bleu import lowercased_bleu
from seqloom.models.seq2seq import Model
from seqloom.runs.bundle import Bundle, load_bundle
from seqloom.tasks.token_task import TokenTask
from seqloom.text.sentences import SegmentedText
from seqloom.text.vocabulary import SPECIAL_TOKENS

Finished = TypeVar("Finished")
PROGRESS_REPORTS = 100
"""A progress callback is called at most about this often in one call."""


class Run:
    """A loaded run folder, or an ensemble of several. Created by `seqloom.load(folder)`.

    folder:     the run folder. For an ensemble, the folder of the first member.
    partners:   for an ensemble, the folders of the other members
    config:     the recipe. For an ensemble, the recipe of the first member.
    settings:   changes to the recipe that were given to `load`
    heads_note: warning if the attention heads that the run folder stores for word alignment were
                chosen for other weights. All heads are then used. Empty if there is no problem.
    """

    def __init__(
        self, bundle: Bundle, device: torch.device, engine: EngineKind | None = None
    ) -> None:
        if not isinstance(bundle.task, TokenTask):
            raise ConfigError(
                f"{bundle.folder}: this is a forecasting run. Use `seqloom forecast`, or "
                "seqloom.load_forecaster in Python"
            )
        self.folder: Path = bundle.folder
        self.partners: tuple[Path, ...] = bundle.partners
        self.config: RunConfig = bundle.config
        self.model: Model = bundle.model
        self.task: TokenTask = bundle.task
        self.settings: tuple[str, ...] = bundle.settings
        self.source_tags = SourceTags.from_config(bundle.config)
        self.languages = TargetLanguages.from_config(str(bundle.folder), bundle.config)
        self.weights_digest = bundle.digest
        # The attention of an ensemble is a mean over its members, so single heads cannot be chosen.
        head_choice, self.heads_note = ALL_HEADS, ""
        if not self.partners:
            head_choice, self.heads_note = load_alignment_heads(self.folder, bundle.digest)
        self.predictor = Predictor(bundle.model, bundle.task, device, head_choice=head_choice)
        self.engine: EngineConfig = resolve_engine(bundle.config.engine, engine)
        digest = f"{bundle.digest} {bundle.config.model.model_dump_json()}"
        origin = ModelOrigin(bundle.folder, bundle.model, digest)
        self.engines = Engines(origin, bundle.task, on_cpu=device.type == "cpu")

    @property
    def name(self) -> str:
        """The path of the folder; for an ensemble, the paths of all members joined by +."""
        return " + ".join(map(str, (self.folder, *self.partners)))

    def translate(
        self,
        texts: Sequence[str],
        options: PredictionOptions = DEFAULT_OPTIONS,
        **changes: Unpack[OptionValues],
    ) -> list[Prediction]:
        """Return the best output for each text, in order. An empty text has an empty output.

        changes: any of the options that `PredictionOptions` describes, for example beam=5, to="fr",
                 glossary={"Haus": "house"} or attention=True. They replace those of `options`. With
                 a list such as to=["en", "fr"], each text is translated into the first language,
                 the result into the second, and so on.
        """
        return [outputs[0] for outputs in self.predict(texts, options, **changes)]

    def translate_n_best(
        self,
        texts: Sequence[str],
        n_best: int,
        options: PredictionOptions = DEFAULT_OPTIONS,
        **changes: Unpack[OptionValues],
    ) -> list[list[Prediction]]:
        """Return the `n_best` best outputs for each text, best first.

        If a text has several segments, output k consists of the k-th output of every segment.

        The other parameters are those of `translate`.
        """
        return self.predict(texts, replace(options, n_best=n_best), **changes)

    def predict(
        self,
        texts: Sequence[str],
        options: PredictionOptions = DEFAULT_OPTIONS,
        *,
        progress: ProgressCallback | None = None,
        **changes: Unpack[OptionValues],
    ) -> list[list[Prediction]]:
        """Return the outputs for each text, best first.

        This is the general form of `translate`, with all options.

        progress: called with the number of finished texts and the number of all texts. If
                  `options.to` lists several languages, only the translation into the last
                  language is counted.
        """
        outputs: list[list[Prediction]] = [[] for _ in texts]
        reported = 0
        for done, (index, found) in enumerate(self.predictions(texts, options, **changes), 1):
            outputs[index] = found
            if progress is not None and (
                done == len(texts) or done - reported >= len(texts) / PROGRESS_REPORTS
            ):
                progress(done, len(texts))
                reported = done
        return outputs

    def predictions(
        self,
        texts: Sequence[str],
        options: PredictionOptions = DEFAULT_OPTIONS,
        **changes: Unpack[OptionValues],
    ) -> Iterator[tuple[int, list[Prediction]]]:
        """Return an iterator over the texts: the index of each, and its outputs, best first.

        A text comes as soon as its outputs are complete. Texts of similar length are decoded
        together, so they do not come in their order. Pivot languages are translated first.
        """
        options = change_options(options, changes)
        decoding = self._check(texts, options)
        unread = self._unread_attention(options)
        if not self.config.has_text_source:  # the texts are paths of images, or frames
            return self._predict_whole(texts, options, decoding, unread)
        *pivots, last = self.languages.path(options.to)
        sources: Sequence[str | SegmentedText] = texts
        by_pivots: list[list[Prediction]] = [[] for _ in texts]
        for pivot in pivots:
            pivot_options = replace(
                options, n_best=1, attention=False, heads=False, probabilities="none"
            )
            prepared = self.prepare_texts(sources, pivot_options, decoding, pivot, use_prefix=False)
            pivot_options = replace(pivot_options, prefixes=None)
            found = dict(self._search(prepared, pivot_options, decoding, _pivot_outputs))
            # The segments are joined at the end. Lower-case outputs could not be split again.
            sources = [found[index][0] for index in range(len(texts))]
            for index, reports in enumerate(by_pivots):
                reports += found[index][1]
        prepared = self.prepare_texts(sources, options, decoding, last)
        finish = TextFinish(
            self.source_tags, set(self.source_tags.missing(texts)), by_pivots, unread
        )
        return self._search(prepared, options, decoding, finish)

    def _unread_attention(self, options: PredictionOptions) -> UnreadAttention | None:
        """Return what computes attention when it is read. None if it is stored, or not wanted."""
        if options.attention is not None or options.heads:
            return None
        folders = (self.folder, *self.partners)
        load_again = partial(_load_again, folders, self.settings, self.weights_digest)
        return UnreadAttention(ref(self.predictor), load_again)

    def _check(self, texts: Sequence[str], options: PredictionOptions) -> DecodingConfig:
        """Return the search to use. Raises an error if this run cannot serve the request."""
        if isinstance(self.task.signature.source, NoSource):
            raise ConfigError(
                f"{self.folder}: this is a language model, which has no source to translate. Use "
                "`complete`"
            )
        check_texts(texts)
        decoding = resolve_decoding(self.config.decoding, options)
        check_n_best(decoding, options.n_best)
        if options.glossary is not None:
            self._check_glossary(options)
        return decoding

    def _predict_whole(
        self,
        texts: Sequence[str],
        options: PredictionOptions,
        decoding: DecodingConfig,
        unread: UnreadAttention | None,
    ) -> Iterator[tuple[int, list[Prediction]]]:
        """Yield the outputs of texts that are not split: paths of images, or frames."""
        engine = self.engines.choose_for_inputs(len(texts), self.engine, decoding, options)
        predictor = engine.apply(self.predictor)
        inputs = predictor.prepare(texts, options.first)
        yield from (
            (index, [Prediction("", 0.0)]) for index in range(len(texts)) if index not in inputs
        )
        indices, chosen = list(inputs), list(inputs.values())
        samples = [options.first + index for index in indices]
        builder = predictor.builder(options, decoding)
        for batch in predictor.search(chosen, decoding, options, samples):
            for number, hypotheses in batch:
                outputs = builder.build(chosen[number], hypotheses)
                if unread is not None:
                    unread.add(outputs, {0: chosen[number]}, {0: hypotheses})
                yield indices[number], outputs

    def _check_glossary(self, options: PredictionOptions) -> None:
        """Raise a ConfigError if this run or these options do not support a glossary."""
        if not isinstance(self.config.task, TranslationConfig):
            raise ConfigError(
                f"{self.folder}: a glossary needs a translation run, and this run is for "
                f"{self.config.task.kind}. Remove the glossary"
            )
        if len(self.languages.path(options.to)) > 1:
            raise ConfigError(
                "a glossary cannot be used with pivot languages, because its source phrases do not "
                "occur in the pivot language. Translate in two steps, or remove the glossary"
            )

    def prepare_texts(
        self,
        texts: Sequence[str | SegmentedText],
        options: PredictionOptions,
        decoding: DecodingConfig,
        tag: str | None,
        *,
        use_prefix: bool = True,
    ) -> PreparedTexts:
        """Split texts into segments, and tokenise the segments.

        Raises a DataError if a segment or a prefix is too long for the model. Also raises it if the
        run is multilingual, `tag` is None, and a text does not start with a language tag.

        texts:      texts, or texts that are already split
        tag:        target language tag to put in front of each segment. None: do not add a tag
        use_prefix: if False, the outputs need not start with the prefixes in `options`
        """
        plain = [text if isinstance(text, str) else text.text for text in texts]
        self.languages.check_tags(plain, tag, options.first)
        config = self.config
        preparation = Preparation(
            self.task,
            max_segment_tokens(decoding, self.model),
            split=_choose(options.split, config.splits_sentences, config),
            pass_through=_choose(options.pass_through, config.passes_through, config),
            tag=tag,
            prefixes=options.prefixes,
            use_prefix=use_prefix,
            first=options.first,
            glossary=options.glossary,
        )
        prepared = PreparedTexts(self.task, preparation.prepare(texts))
        self.predictor.check_input_lengths(prepared.longest_inputs, options.first)
        return prepared

    def _search(
        self,
        prepared: PreparedTexts,
        options: PredictionOptions,
        decoding: DecodingConfig,
        finish: Callable[[int, TextOutputs], Finished],
    ) -> Iterator[tuple[int, Finished]]:
        """Yield the index of each text and its result, when the outputs of its segments are there.

        finish: returns the result of a text, given its index
        """
        texts = [TextOutputs(self.task, text) for text in prepared.texts]
        for number, text in enumerate(texts):
            if not text.inputs:
                yield number, finish(number, text)
        segments = [(number, index) for number, text in enumerate(texts) for index in text.inputs]
        first = prepared.search_inputs
        count = len(first.inputs)
        engine = self.engines.choose_for_inputs(count, self.engine, decoding, options)
        predictor, builder = engine.apply(self.predictor), self.predictor.builder(options, decoding)
        incomplete: list[tuple[int, int]] = []
        for batch in predictor.search(first.inputs, decoding, options, first.sample_indices):
            complete = []
            with without_garbage_collection():
                for position, hypotheses in batch:
                    number, index = segments[position]
                    text, one = texts[number], first.inputs[position]
                    text.hypotheses[index] = hypotheses
                    text.found[index] = builder.build(one, hypotheses)
                    if len(text.found) < len(text.inputs):
                        continue
                    if lacking := text.incomplete:
                        incomplete += [(number, index) for index in lacking]
                    else:
                        complete.append((number, finish(number, text)))
            yield from complete
        for number in self._search_again(texts, sorted(incomplete), options, decoding):
            yield number, finish(number, texts[number])

    def _search_again(
        self,
        texts: Sequence[TextOutputs],
        segments: Sequence[tuple[int, int]],
        options: PredictionOptions,
        decoding: DecodingConfig,
    ) -> Iterator[int]:
        """Translate segments again without their protected spans. Yield the indices of their texts.

        segments: the index of the text and of the segment
        """
        inputs = [texts[number].input_without_spans(index) for number, index in segments]
        samples = [texts[number].text.segments[index].sample_index for number, index in segments]
        options = repeat_options(options)
        builder = self.predictor.builder(options, decoding)
        for batch in self.predictor.search(inputs, decoding, options, samples):
            for position, hypotheses in batch:
                number, index = segments[position]
                texts[number].again[index] = builder.build(inputs[position], hypotheses)
                if not texts[number].incomplete:
                    yield number

    def choose_engine(
        self,
        options: PredictionOptions = TEXT_ONLY,
        **changes: Unpack[OptionValues],
    ) -> EngineChoice:
        """Return the engine for a request with these options, and the reason for the choice.

        Converts or compiles the model if necessary.
        """
        options = change_options(options, changes)
        decoding = resolve_decoding(self.config.decoding, options)
        return self.engines.choose(self.engine, decoding, options)

    def caption(
        self,
        images: Sequence[str | Path],
        options: PredictionOptions = DEFAULT_OPTIONS,
        *,
        progress: ProgressCallback | None = None,
        **changes: Unpack[OptionValues],
    ) -> list[Prediction]:
        """Return a caption for each image.

        images:   files or archive members (photos.zip/dog.jpg)
        progress: called with the number of finished images and the number of all images

        The other parameters are those of `translate`.
        """
        if not isinstance(self.task.signature.source, Pixels):
            raise ConfigError(
                f"{self.folder}: this run does not read images. Use a run with task.kind = "
                "'captioning'"
            )
        check_texts(images)
        paths = [str(image) for image in images]
        predicted = self.predict(paths, options, progress=progress, **changes)
        return [outputs[0] for outputs in predicted]

    def complete(
        self,
        prompts: Sequence[str],
        options: PredictionOptions = DEFAULT_OPTIONS,
        *,
        n_best: int | None = None,
        **changes: Unpack[OptionValues],
    ) -> list[list[Prediction]]:
        """Generate `n_best` texts for each prompt. They start with the prompt, which may be empty.

        A model trained on a long text has no END token. It generates tokens up to the length limit.
        If the option `stop_at_newline` of the search is set, it stops at the first newline.

        changes: options that `PredictionOptions` describes, for example temperature=0.8, or
                 `decoding`, a search config. Default: sampling, with the recipe's settings.
        """
        if not isinstance(self.task.signature.source, NoSource):
            raise ConfigError(
                f"{self.folder}: this run needs a source and cannot complete a prompt. Use "
                "`translate`"
            )
        check_texts(prompts)
        options = replace(change_options(options, changes), attention=False)
        if n_best is not None:
            options = replace(options, n_best=n_best)
        chosen = (
            completion_search(self.config.decoding, options)
            if options.decoding is None
            else resolve_decoding(self.config.decoding, options)
        )
        check_n_best(chosen, options.n_best)
        return self.predictor.predict(prompts, chosen, options)

    def label(self, texts: Sequence[str], *, every: bool = False) -> list[list[Prediction]]:
        """Return the label of each text or, if the run labels tokens, the labels of its tokens.

        An empty text has an empty label.

        every: if True, all labels of the vocabulary are returned, ranked by probability. This needs
               a run that assigns one label per text. If False, only the best label is returned.
        """
        if not isinstance(self.config.task, LabelsConfig):
            raise ConfigError(
                f"{self.folder}: a run for {self.config.task.kind} has no labels. Use a run with "
                "task.kind = 'labels'"
            )
        count = self.task.target_tokenizer.size - len(SPECIAL_TOKENS) if every else 1
        options = PredictionOptions(count, beam=count if every else None, attention=False)
        return self.predict(texts, options)

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        attention: bool | None = None,
        heads: bool = False,
    ) -> list[Prediction]:
        """Return each given target as a prediction, with the log-probabilities of its tokens.

        sources:   one text per target. Empty strings for a language model.
        attention: if True, the attention weights are computed with the scores. If None, they are
                   computed when they are first read. If False, there are none
        heads:     if True, the attention weights of every layer and head are returned as well
        """
        check_texts(sources)
        check_texts(targets)
        if len(sources) != len(targets):
            raise DataError(
                f"got {len(sources):,} sources and {len(targets):,} targets. Give as many targets as "
                "sources"
            )
        options = PredictionOptions(attention=attention, heads=heads)
        scored = self.predictor.score(
            self.languages.add_tag(sources, None),
            targets,
            options,
            build_normalisation(self.config.decoding),
        )
        unread = self._unread_attention(options)
        builder = self.predictor.builder(options, GreedyConfig())
        predictions = []
        for source, (one, hypothesis) in zip(sources, scored, strict=True):
            outputs = builder.build(one, [hypothesis])
            if unread is not None:
                unread.add(outputs, {0: one}, {0: [hypothesis]})
            predictions.append(replace(outputs[0], unknown=unknown_parts(self.task, source)))
        return predictions

    def evaluate(
        self,
        split: Split = "test",
        *,
        beam: int | None = None,
        decoding: DecodingConfig | None = None,
        data: DataConfig | None = None,
        lowercase: bool = False,
        progress: ProgressCallback | None = None,
    ) -> EvaluationReport:
        """Compute the scores of the run on a split of the data.

        beam:      beam width. Default: the recipe's search
        decoding:  a search config that replaces the search of the recipe
        data:      replaces the data of the recipe, for example by another folder. The data must
                   be of the same kind
        lowercase: also compute lowercased BLEU
        progress:  called with the number of finished sentences and the total number of sentences

        torch computes the outputs, unless the engine is set to ctranslate2.
        """
        source = self.config.data if data is None else data
        pairs = list(read_split(source, split))
        examples = merge_references(pairs) if source.merge_references else pairs
        options = PredictionOptions(beam=beam, decoding=decoding)
        chosen = resolve_decoding(self.config.decoding, options)
        engine = TORCH
        if self.engine.kind == "ctranslate2":  # the compiled engine serves single texts only
            engine = self.engines.choose(self.engine, chosen, TEXT_ONLY)
        outputs = evaluate_outputs(engine.apply(self.predictor), examples, chosen, progress)
        scores = outputs.scores
        if lowercase and outputs.texts:
            texts = self.task.scored_texts(outputs.texts, examples)
            scores += texts.sign_scores([lowercased_bleu(texts.outputs, texts.references)])
        scores += likelihood_scores(self.predictor, pairs, window_shape(source, split))
        return EvaluationReport(
            run=self.name,
            members=1 + len(self.partners),
            split=split,
            sentences=len(examples),
            scores=tuple(scores),
            by_length=tuple(outputs.by_length),
            examples=tuple(examples),
            outputs=tuple(outputs.texts),
            parts=score_groups(self.task, examples, outputs.texts),
            cut_off=outputs.cut_off,
            empty=outputs.empty,
            decoding=chosen,
            data=source,
            engine=engine.name,
            settings=self.settings,
            normalization=self.config.text.normalization,
        )


def _choose(option: bool | None, default: bool, config: RunConfig) -> bool:
    """Return True if an option is on. Only translation supports such options.

    If the task is translation, return `option`, or `default` if `option` is None. For other tasks,
    return False.
    """
    return isinstance(config.task, TranslationConfig) and (default if option is None else option)


@dataclass(frozen=True)
class TextFinish:
    """Returns the predictions for a text from the outputs of its segments.

    missing_tags: indices of the texts that contain none of the tags of the run
    by_pivots:    for each text, its translations into the pivot languages
    unread:       computes the attention of the outputs when it is read; None if it is stored
    """

    source_tags: SourceTags
    missing_tags: AbstractSet[int]
    by_pivots: Sequence[Sequence[Prediction]]
    unread: UnreadAttention | None

    def __call__(self, index: int, text: TextOutputs) -> list[Prediction]:
        outputs = text.finish()
        if self.unread is not None:
            self.unread.add(outputs, text.inputs, text.hypotheses, text)
        if self.by_pivots[index]:
            outputs = [add_pivot_reports(each, self.by_pivots[index]) for each in outputs]
        if index in self.missing_tags:
            warning = self.source_tags.warning([1], 1, "text")
            outputs = [replace(each, warnings=(warning, *each.warnings)) for each in outputs]
        return outputs


def _pivot_outputs(index: int, text: TextOutputs) -> tuple[SegmentedText, list[Prediction]]:
    """Return the source of the next translation, and the outputs of a text."""
    return text.best(), text.finish()


def load(
    folder: str | Path | Sequence[str | Path],
    settings: Sequence[str] = (),
    engine: EngineKind | None = None,
) -> Run:
    """Load a run folder or a packed run. All of its files are checked against their digests first.

    folder:   a run folder, a file that `seqloom pack` wrote, or a list of them. A list is loaded as
              an ensemble, which averages the probabilities of all models at every step
    settings: changes to the recipe. The weights must still fit the model. Example:
              ["model.decoder.attention.selection=argmax"] for hard attention
    engine:   "auto", "torch", "compiled" or "ctranslate2". Default: the recipe's engine
    """
    device = best_device()
    folders = [folder] if isinstance(folder, str | Path) else list(folder)
    if not folders:
        raise ConfigError("no run folder given. Give one folder, or several for an ensemble")
    bundles = [load_bundle(Path(each), device, settings) for each in folders]
    return Run(join_bundles(bundles), device, engine)


def _load_again(folders: Sequence[Path], settings: Sequence[str], digest: str) -> Predictor:
    """Load a run again, to compute the attention of its outputs.

    digest: digest of the weights that generated the outputs
    """
    run = load(folders, settings)
    if run.weights_digest != digest:
        raise ConfigError(
            f"{run.folder}: has other weights than those that generated this output, so its "
            "attention cannot be computed. Keep the run in a variable, or pass attention=True"
        )
    return run.predictor
