"""Predictor: runs a trained model on texts.

It tokenises the texts, batches them by length, decodes, and returns predictions in input order.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Protocol

import torch
from torch import Tensor

from seqloom.config.schema.decoding import DecodingConfig, MinimumBayesRiskConfig, SearchConfig
from seqloom.core.batch import Source
from seqloom.core.device import as_current_device
from seqloom.core.errors import DataError
from seqloom.decoding.build import build_normalisation, build_search
from seqloom.decoding.fast.captured import (
    CapturedSearch,
    StartedSearch,
    can_run_static,
    free_gpu_memory,
    round_down,
)
from seqloom.decoding.fast.select import select_fastest
from seqloom.decoding.forced import force
from seqloom.decoding.hypothesis import PER_TOKEN, Hypothesis, LengthNormalisation
from seqloom.decoding.search import ExcludedTokens, OnFinished, SearchRequest, StepDecoder
from seqloom.decoding.streaming import StreamingCallback, StreamingDecoder
from seqloom.inference.attention_maps import ALL_HEADS, AttentionReduction, HeadChoice
from seqloom.inference.batching import (
    LAST_BATCH_FACTOR,
    SearchBatch,
    batch_token_budget,
    batches_by_length,
    halves,
    input_tokens,
    run_in_halves,
)
from seqloom.inference.length_limits import check_lengths, output_limit, without_end
from seqloom.inference.mbr import candidate_searches, rank_by_expected_utility
from seqloom.inference.options import (
    TEXT_ONLY,
    PredictionOptions,
    Probabilities,
)
from seqloom.inference.prediction import Prediction, PredictionBuilder, build_prediction
from seqloom.inference.search_settings import greedy_config
from seqloom.inference.texts.required_phrases import PhraseForcer
from seqloom.models.interface import Memory
from seqloom.models.seq2seq import Model
from seqloom.tasks.task import ModelInput, collate_sources
from seqloom.tasks.token_task import TokenTask
from seqloom.text.long_text import encode_target, newline_id
from seqloom.text.vocabulary import END

ProgressCallback = Callable[[int, int], None]
"""Called with the number of finished inputs and the total number of inputs. It may raise an
exception to stop the prediction."""
OnPrediction = Callable[[int, list[Prediction]], None]
"""Called with the index of an input and its outputs, best first."""
Found = list[tuple[int, list[Hypothesis]]]
"""The index of each input of a batch, and its hypotheses, best first."""
ASYNCHRONOUS_DEVICES = frozenset({"cuda"})
"""Types of devices that compute while the host does other work."""


@dataclass(frozen=True)
class FinishedInputs:
    """Reports each input of a batch for which the search is finished, by its index."""

    indices: Sequence[int]
    on_finished: OnFinished

    def __call__(self, row: int, hypotheses: list[Hypothesis]) -> None:
        self.on_finished(self.indices[row], hypotheses)


@dataclass(frozen=True)
class StartedBatch:
    """A batch whose search has been started.

    found:  the hypotheses of each input if the search is finished
    search: a search that a GPU runs while the host does other work
    """

    batch: SearchBatch
    found: list[list[Hypothesis]] | None = None
    search: StartedSearch | None = None

    def finish(self, device: torch.device) -> bool:
        """Run the search to its end. Returns False if memory runs out; the batch can be halved."""
        if self.search is None:
            return True
        try:
            with torch.inference_mode(), as_current_device(device):
                self.search.finish()
                return True
        except torch.OutOfMemoryError as error:
            self.batch.check_divisible(error)
        free_gpu_memory()
        return False

    def read(self) -> Found:
        """Return the hypotheses of each input. On a GPU, wait until they are computed."""
        found = self.found
        if found is None:
            assert self.search is not None
            found = self.search.hypotheses()
        return list(zip(self.batch.indices, found, strict=True))


class Engine(Protocol):
    """A decoder implemented outside torch, for example CTranslate2."""

    def search(
        self,
        batch: Sequence[ModelInput],
        request: SearchRequest,
        decoding: SearchConfig,
        probabilities: Probabilities,
    ) -> list[list[Hypothesis] | None]:
        """Return the hypotheses of each input.

        If the output for an input might differ from that of torch, the engine returns None for this
        input. The caller then decodes the input with torch.
        """
        ...


@dataclass(frozen=True)
class Predictor:
    """Predicts the outputs of a model for texts, and scores given targets.

    task:        tokenises texts and converts outputs to texts
    engine:      decodes the inputs. If it returns None for an input, torch decodes this input. If
                 `engine` is None, torch decodes all inputs.
    head_choice: the attention heads that align words
    compiled:    True if torch decodes single inputs with a search that torch.compile has compiled
    precision:   precision in which torch searches; None for that of the weights
    """

    model: Model
    task: TokenTask
    device: torch.device
    engine: Engine | None = None
    head_choice: HeadChoice = ALL_HEADS
    compiled: bool = False
    precision: torch.dtype | None = None

    def predict(
        self,
        texts: Sequence[str],
        decoding: DecodingConfig,
        options: PredictionOptions = TEXT_ONLY,
        progress: ProgressCallback | None = None,
    ) -> list[list[Prediction]]:
        """Return a list of outputs for each text, best first. The texts keep their order.

        An empty text has one empty output, unless it is the prompt of a language model. Texts are
        not split into sentences; `Run.predict` does this.
        """
        inputs = self.prepare(texts, options.first)
        results: list[list[Prediction]] = [[Prediction("", 0.0)] for _ in texts]
        done, indices, chosen = len(texts) - len(inputs), list(inputs), list(inputs.values())
        samples = [options.first + index for index in indices]
        builder = self.builder(options, decoding)
        for batch in self.search(chosen, decoding, options, samples):
            for number, hypotheses in batch:
                results[indices[number]] = builder.build(chosen[number], hypotheses)
            done += len(batch)
            if progress is not None:
                progress(done, len(texts))
        return results

    def prepare(self, texts: Sequence[str], first: int) -> dict[int, ModelInput]:
        """Convert texts, which are not split, to model inputs. Check their lengths.

        Returns the inputs by the indices of their texts. Empty texts are left out, except prompts
        of a language model.

        first: number of texts in earlier calls, for the line numbers of errors
        """
        inputs = [self.task.prepare(text) for text in texts]
        self.check_input_lengths(inputs, first)
        return {
            index: one
            for index, one in enumerate(inputs)
            if self.task.source_tokenizer is None or texts[index].strip()
        }

    def predict_inputs(
        self,
        inputs: Sequence[ModelInput],
        decoding: DecodingConfig,
        options: PredictionOptions,
        sample_indices: Sequence[int],
        *,
        callback: StreamingCallback | None = None,
        on_prediction: OnPrediction | None = None,
    ) -> list[list[Prediction]]:
        """Return the outputs for each model input, best first.

        The caller must check the lengths of the inputs first, with `check_input_lengths`.

        callback:       receives the tokens while torch generates them, and can cancel an input. An
                        input is identified by its index in `inputs`.
        on_prediction:  receives the outputs of an input as soon as they are known, before longer
                        inputs of the same batch are finished. It is called only for inputs that
                        torch decodes. It is not called for inputs with required phrases, for
                        minimum Bayes risk decoding or for exhaustive search. All outputs are also
                        returned at the end.
        """
        builder, early = self.builder(options, decoding), None
        if on_prediction is not None and not isinstance(decoding, MinimumBayesRiskConfig):
            early = EarlyPredictions(builder, inputs, on_prediction)
        results: list[list[Prediction]] = [[] for _ in inputs]
        for batch in self.search(inputs, decoding, options, sample_indices, callback, early):
            for index, hypotheses in batch:
                results[index] = (
                    early.predictions[index]
                    if early is not None and index in early.predictions
                    else builder.build(inputs[index], hypotheses)
                )
        return results

    def builder(self, options: PredictionOptions, decoding: DecodingConfig) -> PredictionBuilder:
        """Return what converts the results of the search `decoding` to predictions."""
        reduction = AttentionReduction(options.heads, self.head_choice)
        newline = newline_id(self.task.target_tokenizer) if decoding.stop_at_newline else None
        if isinstance(decoding, MinimumBayesRiskConfig):  # its candidates are cut already
            newline = None
        return PredictionBuilder(self.task, reduction, newline, build_normalisation(decoding))

    def search(
        self,
        inputs: Sequence[ModelInput],
        decoding: DecodingConfig,
        options: PredictionOptions,
        sample_indices: Sequence[int],
        callback: StreamingCallback | None = None,
        on_finished: OnFinished | None = None,
    ) -> Iterator[Found]:
        """Yield the hypotheses of the inputs, one batch after another.

        On a GPU, the hypotheses of a batch are yielded while the device searches for those of the
        next batch. Inputs with required phrases are yielded at the end.

        sample_indices: one number per input, which acts as a seed. With the same number, an input
                        gets the same random samples, whatever other inputs are in its batch.
        callback:       receives the tokens while torch generates them, and can cancel an input
        on_finished:    receives the index and the hypotheses of an input, as soon as the search for
                        it is finished (see `SearchRequest`)
        """
        if isinstance(decoding, MinimumBayesRiskConfig):
            yield from self._minimum_bayes_risk(inputs, decoding, options, sample_indices, callback)
            return
        if any(one.required_phrases for one in inputs):
            yield from self._search_with_phrases(
                inputs, decoding, options, sample_indices, callback, on_finished
            )
            return
        is_long_text = newline_id(self.task.target_tokenizer) is not None
        torch_decoding = without_end(decoding) if is_long_text else decoding
        # An engine other than torch limits the memory for its hypotheses by itself, and decodes
        # small batches efficiently.
        width, last_batch_factor = (
            (decoding.hypotheses_per_input, LAST_BATCH_FACTOR) if self.engine is None else (1, 1)
        )
        running: StartedBatch | None = None
        for indices in self._batches(inputs, width, last_batch_factor):
            batch = self._batch(inputs, indices, decoding, options, sample_indices)
            if self.engine is not None:
                searched = self.engine.search(
                    batch.inputs, batch.request, decoding, options.probabilities
                )
                results = zip(indices, searched, strict=True)
                if done := [(index, found) for index, found in results if found is not None]:
                    yield done
                batch = batch.only([row for row, found in enumerate(searched) if found is None])
            parts = [batch] if batch.inputs else []
            while parts:
                part = parts.pop(0)
                started = self._start(part, torch_decoding, callback, on_finished)
                if started is not None and running is not None:
                    yield running.read()
                    running = None
                if started is None or not started.finish(self.device):
                    parts = [*part.halves(), *parts]
                elif started.search is not None and self.device.type in ASYNCHRONOUS_DEVICES:
                    running = started
                else:
                    yield started.read()
        if running is not None:
            yield running.read()

    def _batch(
        self,
        inputs: Sequence[ModelInput],
        indices: Sequence[int],
        decoding: SearchConfig,
        options: PredictionOptions,
        sample_indices: Sequence[int],
    ) -> SearchBatch:
        """Return a batch of some inputs, with the request for their search."""
        batch = [inputs[index] for index in indices]
        newline = newline_id(self.task.target_tokenizer)
        reduction = AttentionReduction(options.heads, self.head_choice)
        excluded = None
        if any(one.excluded is not None for one in batch):
            excluded = [one.excluded or ExcludedTokens() for one in batch]
        request = SearchRequest(
            max_lengths=[output_limit(each, decoding, self.model, newline) for each in batch],
            prefixes=[each.prefix for each in batch],
            n_best=options.n_best,
            keep_attention=reduction.reduce if options.stores_attention else None,
            indices=[sample_indices[index] for index in indices],
            excluded=excluded,
        )
        return SearchBatch(batch, indices, request)

    def _start(
        self,
        batch: SearchBatch,
        decoding: SearchConfig,
        callback: StreamingCallback | None,
        on_finished: OnFinished | None,
    ) -> StartedBatch | None:
        """Start a search with torch. Uses the fastest version for the device and the request.

        On a CPU, the search is finished when this method returns. Returns None if memory runs out.
        """
        search = build_search(decoding, self.task.target_tokenizer)
        decoder: StepDecoder = self.model.decoder
        request = batch.request
        if on_finished is not None:
            request = replace(request, on_finished=FinishedInputs(batch.indices, on_finished))
        in_precision = torch.autocast(
            self.device.type, self.precision, enabled=self.precision is not None
        )
        try:
            with torch.inference_mode(), in_precision, as_current_device(self.device):
                memory = self.encode(batch.inputs)
                if callback is not None:
                    decoder = StreamingDecoder(
                        decoder, callback, batch.indices, request.max_lengths
                    )
                    return StartedBatch(batch, search(decoder, memory, request))
                search = select_fastest(search, self.device, self.precision, compiled=self.compiled)
                if isinstance(search, CapturedSearch) and can_run_static(decoder, request):
                    return StartedBatch(batch, search=search.start(decoder, memory, request))
                return StartedBatch(batch, search(decoder, memory, request))
        except torch.OutOfMemoryError as error:
            batch.check_divisible(error)
        # Free memory only after the exception is released: its traceback references the tensors.
        free_gpu_memory()
        return None

    def _minimum_bayes_risk(
        self,
        inputs: Sequence[ModelInput],
        decoding: MinimumBayesRiskConfig,
        options: PredictionOptions,
        sample_indices: Sequence[int],
        callback: StreamingCallback | None,
    ) -> Iterator[Found]:
        """Yield the candidates of each input, ranked by expected utility."""
        candidates: list[list[Hypothesis]] = [[] for _ in inputs]
        searches = candidate_searches(decoding)
        for number, (config, count) in enumerate(searches, start=1):
            search = self.search(
                inputs, config, replace(options, n_best=count), sample_indices, callback
            )
            builder = self.builder(options, config)
            for batch in search:
                for index, found in batch:
                    candidates[index] += [builder.cut(inputs[index], each) for each in found]
                if number == len(searches):
                    yield [
                        (index, self._rank(inputs[index], candidates[index], decoding, options))
                        for index, _ in batch
                    ]

    def _rank(
        self,
        model_input: ModelInput,
        candidates: Sequence[Hypothesis],
        decoding: MinimumBayesRiskConfig,
        options: PredictionOptions,
    ) -> list[Hypothesis]:
        decode, hidden = self.task.target_tokenizer.decode, model_input.hidden_prefix
        texts = [decode(each.tokens[hidden:]) for each in candidates]
        ranked = rank_by_expected_utility(texts, decoding)[: options.n_best]
        return [replace(candidates[index], score=score) for index, score in ranked]

    def _search_with_phrases(
        self,
        inputs: Sequence[ModelInput],
        decoding: SearchConfig,
        options: PredictionOptions,
        sample_indices: Sequence[int],
        callback: StreamingCallback | None,
        on_finished: OnFinished | None,
    ) -> Iterator[Found]:
        """Yield the hypotheses of inputs, some of which have required phrases.

        The hypotheses of inputs with required phrases are yielded at the end. If one of them lacks a
        phrase or contains it too often, torch searches again for this input.
        """
        free = [replace(one, required_phrases=()) for one in inputs]
        with_phrases: dict[int, list[Hypothesis]] = {}
        for batch in self.search(free, decoding, options, sample_indices, callback, on_finished):
            for index, found in batch:
                if inputs[index].required_phrases:
                    with_phrases[index] = found
            if done := [each for each in batch if each[0] not in with_phrases]:
                yield done
        indices = sorted(with_phrases)
        required = [inputs[index] for index in indices]
        samples = [sample_indices[index] for index in indices]
        predictor = replace(self, engine=None, compiled=False)
        forcer = PhraseForcer(self.task, PhraseSearch(predictor, decoding, options, samples))
        limits = [output_limit(one, decoding, self.model, None) for one in required]
        forced = forcer.force(required, [with_phrases[index] for index in indices], limits)
        yield list(zip(indices, forced, strict=True))

    def score(
        self,
        texts: Sequence[str],
        targets: Sequence[str],
        options: PredictionOptions,
        normalisation: LengthNormalisation = PER_TOKEN,
    ) -> list[tuple[ModelInput, Hypothesis]]:
        """Return the input of each text, and its given target with its log-probabilities.

        targets:       one target per text
        options:       only `attention` and `heads` are used
        normalisation: defines how the score of a target depends on its length
        """
        inputs = [self.task.prepare(text) for text in texts]
        tokenizer = self.task.target_tokenizer
        target_ids = [
            (*one.prefix, *encode_target(tokenizer, target))
            for one, target in zip(inputs, targets, strict=True)
        ]
        has_end = newline_id(tokenizer) is None
        if not (has_end or all(target_ids)):
            raise DataError(
                "an empty text cannot be scored: a long-text model has no END token. Give some text"
            )
        self.check_input_lengths(inputs)
        self.check_target_lengths(target_ids)
        return [
            (one, hypothesis)
            for one, hypothesis in zip(
                inputs,
                self._force(
                    inputs,
                    [(*target, END) if has_end else target for target in target_ids],
                    AttentionReduction(options.heads, self.head_choice)
                    if options.stores_attention
                    else None,
                    normalisation,
                ),
                strict=True,
            )
        ]

    def add_attention(self, outputs: Sequence[tuple[ModelInput, Hypothesis]]) -> list[Prediction]:
        """Return outputs as predictions with attention, which forced decoding computes.

        outputs: pairs of an input and one of its outputs
        """
        reduction = AttentionReduction(False, self.head_choice)
        forced = self._force(
            [one for one, _ in outputs],
            [(*each.tokens, *[END] * each.finished) for _, each in outputs],
            reduction,
        )
        return [
            build_prediction(self.task, one, replace(each, attention=other.attention), reduction)
            for (one, each), other in zip(outputs, forced, strict=True)
        ]

    def _force(
        self,
        inputs: Sequence[ModelInput],
        targets: Sequence[Sequence[int]],
        reduction: AttentionReduction | None,
        normalisation: LengthNormalisation = PER_TOKEN,
    ) -> list[Hypothesis]:
        """Return each target as a hypothesis. END is part of a target if it belongs to it."""

        def force_batch(indices: list[int]) -> list[Hypothesis]:
            with torch.inference_mode(), as_current_device(self.device):
                return force(
                    self.model.decoder,
                    self.encode([inputs[index] for index in indices]),
                    [targets[index] for index in indices],
                    None if reduction is None else reduction.reduce,
                    normalisation,
                    ends=False,
                )

        results: dict[int, Hypothesis] = {}
        for indices in self._batches(inputs):
            parts = run_in_halves(force_batch, indices, halves)
            results.update(zip(indices, chain.from_iterable(parts), strict=True))
        return [results[index] for index in range(len(inputs))]

    def _batches(
        self,
        inputs: Sequence[ModelInput],
        hypotheses: int = 1,
        last_batch_factor: int = LAST_BATCH_FACTOR,
    ) -> Iterator[list[int]]:
        """Yield the indices of the inputs in each batch.

        hypotheses:        number of hypotheses per input. The token budget of a batch is divided by
                           it.
        last_batch_factor: the last batch may exceed the token budget by this factor
        """
        budget = batch_token_budget(self.device) // hypotheses
        lengths = list(map(input_tokens, inputs))
        if self.device.type != "cuda":
            return batches_by_length(lengths, budget, last_batch_factor)
        # `CapturedSearch` pads a batch to one of a few sizes. Fill these sizes with inputs.
        return batches_by_length(lengths, budget, last_batch_factor, round_down)

    def encode(self, batch: Sequence[ModelInput]) -> Memory:
        """Encode the sources of a batch."""
        return self.model.encode(self.source(batch), len(batch))

    def source(self, batch: Sequence[ModelInput]) -> Source | None:
        """Return the sources of a batch as tensors; None for a language model."""
        source = collate_sources(batch)
        return None if source is None else source.to(self.device)

    def check_input_lengths(self, inputs: Sequence[ModelInput], first: int = 0) -> None:
        """Raise a DataError if a source or prefix exceeds the model's maximum length.

        first: number of inputs that precede these inputs in the caller's list. It is added to the
               line numbers in the error
        """
        limit = self.model.max_source_length
        check_lengths(
            limit,
            [(one.source_length or 0) + 1 for one in inputs],
            first,
            f"the model reads at most {limit} tokens per line, END included. Split these lines, or "
            f"train with a larger {' and '.join(self.model.source_limits)}:",
        )
        self._check_target_lengths([one.prefix for one in inputs], first, "prefixes")

    def check_target_lengths(self, targets: Sequence[Sequence[int]]) -> None:
        """Raise a DataError if a target exceeds the model's maximum length."""
        self._check_target_lengths(targets, 0, "targets")

    def _check_target_lengths(
        self, targets: Sequence[Sequence[int]], first: int, name: str
    ) -> None:
        limit = self.model.max_target_length
        check_lengths(
            limit,
            [len(target) + 1 for target in targets],
            first,
            f"the model generates at most {limit} tokens, END included. Shorten these {name}, or "
            f"train with a larger {' and '.join(self.model.target_limits)}:",
        )


