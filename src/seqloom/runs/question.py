"""Question: one text that is read once and asked about again and again.

How was its output found? What else would the model have said, and what if it had?
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, assert_never

import torch

from seqloom.config.schema.decoding import (
    BeamConfig,
    DecodingConfig,
    ExhaustiveConfig,
    GreedyConfig,
    MinimumBayesRiskConfig,
    SampleConfig,
    SearchConfig,
)
from seqloom.core.errors import ConfigError, DataError
from seqloom.core.signature import NoSource
from seqloom.decoding.alternatives import alternatives
from seqloom.decoding.build import build_search
from seqloom.decoding.forced import force
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.record import Place, Record, replay
from seqloom.decoding.recorder import Recorder
from seqloom.decoding.search import Request
from seqloom.models.interface import Memory
from seqloom.runs.length_limits import output_limit, without_end
from seqloom.runs.prediction import Prediction, build_prediction
from seqloom.runs.run import Run
from seqloom.tasks.task import ModelInput
from seqloom.text.long_text import newline_id
from seqloom.text.vocabulary import END, SPECIAL_TOKENS, UNKNOWN

CLOSEST = 5
RECORDED = 20_000
"""Sequences of an exhaustive search at most: every one of them is written down."""


@dataclass(frozen=True)
class Alternative:
    """A token that could stand at a step, as it is called in pictures."""

    token: int
    piece: str
    log_probability: float


@dataclass(frozen=True)
class Searched:
    """One text, the search for its outputs, and the outputs.

    pieces:  what each token of the record is called in pictures
    written: for each candidate of each step the text up to and with it
    """

    text: str
    record: Record
    outputs: tuple[Prediction, ...]
    pieces: dict[int, str]
    written: tuple[tuple[str, ...], ...]

    def to_json(self) -> dict[str, Any]:
        """The same in plain Python, for a program to read."""
        outputs = [output.to_json() for output in self.outputs]
        for output in outputs:
            del output["attention"], output["alignment"]
        return {
            "text": self.text,
            "outputs": outputs,
            "pieces": {str(token): piece for token, piece in sorted(self.pieces.items())},
            "record": self.record.to_json(),
        }


@dataclass(frozen=True)
class Changed:
    """What if: an output, and what it becomes when a token is replaced and the search goes on.

    step:         where, counted from 1
    alternatives: what the model would have liked best there
    """

    step: int
    original: Prediction
    changed: Prediction
    alternatives: tuple[Alternative, ...]

    def to_json(self) -> dict[str, Any]:
        """The same in plain Python, for a program to read."""
        return {
            "step": self.step,
            "original": self.original.to_json(),
            "changed": self.changed.to_json(),
            "alternatives": [each.__dict__ for each in self.alternatives],
        }


@dataclass(frozen=True)
class Question:
    """A text that a run has read."""

    run: Run
    text: str
    prepared: ModelInput
    decoding: SearchConfig

    @classmethod
    def of(
        cls, run: Run, text: str, decoding: DecodingConfig | None = None, to: str | None = None
    ) -> "Question":
        """decoding: as the recipe says, if left out; to: the language, of a run of several."""
        chosen = run.config.decoding if decoding is None else decoding
        if isinstance(chosen, MinimumBayesRiskConfig):
            raise ConfigError(
                "decoding: minimum Bayes risk compares whole texts and has no steps to show; look "
                "at a search instead, for example with --beam 5 (--set decoding.kind=beam)"
            )
        if isinstance(chosen, ExhaustiveConfig):
            limit = min(chosen.max_sequences, RECORDED)
            chosen = chosen.model_copy(update={"max_sequences": limit})
        if not text.strip() and not isinstance(run.task.signature.source, NoSource):
            raise DataError("there is nothing to search for: the text is blank; give a sentence")
        [*_, tag] = run.languages.path(to)
        [asked] = run.languages.add_tag([text], tag)
        prepared = run.task.prepare(asked)
        run.predictor.check_input_lengths([prepared])
        return cls(run, text, prepared, chosen)

    @cached_property
    def memory(self) -> Memory:
        with torch.inference_mode():
            return self.run.predictor.encode([self.prepared])

    def search(self, n_best: int | None = None, begin: Sequence[int] = ()) -> Searched:
        """The outputs, and how they were found.

        n_best: left out: as many as the search follows
        begin:  the tokens that every output begins with
        """
        count = followed(self.decoding) if n_best is None else n_best
        recorder = Recorder()
        prepared = self._beginning(begin)
        found = self._hypotheses(prepared, count, recorder)
        [record] = recorder.records
        assert replay(record) == found
        tokens = sorted({one.token for step in record.steps for one in step})
        return Searched(
            text=self.text,
            record=record,
            outputs=tuple(build_prediction(self.run.task, prepared, one) for one in found),
            pieces={token: self.name_of(token) for token in tokens},
            written=self._written(record),
        )

    def _written(self, record: Record) -> tuple[tuple[str, ...], ...]:
        decode = self.run.task.target_tokenizer.decode

        def text(place: Place) -> str:
            return decode([record.candidate(each).token for each in record.path(place)])

        return tuple(
            tuple(text((number, place)) for place in range(len(step)))
            for number, step in enumerate(record.steps)
        )

    def alternatives(self, tokens: Sequence[int], count: int = 8) -> list[list[Alternative]]:
        """For each token of an output, and for what follows, what else could stand there."""
        with torch.inference_mode():
            found = alternatives(self.run.model.decoder, self.memory, tokens, count)
        return [
            [Alternative(token, self.name_of(token), value) for token, value in step]
            for step in found
        ]

    def instead(self, step: int, piece: str, count: int = 8) -> Changed:
        """Put another token at a step of the best output, counted from 1, and decode on."""
        [original] = self._hypotheses(self.prepared, 1)[:1]
        steps = len(original.log_probabilities)
        if not 1 <= step <= steps:
            raise DataError(
                f"--instead {step}={piece}: the output has {steps} steps, so there is no step "
                f"{step}; give one from 1 to {steps}"
            )
        chosen = self.tokens_of(piece)
        begin = (*original.tokens[: step - 1], *chosen)
        shown = self.alternatives(original.tokens, count)[step - 1]
        return Changed(
            step=step,
            original=build_prediction(self.run.task, self.prepared, original),
            changed=self.decode_on(begin),
            alternatives=tuple(shown),
        )

    def decode_on(self, begin: Sequence[int]) -> Prediction:
        """The best output that begins with these tokens; with END at their end it is all said."""
        prepared = self._beginning([token for token in begin if token != END])
        if begin and begin[-1] == END:
            exponent = self.decoding.length_exponent
            with torch.inference_mode():
                decoder = self.run.model.decoder
                [found] = force(decoder, self.memory, [prepared.prefix], length_exponent=exponent)
        else:
            found = self._hypotheses(prepared, 1)[0]
        return build_prediction(self.run.task, prepared, found)

    def tokens_of(self, piece: str) -> tuple[int, ...]:
        """What was typed, as tokens: a word as the tokenizer cuts it, or one piece by its name."""
        tokenizer = self.run.task.target_tokenizer
        if piece == SPECIAL_TOKENS[END]:
            return (END,)
        tokens = tuple(tokenizer.encode(piece))
        named = self._named.get(piece)
        if named is not None and (len(tokens) != 1 or UNKNOWN in tokens):
            return (named,)
        if tokens and UNKNOWN not in tokens:
            return tokens
        near = get_close_matches(piece, self._named, n=CLOSEST, cutoff=0.4)
        hint = f"; closest to it are {', '.join(near)}" if near else ""
        raise DataError(
            f"'{piece}': the run does not know this token{hint}. The names of tokens stand in "
            "the steps of `seqloom search`"
        )

    @cached_property
    def _named(self) -> dict[str, int]:
        """Every token of the vocabulary by its name, the special ones apart."""
        size = self.run.task.target_tokenizer.size
        return {self.name_of(token): token for token in range(len(SPECIAL_TOKENS), size)}

    def name_of(self, token: int) -> str:
        """What a token is called in pictures."""
        if token < len(SPECIAL_TOKENS):
            return SPECIAL_TOKENS[token]
        return self.run.task.target_tokenizer.pieces([token])[0]

    def _beginning(self, begin: Sequence[int]) -> ModelInput:
        return replace(self.prepared, prefix=tuple(begin)) if begin else self.prepared

    def _hypotheses(
        self, prepared: ModelInput, n_best: int, recorder: Recorder | None = None
    ) -> list[Hypothesis]:
        newline = newline_id(self.run.task.target_tokenizer)
        how = self.decoding if newline is None else without_end(self.decoding)
        request = Request(
            max_lengths=[output_limit(prepared, self.decoding, self.run.model, newline)],
            prefixes=[prepared.prefix],
            n_best=n_best,
            recorder=recorder,
        )
        with torch.inference_mode():
            [found] = build_search(how)(self.run.model.decoder, self.memory, request)
        return found


def followed(decoding: SearchConfig) -> int:
    """How many outputs a search has to offer."""
    match decoding:
        case BeamConfig(width=width):
            return width
        case SampleConfig(samples=samples):
            return samples
        case GreedyConfig():
            return 1
        case ExhaustiveConfig():
            return CLOSEST
        case _:
            assert_never(decoding)
