"""Defines `SearchInspection`, which encodes a text once and runs several searches on it.

It traces a search step by step, lists alternative tokens, and continues the search after a token
has been replaced.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, assert_never

import torch

from seqloom.analysis.output import to_plain
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
from seqloom.decoding.build import build_normalisation, build_search
from seqloom.decoding.forced import alternatives, force
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import SearchRequest
from seqloom.decoding.trace import CandidateIndex, SearchTrace, replay
from seqloom.decoding.tracer import Tracer
from seqloom.inference.length_limits import output_limit, without_end
from seqloom.inference.prediction import Prediction, build_prediction
from seqloom.inference.run import Run
from seqloom.models.interface import Memory
from seqloom.tasks.task import ModelInput
from seqloom.text.long_text import newline_id
from seqloom.text.vocabulary import END, SPECIAL_TOKENS, UNKNOWN

SUGGESTIONS = 5
"""Maximum number of similar tokens in the error message about an unknown token."""
EXHAUSTIVE_OUTPUTS = 5
"""Default number of outputs of an exhaustive search."""
MAX_TRACED_SEQUENCES = 20_000
"""Maximum number of sequences in a traced exhaustive search. The trace stores each sequence."""


@dataclass(frozen=True)
class Alternative:
    """A possible token at a step, with its log-probability.

    piece: display name of the token, for example "▁house"
    """

    token: int
    piece: str
    log_probability: float


@dataclass(frozen=True)
class InspectedSearch:
    """A traced search for the outputs of one text.

    record:  trace of the search
    outputs: outputs of the search, best first
    pieces:  display name of each token in the trace
    written: for each step and candidate, the output text up to and including the candidate
    """

    text: str
    record: SearchTrace
    outputs: tuple[Prediction, ...]
    pieces: dict[int, str]
    written: tuple[tuple[str, ...], ...]

    @classmethod
    def of(
        cls,
        text: str,
        record: SearchTrace,
        outputs: tuple[Prediction, ...],
        name_of: Callable[[int], str],
        decode: Callable[[Sequence[int]], str],
    ) -> "InspectedSearch":
        """Build an `InspectedSearch` from the trace and the outputs of a search.

        record:  trace of the search
        name_of: returns the display name of a token
        decode:  converts the tokens of an output to a text
        """
        tokens = sorted({candidate.token for step in record.steps for candidate in step})

        def text_up_to(candidate: CandidateIndex) -> str:
            return decode([record.candidate(each).token for each in record.path(candidate)])

        return cls(
            text=text,
            record=record,
            outputs=outputs,
            pieces={token: name_of(token) for token in tokens},
            written=tuple(
                tuple(text_up_to((step_index, index)) for index in range(len(step)))
                for step_index, step in enumerate(record.steps)
            ),
        )

    def to_json(self) -> dict[str, Any]:
        """Convert to plain Python objects, for JSON."""
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
class TokenReplacement:
    """An output before and after the replacement of one token.

    step:         position of the token, counted from 1
    original:     best output of the search
    changed:      best output with the new token at this step. Its earlier tokens are those of
                  `original`
    alternatives: most probable tokens at this step, given the earlier tokens of `original`
    """

    step: int
    original: Prediction
    changed: Prediction
    alternatives: tuple[Alternative, ...]

    def to_json(self) -> dict[str, Any]:
        """Convert to plain Python objects, for JSON."""
        return to_plain(vars(self))


@dataclass(frozen=True)
class SearchInspection:
    """Inspects the searches of a run for one text. The text is encoded only once."""

    run: Run
    text: str
    prepared: ModelInput
    decoding: SearchConfig

    @classmethod
    def of(
        cls,
        run: Run,
        text: str,
        decoding: DecodingConfig | None = None,
        to: str | Sequence[str] | None = None,
    ) -> "SearchInspection":
        """Prepare the inspection of a text.

        decoding: options of the search. Default: the options of the run.
        to:       target language, for multilingual runs.
        """
        decoding = traceable_search(run.config.decoding if decoding is None else decoding)
        if not text.strip() and not isinstance(run.task.signature.source, NoSource):
            raise DataError("the text is blank; give a sentence")
        [*_, tag] = run.languages.path(to)
        [tagged] = run.languages.add_tag([text], tag)
        prepared = run.task.prepare(tagged)
        run.predictor.check_input_lengths([prepared])
        return cls(run, text, prepared, decoding)

    @cached_property
    def memory(self) -> Memory:
        with torch.inference_mode():
            return self.run.predictor.encode([self.prepared])

    def search(self, n_best: int | None = None, prefix: Sequence[int] = ()) -> InspectedSearch:
        """Search for outputs and trace the search.

        n_best: number of outputs. Default: the beam width or the number of samples; 1 for greedy
                search; `EXHAUSTIVE_OUTPUTS` for exhaustive search.
        prefix: tokens that every output starts with
        """
        count = default_n_best(self.decoding) if n_best is None else n_best
        tracer = Tracer()
        prepared = self.with_prefix(prefix)
        hypotheses = self._hypotheses(prepared, count, tracer)
        [record] = tracer.traces
        assert replay(record) == hypotheses
        outputs = tuple(build_prediction(self.run.task, prepared, each) for each in hypotheses)
        decode = self.run.task.target_tokenizer.decode
        return InspectedSearch.of(self.text, record, outputs, self.name_of, decode)

    def alternatives(self, tokens: Sequence[int], count: int = 8) -> list[list[Alternative]]:
        """Return the `count` most probable tokens at each position of an output.

        tokens: tokens of the output. At each position, the decoder reads the tokens before it.

        The result has one more list than `tokens`: the last list is for the position that follows
        the last token.
        """
        with torch.inference_mode():
            steps = alternatives(self.run.model.decoder, self.memory, tokens, count)
        return [
            [Alternative(token, self.name_of(token), value) for token, value in step]
            for step in steps
        ]

    def replace_token(self, step: int, piece: str, count: int = 8) -> TokenReplacement:
        """Replace one token of the best output, and let the search continue after the new token.

        step:  position of the token, counted from 1
        piece: the new token: a text such as "house", or a display name such as "▁house"
        count: number of alternatives to return
        """
        [original] = self._hypotheses(self.prepared, 1)[:1]
        steps = len(original.log_probabilities)
        if not 1 <= step <= steps:
            raise DataError(
                f"--instead {step}={piece}: the output has {steps} steps, so there is no step "
                f"{step}; give one from 1 to {steps}"
            )
        prefix = (*original.tokens[: step - 1], *self.parse_token(piece))
        return TokenReplacement(
            step=step,
            original=build_prediction(self.run.task, self.prepared, original),
            changed=self.continue_from(prefix),
            alternatives=tuple(self.alternatives(original.tokens, count)[step - 1]),
        )

    def continue_from(self, prefix: Sequence[int]) -> Prediction:
        """Return the best output that starts with these tokens.

        If the last token is END, the output consists of the given tokens only.
        """
        prepared = self.with_prefix([token for token in prefix if token != END])
        if prefix and prefix[-1] == END:
            normalisation = build_normalisation(self.decoding)
            with torch.inference_mode():
                decoder = self.run.model.decoder
                [hypothesis] = force(
                    decoder, self.memory, [prepared.prefix], normalisation=normalisation
                )
        else:
            hypothesis = self._hypotheses(prepared, 1)[0]
        return build_prediction(self.run.task, prepared, hypothesis)

    def with_prefix(self, prefix: Sequence[int]) -> ModelInput:
        """Return the model input that makes every output start with these tokens."""
        return replace(self.prepared, prefix=tuple(prefix)) if prefix else self.prepared

    def parse_token(self, piece: str) -> tuple[int, ...]:
        """Convert user input to tokens.

        piece: a text such as "house", or the display name of one token, such as "▁house" or "</s>"
        """
        tokenizer = self.run.task.target_tokenizer
        if piece == SPECIAL_TOKENS[END]:
            return (END,)
        tokens = tuple(tokenizer.encode(piece))
        by_name = self._tokens_by_name.get(piece)
        if by_name is not None and (len(tokens) != 1 or UNKNOWN in tokens):
            return (by_name,)
        if tokens and UNKNOWN not in tokens:
            return tokens
        similar = get_close_matches(piece, self._tokens_by_name, n=SUGGESTIONS, cutoff=0.4)
        hint = f"; similar tokens are {', '.join(similar)}" if similar else ""
        raise DataError(
            f"'{piece}': is not a token of this run's vocabulary{hint}. `seqloom search` lists "
            "the names of tokens"
        )

    @cached_property
    def _tokens_by_name(self) -> dict[str, int]:
        """All tokens of the vocabulary except the special ones, by display name."""
        size = self.run.task.target_tokenizer.size
        return {self.name_of(token): token for token in range(len(SPECIAL_TOKENS), size)}

    def name_of(self, token: int) -> str:
        """Return the display name of a token: its piece, for example "▁house", or "</s>" for END."""
        if token < len(SPECIAL_TOKENS):
            return SPECIAL_TOKENS[token]
        return self.run.task.target_tokenizer.pieces([token])[0]

    def _hypotheses(
        self, prepared: ModelInput, n_best: int, tracer: Tracer | None = None
    ) -> list[Hypothesis]:
        newline = newline_id(self.run.task.target_tokenizer)
        decoding = self.decoding if newline is None else without_end(self.decoding)
        request = SearchRequest(
            max_lengths=[output_limit(prepared, self.decoding, self.run.model, newline)],
            prefixes=[prepared.prefix],
            n_best=n_best,
            tracer=tracer,
        )
        with torch.inference_mode():
            search = build_search(decoding, self.run.task.target_tokenizer)
            [hypotheses] = search(self.run.model.decoder, self.memory, request)
        return hypotheses


def traceable_search(decoding: DecodingConfig) -> SearchConfig:
    """Return the given search options, limited so that the trace is not too large to show.

    For exhaustive search, `max_sequences` is at most `MAX_TRACED_SEQUENCES`. The options of other
    searches do not change. Raises ConfigError for minimum Bayes risk decoding, which has no steps
    to trace.
    """
    if isinstance(decoding, MinimumBayesRiskConfig):
        raise ConfigError(
            "decoding: minimum Bayes risk compares complete texts and has no steps to show; "
            "inspect a search, for example with --beam 5 (--set decoding.kind=beam)"
        )
    if isinstance(decoding, ExhaustiveConfig):
        limit = min(decoding.max_sequences, MAX_TRACED_SEQUENCES)
        return decoding.model_copy(update={"max_sequences": limit})
    return decoding


def default_n_best(decoding: SearchConfig) -> int:
    """Return the number of outputs that `SearchInspection.search` returns by default.

    This is the beam width or the number of samples; 1 for greedy search; `EXHAUSTIVE_OUTPUTS` for
    exhaustive search.
    """
    match decoding:
        case BeamConfig(width=width):
            return width
        case SampleConfig(samples=samples):
            return samples
        case GreedyConfig():
            return 1
        case ExhaustiveConfig():
            return EXHAUSTIVE_OUTPUTS
        case _:
            assert_never(decoding)