@dataclass
class EarlyPredictions:
    """Converts the hypotheses of an input as soon as its search is finished, and reports them.

    Inputs with required phrases are left out, because their search can be repeated.

    predictions: the outputs that were reported, by the index of the input
    """

    builder: PredictionBuilder
    inputs: Sequence[ModelInput]
    on_prediction: OnPrediction
    predictions: dict[int, list[Prediction]] = field(default_factory=dict)

    def __call__(self, index: int, hypotheses: list[Hypothesis]) -> None:
        one = self.inputs[index]
        if not one.required_phrases:
            self.predictions[index] = self.builder.build(one, hypotheses)
            self.on_prediction(index, self.predictions[index])


@dataclass(frozen=True)
class PhraseSearch:
    """The searches that force required phrases into outputs (see `PhraseForcer`)."""

    predictor: Predictor
    decoding: SearchConfig
    options: PredictionOptions
    sample_indices: Sequence[int]

    def search(
        self, inputs: Sequence[ModelInput], indices: Sequence[int]
    ) -> list[list[Hypothesis]]:
        samples = [self.sample_indices[index] for index in indices]
        return self._search(inputs, self.decoding, self.options, samples)

    def attend(self, one: ModelInput, tokens: Sequence[int]) -> Tensor | None:
        reduction = AttentionReduction(False, self.predictor.head_choice)
        with torch.inference_mode():
            memory = self.predictor.encode([one])
            decoder = self.predictor.model.decoder
            [output] = force(decoder, memory, [tokens], reduction.reduce, ends=False)
        return None if output.attention is None else reduction.maps(output.attention).alignment

    def complete(self, inputs: Sequence[ModelInput]) -> list[Hypothesis]:
        greedy = greedy_config(self.decoding).model_copy(update={"score_prefix": True})
        found = self._search(inputs, greedy, TEXT_ONLY, [0] * len(inputs))
        return [hypothesis for [hypothesis] in found]

    def _search(
        self,
        inputs: Sequence[ModelInput],
        decoding: SearchConfig,
        options: PredictionOptions,
        sample_indices: Sequence[int],
    ) -> list[list[Hypothesis]]:
        free = [replace(one, required_phrases=()) for one in inputs]
        batches = self.predictor.search(free, decoding, options, sample_indices)
        found = dict(chain.from_iterable(batches))
        return [found[index] for index in range(len(inputs))]
