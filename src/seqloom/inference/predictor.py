"""Predictor: runs a trained model on texts.

It tokenises the texts, batches them by length, decodes, and returns predictions in input order.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

import torch
from torch import Tensor

from seqloom.config.schema.decoding import DecodingConfig, MinimumBayesRiskConfig, SearchConfig
from seqloom.core.batch import Source
from seqloom.core.device import as_current_device
from seqloom.core.errors import DataError
from seqloom.decoding.build import build_normalisation, build_search
from seqloom.decoding.fast.captured import CapturedSearch, can_run_static, round_down
from seqloom.decoding.fast.select import select_fastest
from seqloom.decoding.forced import force
from seqloom.decoding.hypothesis import PER_TOKEN, Hypothesis, LengthNormalisation
from seqloom.decoding.search import ExcludedTokens, OnFinished, SearchRequest
from seqloom.decoding.streaming import StreamingCallback, StreamingDecoder
from seqloom.inference.attention_maps import ALL_HEADS, AttentionReduction, HeadChoice
from seqloom.inference.batching import (
    LAST_BATCH_FACTOR,
    SearchBatch,
    batch_token_budget,
    batches_by_length,
    halves,
    hypotheses_per_input,
    input_tokens,
    run_in_halves,
)
from seqloom.inference.length_limits import check_lengths, cut_at_newline, output_limit, without_end
from seqloom.inference.mbr import candidate_searches, rank_by_expected_utility
from seqloom.inference.options import (
    TEXT_ONLY,
    WITH_ATTENTION,
    PredictionOptions,
    Probabilities,
)
from seqloom.inference.prediction import Prediction, build_prediction
from seqloom.inference.search_settings import greedy_config
from seqloom.inference.texts.required_phrases import PhraseForcer
from seqloom.models.interface import Memory
from seqloom.models.seq2seq import Model
from seqloom.tasks.task import ModelInput, collate_sources
from seqloom.tasks.token_task import TokenTask
from seqloom.text.long_text import encode_target, newline_id

ProgressCallback = Callable[[int, int], None]
"""Called with the number of finished inputs and the total number of inputs. It may raise an
exception to stop the prediction."""
OnPrediction = Callable[[int, list[Prediction]], None]
"""Called with the index of an input and its outputs, best first."""
ASYNCHRONOUS_DEVICES = frozenset({"cuda"})
"""Types of devices that compute while the host does other work."""
Searched = Callable[[], list[list[Hypothesis]]]
"""Returns the hypotheses of each input of a batch for which the search is finished."""


@dataclass
class Postponed:
    """Work on the results of a batch that the host postpones until the device has other work."""

    work: Callable[[], None] | None = None

    def run(self) -> None:
        """Do the work, if there is any. A second call does nothing."""
        if self.work is not None:
            self.work()
            self.work = None


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
        inputs = [self.task.prepare(text) for text in texts]
        self.check_input_lengths(inputs, options.first)
        indices = [
            index
            for index, text in enumerate(texts)
            if self.task.source_tokenizer is None or text.strip()
        ]
        empty = len(texts) - len(indices)

        def report(done: int, _: int) -> None:
            if progress is not None:
                progress(empty + done, len(texts))

        predictions = self.predict_inputs(
            [inputs[index] for index in indices],
            decoding,
            options,
            [options.first + index for index in indices],
            progress=report,
        )
        results: list[list[Prediction]] = [[Prediction("", 0.0)] for _ in texts]
        for index, outputs in zip(indices, predictions, strict=True):
            results[index] = outputs
        return results

    def predict_inputs(
        self,
        inputs: Sequence[ModelInput],
        decoding: DecodingConfig,
        options: PredictionOptions,
        sample_indices: Sequence[int],
        *,
        progress: ProgressCallback = lambda done, total: None,
        callback: StreamingCallback | None = None,
        on_prediction: OnPrediction | None = None,
    ) -> list[list[Prediction]]:
        """Return the outputs for each model input, best first.

        The caller must check the lengths of the inputs first, with `check_input_lengths`.

        sample_indices: one number per input, which acts as a seed. With the same number, an input
                        gets the same random samples, whatever other inputs are in its batch.
        callback:       receives the tokens while torch generates them, and can cancel an input. An
                        input is identified by its index in `inputs`.
        on_prediction:  receives the outputs of an input as soon as they are known, before longer
                        inputs of the same batch are finished. It is called only for inputs that
                        torch decodes. It is not called for inputs with required phrases, for
                        minimum Bayes risk decoding or for exhaustive search. All outputs are also
                        returned at the end.
        """
        if isinstance(decoding, MinimumBayesRiskConfig):
            candidates = [
                self.predict_inputs(
                    inputs,
                    search,
                    replace(options, n_best=count),
                    sample_indices,
                    progress=progress,
                    callback=callback,
                )
                for search, count in candidate_searches(decoding)
            ]
            return [
                rank_by_expected_utility([*chain.from_iterable(groups)], decoding)[: options.n_best]
                for groups in zip(*candidates, strict=True)
            ]
        newline = newline_id(self.task.target_tokenizer)
        normalisation = build_normalisation(decoding)
        reduction = AttentionReduction(options.heads, self.head_choice)

        def predictions_of(index: int, hypotheses: list[Hypothesis]) -> list[Prediction]:
            one = inputs[index]
            if newline is not None and decoding.stop_at_newline:
                hypotheses = [
                    cut_at_newline(each, one, newline, normalisation) for each in hypotheses
                ]
            return [build_prediction(self.task, one, each, reduction) for each in hypotheses]

        early: dict[int, list[Prediction]] = {}

        def report(index: int, hypotheses: list[Hypothesis]) -> None:
            if on_prediction is not None and not inputs[index].required_phrases:
                early[index] = predictions_of(index, hypotheses)
                on_prediction(index, early[index])

        def convert(index: int, hypotheses: list[Hypothesis]) -> None:
            if index not in early and not inputs[index].required_phrases:
                early[index] = predictions_of(index, hypotheses)

        searched = self._search_inputs(
            inputs,
            decoding,
            options,
            sample_indices,
            progress=progress,
            callback=callback,
            on_finished=None if on_prediction is None else report,
            on_searched=convert,
        )
        if any(one.required_phrases for one in inputs):
            searched = self._force_phrases(inputs, searched, decoding, options, sample_indices)
        return [
            early[index] if index in early else predictions_of(index, hypotheses)
            for index, hypotheses in enumerate(searched)
        ]

    def _search_inputs(
        self,
        inputs: Sequence[ModelInput],
        decoding: SearchConfig,
        options: PredictionOptions,
        sample_indices: Sequence[int],
        *,
        progress: ProgressCallback = lambda done, total: None,
        callback: StreamingCallback | None = None,
        on_finished: OnFinished | None = None,
        on_searched: OnFinished | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each model input, best first.

        sample_indices: one number per input, which acts as a seed of random samples
        progress:       receives the number of finished inputs and the number of all inputs
        callback:       receives the tokens while torch generates them, and can cancel an input
        on_finished:    receives the index and the hypotheses of an input, as soon as the search for
                        it is finished (see `SearchRequest`)
        on_searched:    receives the index and the hypotheses of every input. On a GPU it is called
                        for a batch while the device searches for the outputs of the next batch
        """
        results: list[list[Hypothesis]] = [[] for _ in inputs]
        postponed = Postponed()
        newline = newline_id(self.task.target_tokenizer)
        torch_decoding = decoding if newline is None else without_end(decoding)
        reduction = AttentionReduction(options.heads, self.head_choice)
        done = 0
        # An engine other than torch limits the memory for its hypotheses by itself, and decodes
        # small batches efficiently.
        width, last_batch_factor = (
            (hypotheses_per_input(decoding), LAST_BATCH_FACTOR) if self.engine is None else (1, 1)
        )
        for indices in self._batches(inputs, width, last_batch_factor):
            batch = [inputs[index] for index in indices]
            has_exclusions = any(one.excluded is not None for one in batch)

            def report(
                row: int, hypotheses: list[Hypothesis], indices: Sequence[int] = indices
            ) -> None:
                if on_finished is not None:
                    on_finished(indices[row], hypotheses)

            request = SearchRequest(
                max_lengths=[output_limit(each, decoding, self.model, newline) for each in batch],
                prefixes=[each.prefix for each in batch],
                n_best=options.n_best,
                keep_attention=reduction.reduce if options.stores_attention else None,
                indices=[sample_indices[index] for index in indices],
                excluded=[one.excluded or ExcludedTokens() for one in batch]
                if has_exclusions
                else None,
                on_finished=None if on_finished is None else report,
            )
            searched: list[list[Hypothesis] | None] = [None] * len(batch)
            if self.engine is not None:
                searched = self.engine.search(batch, request, decoding, options.probabilities)
            torch_rows = [row for row, hypotheses in enumerate(searched) if hypotheses is None]
            parts: list[Searched] = []
            if torch_rows:
                parts = run_in_halves(
                    lambda part: self._search(part, torch_decoding, callback, postponed.run),
                    SearchBatch(batch, indices, request).only(torch_rows),
                    SearchBatch.halves,
                )
            done += len(indices)

            def read(
                indices: Sequence[int] = indices,
                searched: list[list[Hypothesis] | None] = searched,
                torch_rows: Sequence[int] = torch_rows,
                parts: Sequence[Searched] = parts,
                done: int = done,
            ) -> None:
                from_torch = chain.from_iterable(part() for part in parts)
                for row, hypotheses in zip(torch_rows, from_torch, strict=True):
                    searched[row] = hypotheses
                for index, input_hypotheses in zip(indices, searched, strict=True):
                    results[index] = input_hypotheses or []
                    if on_searched is not None:
                        on_searched(index, results[index])
                progress(done, len(inputs))

            postponed.run()
            postponed.work = read
            if self.device.type not in ASYNCHRONOUS_DEVICES:
                postponed.run()
        postponed.run()
        return results

    def _force_phrases(
        self,
        inputs: Sequence[ModelInput],
        searched: Sequence[list[Hypothesis]],
        decoding: SearchConfig,
        options: PredictionOptions,
        sample_indices: Sequence[int],
    ) -> list[list[Hypothesis]]:
        """Return hypotheses that contain the required phrases of their input.

        If a hypothesis lacks a required phrase or contains it too often, torch searches again for
        this input. If no search succeeds, the hypotheses of the last search are returned.

        searched: the hypotheses of each input, from a search without required phrases
        """
        predictor = replace(self, engine=None, compiled=False)

        def search(
            new_inputs: Sequence[ModelInput], indices: Sequence[int]
        ) -> list[list[Hypothesis]]:
            samples = [sample_indices[index] for index in indices]
            return predictor._search_inputs(new_inputs, decoding, options, samples)

        def attend(one: ModelInput, tokens: Sequence[int]) -> Tensor | None:
            reduction = AttentionReduction(False, self.head_choice)
            with torch.inference_mode():
                memory = self.encode([one])
                [output] = force(self.model.decoder, memory, [tokens], reduction.reduce, ends=False)
            return None if output.attention is None else reduction.maps(output.attention).alignment

        def complete(new_inputs: Sequence[ModelInput]) -> list[Hypothesis]:
            greedy = greedy_config(decoding).model_copy(update={"score_prefix": True})
            indices = [0] * len(new_inputs)
            found = predictor._search_inputs(new_inputs, greedy, TEXT_ONLY, indices)
            return [hypothesis for [hypothesis] in found]

        limits = [output_limit(one, decoding, self.model, None) for one in inputs]
        forcer = PhraseForcer(self.task, search, attend, complete)
        return forcer.force(inputs, searched, limits)

    def _search(
        self,
        batch: SearchBatch,
        decoding: SearchConfig,
        callback: StreamingCallback | None,
        meanwhile: Callable[[], None],
    ) -> Searched:
        """Search with torch. Uses the fastest implementation for the device and the request.

        Returns a function that returns the hypotheses of each input.

        meanwhile: may be called once, while the device searches
        """
        search = build_search(decoding, self.task.target_tokenizer)
        decoder, request = self.model.decoder, batch.request
        in_precision = torch.autocast(
            self.device.type, self.precision, enabled=self.precision is not None
        )
        with torch.inference_mode(), in_precision, as_current_device(self.device):
            memory = self.encode(batch.inputs)
            if callback is not None:
                streaming = StreamingDecoder(decoder, callback, batch.indices, request.max_lengths)
                hypotheses = search(streaming, memory, request)
                return lambda: hypotheses
            search = select_fastest(search, self.device, self.precision, compiled=self.compiled)
            if isinstance(search, CapturedSearch) and can_run_static(decoder, request):
                started = search.start(decoder, memory, request)
                meanwhile()
                started.finish()
                return started.hypotheses
            hypotheses = search(decoder, memory, request)
            return lambda: hypotheses

    def score(
        self,
        texts: Sequence[str],
        targets: Sequence[str],
        options: PredictionOptions = WITH_ATTENTION,
        normalisation: LengthNormalisation = PER_TOKEN,
    ) -> list[Prediction]:
        """Return a prediction for each given target, with the log-probabilities of its tokens.

        targets:       one target per text
        options:       only `attention` and `heads` are used
        normalisation: defines how the score of a target depends on its length
        """
        reduction = AttentionReduction(options.heads, self.head_choice)
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

        def score_batch(indices: list[int]) -> list[Hypothesis]:
            with torch.inference_mode(), as_current_device(self.device):
                return force(
                    self.model.decoder,
                    self.encode([inputs[index] for index in indices]),
                    [target_ids[index] for index in indices],
                    reduction.reduce if options.stores_attention else None,
                    normalisation,
                    has_end,
                )

        results: dict[int, Hypothesis] = {}
        for indices in self._batches(inputs):
            parts = run_in_halves(score_batch, indices, halves)
            results.update(zip(indices, chain.from_iterable(parts), strict=True))
        return [
            build_prediction(self.task, one, results[i], reduction) for i, one in enumerate(inputs)
        ]

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
