"""Streaming and cancellation while a search runs."""

from dataclasses import dataclass, field

import pytest

from seqloom.decoding.beam import Beam
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.sampling import Sampling
from seqloom.decoding.search import Search, SearchRequest
from seqloom.decoding.streaming import StreamingDecoder
from support.toy_decoders import AttentiveDecoder, EchoDecoder, random_memory

LENGTHS = (4, 2, 5, 3, 1, 4)
MAX_LENGTHS = (9, 3, 12, 12, 7, 12)
INDICES = [10, 11, 12, 13, 14, 15]
SEARCHES: list[Search] = [Greedy(), Sampling(seed=3), Beam(3), Beam(2, finished=1)]


@dataclass
class RecordingCallback:
    """Stores the tokens of the inputs in `streaming`.

    cancel_at: for some inputs, the step at which they are cancelled
    """

    streaming: set[int] = field(default_factory=set)
    cancel_at: dict[int, int] = field(default_factory=dict)
    tokens: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    steps: int = 0

    def is_cancelled(self, index: int) -> bool:
        self.steps += index == INDICES[0]
        return index in self.cancel_at and self.steps >= self.cancel_at[index]

    def is_streaming(self, index: int) -> bool:
        return index in self.streaming

    def on_token(self, index: int, position: int, token: int, log_probability: float) -> None:
        tokens = self.tokens.setdefault(index, [])
        tokens.append((token, log_probability))
        assert position == len(tokens)


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
@pytest.mark.parametrize("seed", range(4))
def test_streaming_does_not_change_outputs(search: Search, seed: int) -> None:
    decoder, memory = AttentiveDecoder(seed, 5), random_memory(seed, LENGTHS)
    request = SearchRequest(MAX_LENGTHS, n_best=2 if isinstance(search, Beam) else 1)
    expected = search(decoder, memory, request)
    callback = RecordingCallback(streaming=set(INDICES))
    streaming = StreamingDecoder(decoder, callback, INDICES, MAX_LENGTHS)
    assert search(streaming, memory, request) == expected


@pytest.mark.parametrize("search", SEARCHES[:2], ids=lambda search: type(search).__name__)
@pytest.mark.parametrize("seed", range(8))
def test_callback_receives_the_tokens_of_the_output_and_none_after_its_end(
    search: Search, seed: int
) -> None:
    """Finished outputs stay in the batch for some steps; their tokens are not reported."""
    decoder, memory = AttentiveDecoder(seed, 5), random_memory(seed, LENGTHS)
    callback = RecordingCallback(streaming=set(INDICES[1:]))
    streaming = StreamingDecoder(decoder, callback, INDICES, MAX_LENGTHS)
    outputs = search(streaming, memory, SearchRequest(MAX_LENGTHS))
    assert INDICES[0] not in callback.tokens
    for index, [output] in list(zip(INDICES, outputs, strict=True))[1:]:
        received = callback.tokens.get(index, [])
        expected = list(zip(output.tokens, output.log_probabilities, strict=False))
        assert received in (expected, expected[:-1])  # the last token may be missing
        assert len(received) >= len(expected) - 1


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
@pytest.mark.parametrize("seed", range(4))
def test_cancelling_one_output_does_not_change_the_others(search: Search, seed: int) -> None:
    decoder, memory = AttentiveDecoder(seed, 5), random_memory(seed, LENGTHS)
    expected = search(decoder, memory, SearchRequest(MAX_LENGTHS))
    callback = RecordingCallback(cancel_at={INDICES[2]: 3})
    streaming = StreamingDecoder(decoder, callback, INDICES, MAX_LENGTHS)
    outputs = search(streaming, memory, SearchRequest(MAX_LENGTHS))
    for source in (0, 1, 3, 4, 5):
        [output], [expected_output] = outputs[source], expected[source]
        assert output.tokens == expected_output.tokens
        assert output.score == pytest.approx(expected_output.score, abs=1e-9)


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
def test_search_ends_at_the_next_step_if_all_outputs_are_cancelled(search: Search) -> None:
    decoder, memory = EchoDecoder(1, 8), random_memory(1, LENGTHS)
    max_lengths = [40] * len(LENGTHS)
    callback = RecordingCallback(cancel_at=dict.fromkeys(INDICES, 2))
    streaming = StreamingDecoder(decoder, callback, INDICES, max_lengths)
    search(streaming, memory, SearchRequest(max_lengths))
    assert len(decoder.row_counts) == 2
