"""The example of beam search from the lecture: translations of "il a m'entarté".

    he hit me with a pie                  log p = -4.5
    he threw a pie                        log p = -3.2
    I was hit with a pie that he threw    log p = -7.2

The lecture gives these three outputs and their log-probabilities. Instead of a trained model, a
small decoder reads the log-probability of each next word from a table. For each of the three
outputs, the table entries of its words and of END add up to the log-probability in the lecture. The
search algorithms are the same as for trained models.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from seqloom.analysis.search_inspection import InspectedSearch, default_n_best, traceable_search
from seqloom.config.loading.loader import load_bundled_recipe
from seqloom.config.schema.decoding import BeamConfig, DecodingConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.decoding.build import build_search
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import SearchRequest
from seqloom.decoding.tracer import Tracer
from seqloom.inference.prediction import Prediction
from seqloom.models.interface import Memory, NoRows, State, Step
from seqloom.text.vocabulary import END, SPECIAL_TOKENS, Vocabulary

SOURCE = "il a m'entarté"
EXAMPLE_DECODING = BeamConfig(width=2, max_length=12)
"""The search of the lecture: beam search of width 2."""
END_NAME = SPECIAL_TOKENS[END]
NEXT_WORDS: Mapping[str, Mapping[str, float]] = {
    "": {"he": -0.7, "I": -0.9},
    "he": {"hit": -1.0, "threw": -1.1, "struck": -1.9},
    "he hit": {"me": -0.8, "a": -1.2},
    "he hit me": {"with": -0.7, "on": -1.4, END_NAME: -2.3},
    "he hit me with": {"a": -0.4, "one": -2.2},
    "he hit me with a": {"pie": -0.5, "tart": -1.2},
    "he hit me with a pie": {END_NAME: -0.4, "that": -1.9},
    "he hit me with a tart": {"that": -0.6, END_NAME: -1.0},
    "he hit me with a tart that": {"he": -0.5},
    "he hit me with a tart that he": {"threw": -0.7},
    "he hit me with a tart that he threw": {END_NAME: -0.7},
    "he threw": {"a": -0.6, "me": -1.3},
    "he threw a": {"pie": -0.5, "tart": -1.5},
    "he threw a pie": {END_NAME: -0.3, "that": -2.0},
    "he threw a pie that": {"he": -0.6, "I": -1.6},
    "I": {"was": -1.0, "got": -1.4, "hit": -2.0},
    "I was": {"hit": -0.8, "struck": -1.3},
    "I was hit": {"with": -0.9, END_NAME: -1.5, "on": -1.6},
    "I was hit with": {"a": -0.5, "one": -2.2},
    "I was hit with a": {"pie": -0.6, "tart": -1.3},
    "I was hit with a pie": {"that": -1.0, END_NAME: -1.1},
    "I was hit with a pie that": {"he": -0.6},
    "I was hit with a pie that he": {"threw": -0.5},
    "I was hit with a pie that he threw": {END_NAME: -0.4},
}
"""log p of the next word, or of END, after the words so far. The other words share the rest of the
probability."""
VOCABULARY = Vocabulary(
    list(dict.fromkeys(word for row in NEXT_WORDS.values() for word in row if word != END_NAME))
)


def example_recipe() -> RunConfig:
    """Return a recipe whose decoding settings are those of the example: beam search of width 2.

    Commands apply the user's decoding options to this recipe. Its other settings are not used.
    """
    return load_bundled_recipe("demo").config.model_copy(update={"decoding": EXAMPLE_DECODING})


def search_example(
    decoding: DecodingConfig = EXAMPLE_DECODING, n_best: int | None = None
) -> InspectedSearch:
    """Search for translations of the example sentence "il a m'entarté", and trace the search.

    decoding: options of the search. Default: beam search of width 2.
    n_best:   number of outputs. Default: the beam width; the number of samples for sampling; 1 for
              greedy search; 5 for exhaustive search.
    """
    decoding = traceable_search(decoding)
    tracer = Tracer(min_candidates=1)  # a beam of width k: k candidates per hypothesis, as drawn
    request = SearchRequest(
        max_lengths=[decoding.max_length or EXAMPLE_DECODING.max_length or 1],
        n_best=default_n_best(decoding) if n_best is None else n_best,
        tracer=tracer,
    )
    one_source = Memory(torch.zeros(1, 1, 1), torch.ones(1, 1, dtype=torch.bool), torch.zeros(1, 1))
    [hypotheses] = build_search(decoding)(TableDecoder(), one_source, request)
    [record] = tracer.traces
    outputs = tuple(map(_prediction, hypotheses))
    return InspectedSearch.of(SOURCE, record, outputs, VOCABULARY.pieces.__getitem__, decode)


def decode(tokens: Sequence[int]) -> str:
    """Join words with spaces. Special tokens are left out."""
    words = [VOCABULARY.pieces[token] for token in tokens if token >= len(SPECIAL_TOKENS)]
    return " ".join(words)


def _prediction(hypothesis: Hypothesis) -> Prediction:
    tokens = (*hypothesis.tokens, *[END] * hypothesis.finished)
    return Prediction(
        text=decode(tokens),
        score=hypothesis.score,
        pieces=tuple(VOCABULARY.pieces[token] for token in tokens),
        source_pieces=tuple(SOURCE.split()),
        log_probabilities=hypothesis.log_probabilities,
        finished=hypothesis.finished,
        tokens=tokens,
    )


@dataclass(frozen=True)
class TokensSoFar:
    """The state of a `TableDecoder`: the tokens that it has read so far.

    tokens: (R, N) START and the generated tokens of each hypothesis; (R, 0) before the first step
    """

    tokens: Tensor

    def select(self, rows: Tensor) -> Self:
        return type(self)(self.tokens[rows])


class TableDecoder:
    """Reads log p(next token | words so far) from the table `NEXT_WORDS`. Ignores the source."""

    def start(self, memory: Memory, max_steps: int, *, need_attention: bool = True) -> State:
        empty = torch.empty(len(memory.mask), 0, dtype=torch.long)
        return State(NoRows(), TokensSoFar(empty), 0, need_attention)

    def step(self, tokens: Tensor, state: State) -> Step:
        generated = torch.cat([state.moving.tokens, tokens.unsqueeze(1)], dim=1)  # (R, 1 + t)
        rows = [next_log_probabilities(decode(row)) for row in generated.tolist()]
        return Step(torch.stack(rows), state.after(TokensSoFar(generated)), None)


def next_log_probabilities(words: str) -> Tensor:
    """Return log p of every token after these words: (V,)

    `NEXT_WORDS` lists log p of the most probable tokens. All other words share the rest of the
    probability equally. If END is not listed, its probability is half of that of an unlisted word.
    For special tokens other than END, log p is -inf.
    """
    listed = NEXT_WORDS.get(words, {})
    weights = torch.ones(len(VOCABULARY.pieces), dtype=torch.float64)
    weights[: len(SPECIAL_TOKENS)] = 0
    weights[END] = 0.5
    ids = [END if word == END_NAME else VOCABULARY.id(word) for word in listed]
    weights[ids] = 0
    values = torch.tensor([*listed.values()], dtype=torch.float64)
    log_probabilities = (weights / weights.sum() * (1 - values.exp().sum())).log()
    log_probabilities[ids] = values
    return log_probabilities
