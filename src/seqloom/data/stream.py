"""Batches without end, from a place that can be noted down and returned to."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from seqloom.core.batch import Batch
from seqloom.data.batching import Sizes
from seqloom.data.examples import Examples
from seqloom.data.layout import Layout
from seqloom.data.mixture import draw_epoch, parts_of
from seqloom.data.rounds import examples_of_round, rounds_in_epoch

Position = tuple[int, int]
"""(round, index of a batch in it)"""


@dataclass(frozen=True)
class Plan:
    """The batches of one round, and the corpus they are indices of."""

    corpus: Examples
    batches: list[Sizes]


class BatchStream:
    """One round after the other. Which batch comes is a pure function of (seed, round, index).

    A round is an epoch, or a part of one if the corpus is large: then a round is planned while
    the one before it is trained on, and neither time nor memory grows with the corpus.

    All ranks walk along the same sequence of batches, `ranks` of them at a time: rank r takes
    the r-th of each group, and a group may reach into the next round. So no batch is left out or
    seen twice, and the position, that of the next group, is the same on all ranks.

    temperature: above 1 the parts of the corpus are drawn more evenly than they are large
    """

    def __init__(
        self,
        corpus: Examples,
        layout: Layout,
        seed: int,
        rank: int = 0,
        ranks: int = 1,
        temperature: float = 1.0,
    ) -> None:
        assert 0 <= rank < ranks, f"rank {rank} of {ranks}"
        for variant in corpus.variants():
            layout.refuse_too_long(variant.source_lengths, variant.target_lengths)
        self.corpus = corpus
        self.layout = layout
        self.seed = seed
        self.rank = rank
        self.ranks = ranks
        self.temperature = temperature
        self.rounds = rounds_in_epoch(len(corpus))
        self._position = (0, 0)
        self._plans: dict[int, Plan] = {}
        self._ahead: dict[int, Future[Plan]] = {}
        self._planner = ThreadPoolExecutor(1, "seqloom-planner")

    @property
    def position(self) -> Position:
        """That of the next group's first batch. Set it to continue from there."""
        return self._position

    @position.setter
    def position(self, position: Position) -> None:
        self._position = self._carry(*position)

    def epoch_of(self, position: Position) -> int:
        """How many epochs lie before this round and its siblings."""
        return position[0] // self.rounds

    def batches_in(self, number: int) -> int:
        """Batches of a round."""
        return len(self._plan(number).batches)

    def examples_from(self, position: Position, batches: int) -> list[int]:
        """The examples of so many batches, from this position on, whatever their rank."""
        places = [self._carry(position[0], position[1] + further) for further in range(batches)]
        chosen = [self._plan(number).batches[index] for number, index in places]
        return sorted({int(example) for batch in chosen for example in batch})

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        number, index = self._carry(self._position[0], self._position[1] + self.rank)
        plan = self._plan(number)
        batch = self.layout.gather(plan.corpus, plan.batches[index])
        self._position = self._carry(self._position[0], self._position[1] + self.ranks)
        return batch

    def close(self) -> None:
        """Plan no further ahead."""
        for plan in self._ahead.values():
            plan.cancel()
        self._ahead = {}

    def _carry(self, number: int, index: int) -> Position:
        """The same place with an index inside its round."""
        assert number >= 0
        assert index >= 0
        while index >= self.batches_in(number):
            index -= self.batches_in(number)
            number += 1
        return number, index

    def _plan(self, number: int) -> Plan:
        if number not in self._plans:
            # Two rounds at most are looked at in turn: the one that ends and the next.
            self._plans = {kept: self._plans[kept] for kept in self._plans if kept == number - 1}
            ahead = self._ahead.pop(number, None)
            self._plans[number] = self._make_plan(number) if ahead is None else ahead.result()
            if self.rounds > 1:
                # What the last round read stays in the system's memory, but is no longer ours.
                self._plans[number].corpus.release()
                self._ahead = {number + 1: self._planner.submit(self._make_plan, number + 1)}
        return self._plans[number]

    def _make_plan(self, number: int) -> Plan:
        corpus = self.corpus.for_epoch(number // self.rounds)
        rows = self._rows(corpus, number)
        sources = None if corpus.source_lengths is None else corpus.source_lengths[rows]
        plan = self.layout.plan(sources, corpus.target_lengths[rows], self.seed, number)
        return Plan(corpus, [rows[batch] for batch in plan])

    def _rows(self, corpus: Examples, number: int) -> Sizes:
        """The examples of a round, some of them several times if parts are drawn unevenly."""
        if self.temperature == 1:
            return examples_of_round(len(corpus), self.rounds, self.seed, number)
        epoch = number // self.rounds
        drawn = draw_epoch(parts_of(corpus.report), self.temperature, self.seed, epoch)
        return drawn[examples_of_round(len(drawn), self.rounds, self.seed, number)]
