"""Error propagation: the effect of the first wrong token on the rest of an output.

During training the decoder reads the reference. In use it reads its own output, with its own errors
(exposure bias). Let r_t be the tokens of the reference and o_t those of the output. Let s be the
position of the first output token that differs from the reference. For a later position t, the
decoder can read three prefixes:

    reference     r_1 … r_{t-1}                         as in training
    one error     r_1 … r_{s-1} o_s r_{s+1} … r_{t-1}   one wrong token, otherwise the reference
    output        o_1 … o_{t-1}                         as in use

The cost of the error is the decrease of log p(r_t): its value after the first prefix, minus its
value after the second or the third prefix.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqloom.config.schema.decoding import GreedyConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.core.signature import NoSource
from seqloom.data.example import Example
from seqloom.decoding.build import build_search
from seqloom.decoding.search import SearchRequest, log_softmax
from seqloom.inference.length_limits import output_limit
from seqloom.inference.predictor import ProgressCallback
from seqloom.inference.run import Run
from seqloom.inference.search_settings import greedy_config
from seqloom.models.interface import Memory
from seqloom.tasks.task import ModelInput
from seqloom.text.vocabulary import END, PAD, START

BATCH_SIZE = 64
"""Number of sentences per batch."""

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class SentenceErrors:
    """The first error in the output for one sentence, and its effect on log p of the reference.

    error_index:      index of the first wrong token; None if the output equals the reference
    reference_pieces: tokens of the reference, END included
    wrong_piece:      output token at `error_index`; "" if the output ends before this index or
                      equals the reference
    after_reference:  log p of each reference token if the decoder reads the reference
    after_error:      log p of each reference token if the decoder reads the reference with one
                      wrong token. If the output ends at `error_index`, no later token can be
                      predicted, and `error_index` is the last index of this list
    after_output:     log p of each reference token if the decoder reads its own output. If the
                      output is shorter than the reference, this list ends where the output ends

    The three lists are equal up to and including `error_index`.
    """

    source: str
    reference: str
    output: str
    error_index: int | None
    reference_pieces: tuple[str, ...]
    wrong_piece: str
    after_reference: tuple[float, ...]
    after_error: tuple[float, ...]
    after_output: tuple[float, ...]

    @property
    def change(self) -> float:
        """How much one wrong token changes log p of the reference after the wrong token.

        Negative if the wrong token makes the rest of the reference less likely.
        """
        assert self.error_index is not None
        rest = slice(self.error_index + 1, len(self.after_error))
        return sum(self.after_error[rest]) - sum(self.after_reference[rest])


@dataclass(frozen=True)
class CurvePoint:
    """Mean log p of the reference tokens at one distance from the first error.

    There are several means, which differ in what the decoder reads before the token.

    distance:         number of tokens after the error; negative before the error
    sentences:        number of sentences whose reference has a token at this distance. A sentence
                      whose output ends at the error counts only up to distance 0
    after_reference:  mean over these sentences if the decoder reads the reference
    after_error:      mean over these sentences if it reads the reference with one wrong token
    output_sentences: number of these sentences whose output is also long enough for this distance
    after_output:     mean over these `output_sentences` sentences if the decoder reads its own
                      output
    after_reference_same_sentences:
                      mean over the same sentences as in `after_output` if the decoder reads the
                      reference
    """

    distance: int
    sentences: int
    after_reference: float
    after_error: float
    output_sentences: int
    after_output: float | None
    after_reference_same_sentences: float | None


@dataclass(frozen=True)
class ErrorPropagation:
    """The first error in each output, and the means of log p at each distance from the error.

    run:       name of the run
    sentences: one entry for each sentence, also for sentences without an error
    curve:     the means, one entry for each distance from the error
    """

    run: str
    sentences: tuple[SentenceErrors, ...]
    curve: tuple[CurvePoint, ...]

    @property
    def with_error(self) -> list[SentenceErrors]:
        """The sentences whose output differs from the reference."""
        return [sentence for sentence in self.sentences if sentence.error_index is not None]

    def to_json(self) -> dict[str, Any]:
        """Convert to plain Python objects, for JSON."""
        return {
            "run": self.run,
            "sentences": [sentence.__dict__ for sentence in self.sentences],
            "with_error": len(self.with_error),
            "curve": [point.__dict__ for point in self.curve],
        }


def measure_error_propagation(
    run: Run, examples: Sequence[Example], advance: ProgressCallback | None = None
) -> ErrorPropagation:
    """Decode every source greedily, and measure how the first error changes log p of the reference.

    If an example has several references, the output is compared with the reference that shares the
    longest prefix with it.

    advance: callback that receives the number of completed sentences and the total number
    """
    check_has_source(run)
    if not examples:
        raise DataError("there are no sentences to measure error propagation on; give at least one")
    by_index: dict[int, SentenceErrors] = {}
    for indices, batch in _batches(run, examples):
        sentences = _measure_batch(run, [examples[index] for index in indices], batch)
        by_index.update(zip(indices, sentences, strict=True))
        if advance is not None:
            advance(len(by_index), len(examples))
    ordered = tuple(by_index[index] for index in range(len(examples)))
    return ErrorPropagation(run.name, ordered, tuple(mean_curve(ordered)))


def check_has_source(run: Run) -> None:
    """Raise ConfigError for a language model, whose outputs have no references."""
    if isinstance(run.task.signature.source, NoSource):
        raise ConfigError(
            f"{run.name}: is a language model, whose outputs have no references; error "
            "propagation needs a run that reads a source"
        )


def _batches(run: Run, examples: Sequence[Example]) -> Iterator[tuple[list[int], list[ModelInput]]]:
    """Yield (indices, inputs) for batches of examples with similar source lengths.

    `indices` are the positions of these examples in `examples`.
    """
    prepared = [run.task.prepare(run.task.source_text(example)) for example in examples]
    run.predictor.check_input_lengths(prepared)
    order = sorted(range(len(examples)), key=lambda i: prepared[i].source_length or 0)
    for start in range(0, len(order), BATCH_SIZE):
        indices = order[start : start + BATCH_SIZE]
        yield indices, [prepared[index] for index in indices]


@torch.inference_mode()
def _measure_batch(
    run: Run, examples: Sequence[Example], batch: Sequence[ModelInput]
) -> list[SentenceErrors]:
    memory = run.predictor.encode(batch)
    outputs = _decode_greedily(run, batch, memory)
    encode, prefixes = run.task.target_tokenizer.encode, [prepared.prefix for prepared in batch]
    references: list[Tokens] = []
    texts: list[str] = []
    for example, output, prefix in zip(examples, outputs, prefixes, strict=True):
        candidates = [(*prefix, *encode(text.strip()), END) for text in example.references]
        best = max(
            range(len(candidates)), key=lambda i: common_prefix_length(output, candidates[i])
        )
        references.append(candidates[best])
        texts.append(example.references[best])
    run.predictor.check_target_lengths([reference[:-1] for reference in references])
    errors = [common_prefix_length(*pair) for pair in zip(outputs, references, strict=True)]
    with_one_error = [
        (*reference[:error], *output[error : error + 1], *reference[error + 1 :])
        for reference, output, error in zip(references, outputs, errors, strict=True)
    ]
    after_reference, after_error, after_output = (
        _reference_log_probabilities(run, memory, prefix_tokens, references)
        for prefix_tokens in (references, with_one_error, outputs)
    )
    tokenizer = run.task.target_tokenizer
    sentences = []
    for i, (example, output, error) in enumerate(zip(examples, outputs, errors, strict=True)):
        is_correct = output == references[i]
        continues = is_correct or output[error : error + 1] not in ((), (END,))
        end_of_output = len(output) + (END not in output)
        sentences.append(
            SentenceErrors(
                source=example.source,
                reference=texts[i],
                output=tokenizer.decode(output),
                error_index=None if is_correct else error,
                reference_pieces=tuple(tokenizer.pieces(references[i])),
                wrong_piece="".join(tokenizer.pieces(output[error : error + 1])),
                after_reference=tuple(after_reference[i]),
                after_error=tuple(after_error[i] if continues else after_error[i][: error + 1]),
                after_output=tuple(after_output[i][:end_of_output]),
            )
        )
    return sentences


def _decode_greedily(run: Run, batch: Sequence[ModelInput], memory: Memory) -> list[Tokens]:
    """Return the greedy output for each source.

    An output ends with END if the search generated END before the length limit.
    """
    decoding: GreedyConfig = greedy_config(run.config.decoding)
    request = SearchRequest(
        max_lengths=[output_limit(prepared, decoding, run.model, None) for prepared in batch],
        prefixes=[prepared.prefix for prepared in batch],
    )
    search = build_search(decoding, run.task.target_tokenizer)
    hypotheses = search(run.model.decoder, memory, request)
    return [(*best.tokens, *[END] * best.finished) for [best] in hypotheses]


def _reference_log_probabilities(
    run: Run, memory: Memory, prefixes: Sequence[Tokens], references: Sequence[Tokens]
) -> list[list[float]]:
    """Return log p of every token of each reference.

    The decoder computes the probability of token t of reference i after it has read the first
    t - 1 tokens of prefix i.
    """
    length = max(map(len, references))
    # END is never a decoder input. `_measure_batch` cuts off the values at positions after END.
    inputs = [[token for token in prefix if token != END] for prefix in prefixes]
    input_ids = torch.tensor([_pad((START, *row), length) for row in inputs])
    targets = torch.tensor([_pad(reference, length) for reference in references])
    device = memory.mask.device
    logits: Tensor = run.model.decoder(input_ids.to(device), memory).logits()  # (B, T, V)
    log_probabilities = log_softmax(logits).gather(2, targets.to(device).unsqueeze(2))
    rows = log_probabilities.squeeze(2).cpu().tolist()
    return [row[: len(reference)] for row, reference in zip(rows, references, strict=True)]


def _pad(tokens: Sequence[int], length: int) -> list[int]:
    """Return exactly `length` tokens: truncate the tokens, or append PAD tokens."""
    return [*tokens[:length], *[PAD] * (length - len(tokens))]


def common_prefix_length(output: Sequence[int], reference: Sequence[int]) -> int:
    """Return the length of the longest common prefix of output and reference."""
    pairs = zip(output, reference, strict=False)
    return next(
        (index for index, (o, r) in enumerate(pairs) if o != r), min(len(output), len(reference))
    )


def mean_curve(
    sentences: Sequence[SentenceErrors], before: int = 4, after: int = 12
) -> list[CurvePoint]:
    """Return the means of log p of the reference tokens at each distance from the first error.

    The distances are -`before` to `after` tokens. Distances that no sentence reaches are left out.
    Sentences without an error are ignored.
    """
    with_error = [(each, each.error_index) for each in sentences if each.error_index is not None]
    points = []
    for distance in range(-before, after + 1):
        reached = [
            (sentence, error + distance)
            for sentence, error in with_error
            if 0 <= error + distance < len(sentence.after_error)
        ]
        if not reached:
            continue
        by_output = [(each, index) for each, index in reached if index < len(each.after_output)]
        points.append(
            CurvePoint(
                distance=distance,
                sentences=len(reached),
                after_reference=_mean([each.after_reference[index] for each, index in reached]),
                after_error=_mean([each.after_error[index] for each, index in reached]),
                output_sentences=len(by_output),
                after_output=_mean([each.after_output[index] for each, index in by_output])
                if by_output
                else None,
                after_reference_same_sentences=_mean(
                    [each.after_reference[index] for each, index in by_output]
                )
                if by_output
                else None,
            )
        )
    return points


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
