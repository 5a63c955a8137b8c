"""Slips: where an output first leaves its reference, and what that does to the rest.

A model that is taught with the truth before it writes behind its own words. At the first token
that is not the reference's it slips; from there on three beginnings can stand before the same
position of the reference:

    truth   r_1 … r_{t-1}                       as in training
    slip    r_1 … r_{s-1} o_s r_{s+1} … r_{t-1}   one wrong token, the rest is true
    own     o_1 … o_{t-1}                       as in use

How much less probable r_t is behind the second and the third is the price of the slip.
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
from seqloom.decoding.search import Request, log_softmax
from seqloom.models.interface import Memory
from seqloom.runs.length_limits import output_limit
from seqloom.runs.options import greedy_config
from seqloom.runs.predictor import ProgressCallback
from seqloom.runs.run import Run
from seqloom.tasks.task import ModelInput
from seqloom.text.vocabulary import END, PAD, START

AT_ONCE = 64
"""Sentences that are decoded together."""

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Slip:
    """One sentence.

    at:     the place of the first wrong token, counted from 0; None: the output is the reference
    pieces: the tokens of the reference, END included
    said:   what stands in place of the reference's token at the slip; "" if there is none
    truth, slip, own: log p of each token of the reference behind these beginnings. Up to the slip
            they are equal. `own` ends where the output does, and `slip` with the slip itself where
            that is an END: behind END there is nothing
    """

    source: str
    reference: str
    output: str
    at: int | None
    pieces: tuple[str, ...]
    said: str
    truth: tuple[float, ...]
    slip: tuple[float, ...]
    own: tuple[float, ...]


@dataclass(frozen=True)
class Point:
    """The mean over all sentences that reach this far, so many tokens after the slip.

    own_sentences: those whose output reaches this far, too; `own` and `own_truth` are their means
    """

    distance: int
    sentences: int
    truth: float
    slip: float
    own_sentences: int
    own: float | None
    own_truth: float | None


@dataclass(frozen=True)
class Slips:
    """All sentences, and the curve of their means by distance from the slip."""

    run: str
    sentences: tuple[Slip, ...]
    curve: tuple[Point, ...]

    @property
    def slipped(self) -> list[Slip]:
        return [one for one in self.sentences if one.at is not None]

    def to_json(self) -> dict[str, Any]:
        """The same in plain Python, for a program to read."""
        return {
            "run": self.run,
            "sentences": [one.__dict__ for one in self.sentences],
            "slipped": len(self.slipped),
            "curve": [one.__dict__ for one in self.curve],
        }


def find_slips(
    run: Run, examples: Sequence[Example], advance: ProgressCallback | None = None
) -> Slips:
    """Decode every source greedily and compare with the reference that the output follows longest."""
    refuse_without_source(run)
    if not examples:
        raise DataError("there are no sentences in which anything could slip; give some")
    found: dict[int, Slip] = {}
    for numbers, batch in _batches(run, examples):
        slips = _slips(run, [examples[number] for number in numbers], batch)
        found.update(zip(numbers, slips, strict=True))
        if advance is not None:
            advance(len(found), len(examples))
    ordered = tuple(found[number] for number in range(len(examples)))
    return Slips(run.name, ordered, tuple(mean_curve(ordered)))


def refuse_without_source(run: Run) -> None:
    """What reads nothing answers nothing, and has no reference."""
    if isinstance(run.task.signature.source, NoSource):
        raise ConfigError(
            f"{run.name}: is a language model, whose outputs have no references to leave; slips "
            "are those of a run that reads something"
        )


def _batches(run: Run, examples: Sequence[Example]) -> Iterator[tuple[list[int], list[ModelInput]]]:
    """Sentences of like length together."""
    prepared = [run.task.prepare(run.task.source_text(example)) for example in examples]
    run.predictor.check_input_lengths(prepared)
    order = sorted(range(len(examples)), key=lambda i: len(prepared[i].source or ()))
    for start in range(0, len(order), AT_ONCE):
        numbers = order[start : start + AT_ONCE]
        yield numbers, [prepared[number] for number in numbers]


@torch.inference_mode()
def _slips(run: Run, examples: Sequence[Example], batch: Sequence[ModelInput]) -> list[Slip]:
    memory = run.predictor.encode(batch)
    outputs = _greedy(run, batch, memory)
    encode, hidden = run.task.target_tokenizer.encode, [one.prefix for one in batch]
    references, texts = [], []
    for example, output, begin in zip(examples, outputs, hidden, strict=True):
        ways = [(*begin, *encode(text.strip()), END) for text in example.references]
        best = max(range(len(ways)), key=lambda way: agreement(output, ways[way]))
        references.append(ways[best])
        texts.append(example.references[best])
    run.predictor.check_target_lengths([reference[:-1] for reference in references])
    places = [agreement(*both) for both in zip(outputs, references, strict=True)]
    slipped = [
        (*reference[:at], *output[at : at + 1], *reference[at + 1 :])
        for reference, output, at in zip(references, outputs, places, strict=True)
    ]
    columns = [_asked(run, memory, before, references) for before in (references, slipped, outputs)]
    return [
        _slip(run, example, text, tokens, numbers)
        for example, text, *tokens, numbers in zip(
            examples, texts, references, outputs, zip(*columns, strict=True), strict=True
        )
    ]


def _slip(
    run: Run,
    example: Example,
    text: str,
    tokens: Sequence[Tokens],
    numbers: tuple[list[float], list[float], list[float]],
) -> Slip:
    """tokens: of the reference and of the output; numbers: behind each of the beginnings."""
    tokenizer, (reference, output) = run.task.target_tokenizer, tokens
    at = agreement(output, reference)
    goes_on = output == reference or output[at : at + 1] not in ((), (END,))
    truth, slip, own = (tuple(values) for values in numbers)
    return Slip(
        source=example.source,
        reference=text,
        output=tokenizer.decode(output),
        at=None if output == reference else at,
        pieces=tuple(tokenizer.pieces(reference)),
        said="".join(tokenizer.pieces(output[at : at + 1])),
        truth=truth,
        slip=slip if goes_on else slip[: at + 1],
        own=own[: len(output) + (END not in output)],
    )


def _greedy(run: Run, batch: Sequence[ModelInput], memory: Memory) -> list[Tokens]:
    """The output of each source, END included where it was reached."""
    decoding: GreedyConfig = greedy_config(run.config.decoding)
    request = Request(
        max_lengths=[output_limit(one, decoding, run.model, None) for one in batch],
        prefixes=[one.prefix for one in batch],
    )
    found = build_search(decoding)(run.model.decoder, memory, request)
    return [(*best.tokens, *[END] * best.finished) for [best] in found]


def _asked(
    run: Run, memory: Memory, before: Sequence[Tokens], references: Sequence[Tokens]
) -> list[list[float]]:
    """log p(r_t | the t - 1 tokens that stand before) for every t."""
    longest = max(map(len, references))
    # END is never fed; what would stand behind it is looked at by nobody.
    words = [[token for token in row if token != END] for row in before]
    fed = torch.tensor([_filled((START, *row), longest) for row in words])
    asked = torch.tensor([_filled(row, longest) for row in references])
    device = memory.mask.device
    logits: Tensor = run.model.decoder(fed.to(device), memory).logits()  # (B, T, V)
    own = log_softmax(logits).gather(2, asked.to(device).unsqueeze(2)).squeeze(2).cpu()
    lines = own.tolist()
    return [line[: len(row)] for line, row in zip(lines, references, strict=True)]


def _filled(tokens: Sequence[int], length: int) -> list[int]:
    """Cut or filled up to this length."""
    return [*tokens[:length], *[PAD] * (length - len(tokens))]


def agreement(output: Sequence[int], reference: Sequence[int]) -> int:
    """How many tokens at the beginning of both are the same."""
    pairs = zip(output, reference, strict=False)
    return next(
        (place for place, (o, r) in enumerate(pairs) if o != r), min(len(output), len(reference))
    )


def mean_curve(sentences: Sequence[Slip], before: int = 4, after: int = 12) -> list[Point]:
    """Means by distance: 0 is the slip itself, where all beginnings are still the same."""
    slipped = [(one, one.at) for one in sentences if one.at is not None]
    points = []
    for distance in range(-before, after + 1):
        here = [(one, at + distance) for one, at in slipped if 0 <= at + distance < len(one.slip)]
        if not here:
            continue
        both = [(one, place) for one, place in here if place < len(one.own)]
        points.append(
            Point(
                distance=distance,
                sentences=len(here),
                truth=float(np.mean([one.truth[place] for one, place in here])),
                slip=float(np.mean([one.slip[place] for one, place in here])),
                own_sentences=len(both),
                own=float(np.mean([one.own[place] for one, place in both])) if both else None,
                own_truth=float(np.mean([one.truth[place] for one, place in both]))
                if both
                else None,
            )
        )
    return points
