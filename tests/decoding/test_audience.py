"""Those who wait while a search is under way: they hear its tokens, and may leave."""

from dataclasses import dataclass, field

import pytest
from toy_decoders import AttentiveDecoder, EchoDecoder, random_memory

from seqloom.decoding.audience import Attended
from seqloom.decoding.beam import Beam
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.sample import Sample
from seqloom.decoding.search import Request, Search

LENGTHS = (4, 2, 5, 3, 1, 4)
LIMITS = (9, 3, 12, 12, 7, 12)
NUMBERS = [10, 11, 12, 13, 14, 15]
SEARCHES: list[Search] = [Greedy(), Sample(seed=3), Beam(3), Beam(2, finished=1)]


@dataclass
class Listeners:
    """Hears some, and loses some after so many looks."""

    listening: set[int] = field(default_factory=set)
    leaving: dict[int, int] = field(default_factory=dict)
    heard: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    looks: int = 0

    def gone(self, number: int) -> bool:
        self.looks += number == NUMBERS[0]
        return number in self.leaving and self.looks >= self.leaving[number]

    def listens(self, number: int) -> bool:
        return number in self.listening

    def hear(self, number: int, place: int, token: int, log_probability: float) -> None:
        heard = self.heard.setdefault(number, [])
        heard.append((token, log_probability))
        assert place == len(heard)


@pytest.mark.parametrize("search", SEARCHES, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("seed", range(4))
def test_to_be_heard_changes_no_output(search: Search, seed: int) -> None:
    decoder, memory = AttentiveDecoder(seed, 5), random_memory(seed, LENGTHS)
    request = Request(LIMITS, n_best=2 if isinstance(search, Beam) else 1)
    alone = search(decoder, memory, request)
    audience = Listeners(listening=set(NUMBERS))
    assert search(Attended(decoder, audience, NUMBERS, LIMITS), memory, request) == alone


@pytest.mark.parametrize("search", SEARCHES[:2], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("seed", range(8))
def test_who_listens_hears_the_output_and_nothing_behind_it(search: Search, seed: int) -> None:
    """Outputs that are done stay in the batch for a while; what they say then is not told."""
    decoder, memory = AttentiveDecoder(seed, 5), random_memory(seed, LENGTHS)
    audience = Listeners(listening=set(NUMBERS[1:]))
    found = search(Attended(decoder, audience, NUMBERS, LIMITS), memory, Request(LIMITS))
    assert NUMBERS[0] not in audience.heard
    for number, [output] in list(zip(NUMBERS, found, strict=True))[1:]:
        heard = audience.heard.get(number, [])
        known = list(zip(output.tokens, output.log_probabilities, strict=False))
        assert heard in (known, known[:-1])  # the last one may come with the output alone
        assert len(heard) >= len(known) - 1


@pytest.mark.parametrize("search", SEARCHES, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("seed", range(4))
def test_one_who_leaves_takes_nothing_from_the_others(search: Search, seed: int) -> None:
    decoder, memory = AttentiveDecoder(seed, 5), random_memory(seed, LENGTHS)
    alone = search(decoder, memory, Request(LIMITS))
    audience = Listeners(leaving={NUMBERS[2]: 3})
    found = search(Attended(decoder, audience, NUMBERS, LIMITS), memory, Request(LIMITS))
    for place in (0, 1, 3, 4, 5):
        [mine], [own] = found[place], alone[place]
        assert mine.tokens == own.tokens
        assert mine.score == pytest.approx(own.score, abs=1e-9)


@pytest.mark.parametrize("search", SEARCHES, ids=lambda one: type(one).__name__)
def test_when_all_leave_the_search_ends_at_the_next_step(search: Search) -> None:
    decoder, memory = EchoDecoder(1, 8), random_memory(1, LENGTHS)
    limits = [40] * len(LENGTHS)
    audience = Listeners(leaving=dict.fromkeys(NUMBERS, 2))
    search(Attended(decoder, audience, NUMBERS, limits), memory, Request(limits))
    assert len(decoder.steps) == 2
