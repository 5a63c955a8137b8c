"""Exhaustive search: every output there is. The yardstick for all the others."""

from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from seqloom.core.errors import ConfigError
from seqloom.decoding.history import ROOT, History
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.recorder import Key, Outcome, Terms
from seqloom.decoding.rules import FORBIDDEN, Prefixes, Rules
from seqloom.decoding.search import Request, Stepper, log_softmax
from seqloom.models.interface import Memory
from seqloom.text.vocabulary import END, START


@dataclass(frozen=True)
class Exhaustive:
    """Every sequence that ends in END within max_length tokens, breadth first.

    Over M words there are M^T sequences of length T, so this is for small trees only.
    """

    max_sequences: int = 1_000_000
    length_exponent: float = 1.0
    rules: Rules = field(default_factory=Rules)

    @torch.inference_mode()
    def __call__(
        self, decoder: Stepper, memory: Memory, request: Request
    ) -> list[list[Hypothesis]]:
        """For each source the n_best of all outputs: the finished by score, then the others."""
        size = memory.mask.shape[0]
        request.check(size)
        return [
            self._search(decoder, memory.only(source), only_request(request, source))
            for source in range(size)
        ]

    def _search(self, decoder: Stepper, memory: Memory, request: Request) -> list[Hypothesis]:
        """One source: its hypotheses are the rows, and each of them is continued in every way."""
        device, [limit] = memory.mask.device, request.max_lengths
        prefixes = Prefixes(request.prefixes, device)
        history = History(request.keep_attention, memory.mask)
        leaves: list[int] = []
        state = decoder.start(memory, limit)
        written = torch.full((1, 1), START, device=device)  # (R, 1 + t)
        nodes = torch.full((1,), ROOT, device=device)
        totals = torch.zeros(1, device=device)
        recorder = request.recorder
        if recorder is not None:
            recorder.begin(request, Terms("exhaustive", 1, self.length_exponent, self.rules))

        for position in range(limit):
            step = decoder.step(written[:, -1], state)
            history.look(step.attention, len(nodes))
            own = log_softmax(step.logits)  # (R, V)
            if position == 0:
                self._check_size(own.shape[1], request)
            forced = prefixes.at(position, partial(torch.zeros_like, nodes))
            allowed = self.rules(own, written, forced)
            if recorder is not None:
                recorder.see(own)
                last = position == limit - 1
                recorder.take(everything(allowed, totals, request.n_best, last))

            ends = (allowed[:, END] > FORBIDDEN).nonzero().squeeze(1)
            ended = history.add(torch.full_like(ends, END), own[ends, END], nodes[ends], ends)
            # Of equal length the better total is the better score: no more than n_best matter.
            best = best_of(totals[ends] + own[ends, END], request.n_best)
            leaves += [ended[i] for i in best]

            allowed[:, END] = FORBIDDEN
            rows, tokens = (allowed > FORBIDDEN).nonzero(as_tuple=True)
            grown = history.add(tokens, own[rows, tokens], nodes[rows], rows)
            nodes = torch.arange(grown.start, grown.stop, device=device)
            totals = totals[rows] + own[rows, tokens]
            written = torch.cat([written[rows], tokens.unsqueeze(1)], dim=1)
            if len(rows) == 0:
                break
            state = step.state.select(rows)

        leaves += [grown[i] for i in best_of(totals, request.n_best)]
        return history.best(leaves, 0, self.length_exponent, request.n_best)

    def _check_size(self, vocabulary: int, request: Request) -> None:
        """Refuse a tree that is too large to be looked at whole."""
        words = vocabulary - len(self.rules.never) - 1  # END is no word
        [limit], [prefix] = request.max_lengths, request.prefixes or [()]
        free = limit - len(prefix)
        if words**free > self.max_sequences:
            raise ConfigError(
                f"decoding: exhaustive search over {words} words and {free} steps would look at "
                f"{words}^{free} sequences, more than max_sequences = {self.max_sequences:,}; "
                'lower max_length, or use kind = "beam"'
            )


def best_of(totals: Tensor, count: int) -> list[int]:
    """The places of the `count` largest, or of all if there are fewer."""
    return totals.topk(min(count, len(totals))).indices.tolist()


def everything(allowed: Tensor, totals: Tensor, n_best: int, last: bool) -> Outcome:
    """For a recorder: all that is allowed (R, V) after rows of these totals (R,) ends or goes on."""
    rows, tokens = (allowed > FORBIDDEN).nonzero(as_tuple=True)
    keys = list(zip(rows.tolist(), tokens.tolist(), strict=True))
    grown = totals[rows] + allowed[rows, tokens]

    def best_first(which: Tensor) -> list[Key]:
        chosen = [keys[i] for i in which.nonzero().squeeze(1).tolist()]
        return list(dict.fromkeys([chosen[i] for i in best_of(grown[which], n_best)] + chosen))

    going = best_first(tokens != END)
    own = allowed[rows, tokens].tolist()
    return Outcome(
        compared=dict(zip(keys, own, strict=True)),
        ended=best_first(tokens == END),
        going=going,
        # The rows of the next step stand in the order of their keys.
        rows=[] if last else sorted(going),
    )


def only_request(request: Request, source: int) -> Request:
    """What is asked for one source of the batch."""
    return Request(
        max_lengths=[request.max_lengths[source]],
        prefixes=None if request.prefixes is None else [request.prefixes[source]],
        n_best=request.n_best,
        keep_attention=request.keep_attention,
        recorder=request.recorder,
    )
