"""Exhaustive search: scores every possible output and returns the best ones.

It is used to check the results of other searches.
"""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from seqloom.core.errors import ConfigError
from seqloom.decoding.constraints import Constraints
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.rules import FORBIDDEN
from seqloom.decoding.search import ScoredSearch, SearchRequest, StepDecoder, log_softmax
from seqloom.decoding.token_tree import ROOT, TokenTree
from seqloom.decoding.tracer import CandidateKey, StepOutcome
from seqloom.models.interface import Memory
from seqloom.text.vocabulary import END, START


@dataclass(frozen=True)
class Exhaustive(ScoredSearch):
    """Scores every output of at most max_length tokens (END included), breadth first.

    With M words there are M^T sequences of length T, so this works only for small vocabularies and
    short outputs.

    max_sequences: maximum number of sequences; a search that would exceed it raises ConfigError

    `ScoredSearch` has the settings of the score and the rules.
    """

    max_sequences: int = 1_000_000

    @torch.inference_mode()
    def __call__(
        self, decoder: StepDecoder, memory: Memory, request: SearchRequest
    ) -> list[list[Hypothesis]]:
        """Return the n_best outputs per source.

        Finished outputs come before unfinished ones. Both groups are sorted by score, best first.
        """
        sources = memory.mask.shape[0]
        request.check(sources)
        return [
            self._search(decoder, memory.only(source), request.only([source]))
            for source in range(sources)
        ]

    def _search(
        self, decoder: StepDecoder, memory: Memory, request: SearchRequest
    ) -> list[Hypothesis]:
        """Return the n_best outputs of one source.

        The decoder computes one row per hypothesis. Every step extends every hypothesis by every
        allowed token.
        """
        device, [limit] = memory.mask.device, request.max_lengths
        constraints = Constraints(self.rules, request, device)
        tree = TokenTree(request.keep_attention, memory.mask)
        leaves: list[int] = []
        state = decoder.start(memory, limit)
        generated = torch.full((1, 1), START, device=device)  # (R, 1 + t)
        nodes = torch.full((1,), ROOT, device=device)
        totals = torch.zeros(1, device=device)
        tracer = request.tracer
        request.start_trace(self.describe("exhaustive"))

        for position in range(limit):
            step = decoder.step(generated[:, -1], state)
            tree.begin_step(step.attention, len(nodes))
            log_probabilities = log_softmax(step.logits)  # (R, V)
            if position == 0:
                self._check_size(log_probabilities.shape[1], request)
            allowed = log_probabilities.clone()
            constraints.forbid(allowed, generated, partial(torch.zeros_like, nodes))
            if tracer is not None:
                tracer.observe_log_probabilities(log_probabilities)
                is_last = position == limit - 1
                tracer.observe_outcome(step_outcome(allowed, totals, request.n_best, is_last))

            ending = (allowed[:, END] > FORBIDDEN).nonzero().squeeze(1)
            end_log_probabilities = log_probabilities[ending, END]
            end_nodes = tree.add(
                torch.full_like(ending, END), end_log_probabilities, nodes[ending], ending
            )
            # These outputs have the same length, so only the n_best with the largest totals can be
            # in the result.
            best = best_indices(totals[ending] + end_log_probabilities, request.n_best)
            leaves += [end_nodes[index] for index in best]

            allowed[:, END] = FORBIDDEN
            rows, tokens = (allowed > FORBIDDEN).nonzero(as_tuple=True)
            new_nodes = tree.add(tokens, log_probabilities[rows, tokens], nodes[rows], rows)
            nodes = torch.arange(new_nodes.start, new_nodes.stop, device=device)
            totals = totals[rows] + log_probabilities[rows, tokens]
            generated = torch.cat([generated[rows], tokens.unsqueeze(1)], dim=1)
            if len(rows) == 0:
                break
            state = step.state.select(rows)

        leaves += [new_nodes[index] for index in best_indices(totals, request.n_best)]
        return tree.best_hypotheses(leaves, 0, self.normalisation, request.n_best)

    def _check_size(self, vocabulary: int, request: SearchRequest) -> None:
        """Raise ConfigError if the number of sequences of maximum length exceeds `max_sequences`.

        Only sequences that start with the forced prefix are counted.
        """
        words = vocabulary - len(self.rules.excluded_tokens) - 1  # without END
        [limit], [prefix] = request.max_lengths, request.all_prefixes
        free_steps = limit - len(prefix)
        if words**free_steps > self.max_sequences:
            raise ConfigError(
                f"decoding: exhaustive search over {words} words and {free_steps} steps would "
                f"score {words}^{free_steps} sequences, more than max_sequences = "
                f'{self.max_sequences:,}; lower max_length, or use kind = "beam"'
            )


def best_indices(totals: Tensor, count: int) -> list[int]:
    """Return the indices of the `count` largest values, largest first. If there are fewer values,
    return all indices."""
    return totals.topk(min(count, len(totals))).indices.tolist()


def step_outcome(allowed: Tensor, totals: Tensor, n_best: int, is_last: bool) -> StepOutcome:
    """Describe one step of the search, for the trace of this search.

    A candidate is a hypothesis, extended by one allowed token. The result lists the candidates that
    end in END (`ended`) and all others (`continuing`). Exhaustive search keeps all of them. In each
    list, the `n_best` most probable candidates come first.

    allowed: (R, V) log-probability of each token in this step, -inf if it is forbidden
    totals:  (R,)   log-probability of each hypothesis before this step
    is_last: True if no step follows
    """
    rows, tokens = (allowed > FORBIDDEN).nonzero(as_tuple=True)
    keys = list(zip(rows.tolist(), tokens.tolist(), strict=True))
    new_totals = totals[rows] + allowed[rows, tokens]

    def best_first(mask: Tensor) -> list[CandidateKey]:
        chosen = [keys[index] for index in mask.nonzero().squeeze(1).tolist()]
        best = [chosen[index] for index in best_indices(new_totals[mask], n_best)]
        return list(dict.fromkeys(best + chosen))

    continuing = best_first(tokens != END)
    return StepOutcome(
        compared=dict(zip(keys, allowed[rows, tokens].tolist(), strict=True)),
        ended=best_first(tokens == END),
        continuing=continuing,
        # The rows of the next step are in the order of their candidate keys: row, then token.
        next_rows=[] if is_last else sorted(continuing),
    )
