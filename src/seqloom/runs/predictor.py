"""Predictor: texts in, predictions out. Batched inside, in order outside."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

import numpy as np
import torch

from seqloom.config.decoding import DecodingConfig, MinimumBayesRiskConfig, SearchConfig
from seqloom.core.errors import DataError
from seqloom.core.sequences import Images, Source
from seqloom.data.collate import pad_ids
from seqloom.decoding.beam import Beam
from seqloom.decoding.build import build_search
from seqloom.decoding.captured import fastest
from seqloom.decoding.compiled import Compiled
from seqloom.decoding.forced import force
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import Request
from seqloom.models.interface import Memory
from seqloom.models.seq2seq import Model
from seqloom.runs.asking import Asked, Askers
from seqloom.runs.budget import LAST, batch_tokens, hypotheses_of, size_of, together
from seqloom.runs.fitting import as_it_fits, halved
from seqloom.runs.heads import ALL_HEADS, HeadChoice, Keeping
from seqloom.runs.limits import first_line, output_limit, refuse_over, without_end
from seqloom.runs.prediction import Prediction, present
from seqloom.runs.risk import by_expected_utility, searches_for
from seqloom.runs.wish import WORDS_ALONE, WORDS_LOOKED_AT, Probabilities, Wish
from seqloom.tasks.task import ModelInput
from seqloom.tasks.token_task import TokenTask
from seqloom.text.running import encode_target, newline_of
from seqloom.text.vocabulary import END

Advance = Callable[[int, int], None]
"""Told how many inputs of how many are done; may raise to stop."""


class Engine(Protocol):
    """Searches instead of torch, where it can."""

    def search(
        self,
        batch: Sequence[ModelInput],
        request: Request,
        decoding: SearchConfig,
        probabilities: Probabilities,
    ) -> list[list[Hypothesis] | None]:
        """For each source what our own search would find; None where that is not certain."""
        ...


@dataclass(frozen=True)
class Predictor:
    """engine: asked first; what it leaves open is searched by torch. None: all is.
    choice:   the heads that align words
    compiled: an input alone is searched by compiled code, if nobody watches
    """

    model: Model
    task: TokenTask
    device: torch.device
    engine: Engine | None = None
    choice: HeadChoice = ALL_HEADS
    compiled: bool = False

    def predict(
        self,
        texts: Sequence[str],
        decoding: DecodingConfig,
        wish: Wish = WORDS_ALONE,
        advance: Advance | None = None,
    ) -> list[list[Prediction]]:
        """The outputs of each text. A blank line in is a blank line out."""
        prepared = self._prepared(texts, wish.prefixes)
        self.refuse_too_long(prepared, wish.first)
        wanted = [i for i, one in enumerate(prepared) if one.source is None or texts[i].strip()]
        blank = len(texts) - len(wanted)

        def counted(done: int, _: int) -> None:
            if advance is not None:
                advance(blank + done, len(texts))

        numbers = [wish.first + index for index in wanted]
        asked = [prepared[index] for index in wanted]
        found = self.answer(asked, decoding, wish, Askers(numbers, counted))
        results: list[list[Prediction]] = [[Prediction("", 0.0)] for _ in texts]
        for index, outputs in zip(wanted, found, strict=True):
            results[index] = outputs
        return results

    def answer(
        self, prepared: Sequence[ModelInput], decoding: DecodingConfig, wish: Wish, askers: Askers
    ) -> list[list[Prediction]]:
        """The outputs of inputs that were prepared, and found to fit, one by one."""
        if not isinstance(decoding, MinimumBayesRiskConfig):
            return self._searched(prepared, decoding, wish, askers)
        found = [
            self._searched(prepared, search, replace(wish, n_best=count), askers)
            for search, count in searches_for(decoding)
        ]
        return [
            by_expected_utility([one for part in parts for one in part], decoding)[: wish.n_best]
            for parts in zip(*found, strict=True)
        ]

    def _searched(
        self, prepared: Sequence[ModelInput], decoding: SearchConfig, wish: Wish, askers: Askers
    ) -> list[list[Prediction]]:
        """What one search finds for each input."""
        results: list[list[Prediction]] = [[] for _ in prepared]
        newline = newline_of(self.task.target_tokenizer)
        how = decoding if newline is None else without_end(decoding)
        keeping = Keeping(wish.heads, self.choice)
        done = 0
        # Another engine follows hypotheses in a memory of its own, and a few take it less time.
        followed, last = (hypotheses_of(decoding), LAST) if self.engine is None else (1, 1)
        for indices in self._batches(prepared, followed, last):
            batch = [prepared[index] for index in indices]
            request = Request(
                max_lengths=[output_limit(one, decoding, self.model, newline) for one in batch],
                prefixes=[one.prefix for one in batch],
                n_best=wish.n_best,
                keep_attention=keeping.keep if wish.attention else None,
                indices=[askers.numbers[index] for index in indices],
            )
            found = self._quickly(batch, request, decoding, wish.probabilities)
            left = [place for place, hypotheses in enumerate(found) if hypotheses is None]
            if left:
                asked = Asked(batch, indices, request).only(left)
                parts = as_it_fits(
                    lambda part: self._by_torch(part, how, askers), asked, Asked.halves
                )
                for place, searched in zip(left, chain.from_iterable(parts), strict=True):
                    found[place] = searched
            for index, one, hypotheses in zip(indices, batch, found, strict=True):
                results[index] = self._presented(one, hypotheses or (), decoding, keeping)
            done += len(indices)
            askers.advance(done, len(prepared))
        return results

    def _by_torch(self, asked: Asked, how: SearchConfig, askers: Askers) -> list[list[Hypothesis]]:
        decoder = askers.attended(self.model.decoder, asked.inputs, asked.request.max_lengths)
        search = build_search(how)
        if decoder is self.model.decoder:
            if self.compiled and isinstance(search, Greedy | Beam):
                search = Compiled(search)
            search = fastest(search, self.device)
        with torch.inference_mode():
            return search(decoder, self.encode(asked.batch), asked.request)

    def _presented(
        self,
        one: ModelInput,
        hypotheses: Sequence[Hypothesis],
        decoding: SearchConfig,
        keeping: Keeping,
    ) -> list[Prediction]:
        newline, exponent = newline_of(self.task.target_tokenizer), decoding.length_exponent
        if newline is not None and decoding.one_line:
            hypotheses = [first_line(each, one, newline, exponent) for each in hypotheses]
        return [present(self.task, one, each, keeping) for each in hypotheses]

    def _quickly(
        self,
        batch: Sequence[ModelInput],
        request: Request,
        decoding: SearchConfig,
        probabilities: Probabilities,
    ) -> list[list[Hypothesis] | None]:
        """What the engine finds for each source; None where torch must search."""
        if self.engine is None:
            return [None] * len(batch)
        return self.engine.search(batch, request, decoding, probabilities)

    def _prepared(self, texts: Sequence[str], prefixes: Sequence[str] | None) -> list[ModelInput]:
        prepared = [self.task.prepare(text) for text in texts]
        if prefixes is None:
            return prepared
        if len(prefixes) != len(texts):
            raise DataError(
                f"{len(texts):,} texts and {len(prefixes):,} prefixes cannot be paired; give as "
                "many of one as of the other, blank ones where an output may begin as it likes"
            )
        encode = self.task.target_tokenizer.encode
        return [
            replace(one, prefix=(*one.prefix, *encode(prefix.strip())))
            for one, prefix in zip(prepared, prefixes, strict=True)
        ]

    def score(
        self,
        texts: Sequence[str],
        targets: Sequence[str],
        wish: Wish = WORDS_LOOKED_AT,
        length_exponent: float = 1.0,
    ) -> list[Prediction]:
        """The model's own probabilities of given targets; a wish for attention and heads counts."""
        keeping = Keeping(wish.heads, self.choice)
        prepared = [self.task.prepare(text) for text in texts]
        tokenizer = self.task.target_tokenizer
        answers = [
            (*one.prefix, *encode_target(tokenizer, target))
            for one, target in zip(prepared, targets, strict=True)
        ]
        ends = newline_of(tokenizer) is None
        if not (ends or all(answers)):
            raise DataError("nothing cannot be scored: running text has no END; give some text")
        self.refuse_too_long(prepared)
        self.refuse_long_answers(answers)

        def scored(indices: list[int]) -> list[Hypothesis]:
            with torch.inference_mode():
                return force(
                    self.model.decoder,
                    self.encode([prepared[index] for index in indices]),
                    [answers[index] for index in indices],
                    keeping.keep if wish.attention else None,
                    length_exponent,
                    ends,
                )

        results: dict[int, Hypothesis] = {}
        for indices in self._batches(prepared):
            parts = as_it_fits(scored, indices, halved)
            results.update(zip(indices, chain.from_iterable(parts), strict=True))
        return [present(self.task, one, results[i], keeping) for i, one in enumerate(prepared)]

    def _batches(
        self, prepared: Sequence[ModelInput], hypotheses: int = 1, last: int = LAST
    ) -> Iterator[list[int]]:
        """What is searched together, each followed by so many hypotheses."""
        budget = batch_tokens(self.device) // hypotheses
        return together(list(map(size_of, prepared)), budget, last)

    def encode(self, batch: Sequence[ModelInput]) -> Memory:
        """What the model has read, once for all that is asked about it."""
        source: Source | None = None
        if batch[0].image is not None:
            looks = [one.image for one in batch if one.image is not None]
            source = Images(torch.from_numpy(np.stack(looks))).to(self.device)
        elif batch[0].source is not None:
            rows = [np.array(one.source or (), dtype=np.int32) for one in batch]
            source = pad_ids(rows, last=END).to(self.device)
        return self.model.encode(source, len(batch))

    def refuse_too_long(self, prepared: Sequence[ModelInput], first: int = 0) -> None:
        """All that is read, and every given beginning, must fit into the model's positions."""
        limit = self.model.max_source_length
        refuse_over(
            limit,
            [len(one.source or ()) + 1 for one in prepared],
            first,
            f"the model reads at most {limit} tokens a line (END included), because its "
            "positions end there; split these lines, or train with a larger "
            "model.encoder.positions.max_length:",
        )
        self._refuse_long_outputs([one.prefix for one in prepared], first, "beginnings")

    def refuse_long_answers(self, answers: Sequence[Sequence[int]]) -> None:
        """All that is to be scored must fit into the model's positions."""
        self._refuse_long_outputs(answers, 0, "targets")

    def _refuse_long_outputs(self, some: Sequence[Sequence[int]], first: int, what: str) -> None:
        limit = self.model.max_target_length
        refuse_over(
            limit,
            [len(one) + 1 for one in some],
            first,
            f"the model puts out at most {limit} tokens (END included), because its positions "
            f"end there; shorten these {what}, or train with a larger "
            "model.decoder.positions.max_length:",
        )
