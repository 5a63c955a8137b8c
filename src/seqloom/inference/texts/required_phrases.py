"""Makes outputs contain the phrases that a glossary requires.

The model first generates an output y without any constraint. If y lacks a phrase, the phrase
replaces the word y_t that attends most to the source phrase. The search runs again, with y_1 ...
y_{t-1} and the phrase as its forced prefix. This repeats until the output contains every phrase as
often as required. A phrase that occurs too often is excluded after its last required occurrence.

A model without attention does not show which word to replace. In this case the phrase is tried in
front of each word of y. Greedy search completes each of these outputs, and the most probable one
gives the position of the phrase.

Every search algorithm supports forced prefixes, so this method works with all of them. An output
that already contains its phrases is not changed.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from weakref import WeakKeyDictionary

from torch import Tensor

from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import ExcludedTokens
from seqloom.tasks.task import ModelInput
from seqloom.tasks.token_task import TokenTask
from seqloom.text.glossary import (
    Glossary,
    RequiredPhrase,
    count_phrases,
    ends_word,
    find_phrases,
    is_boundary,
)
from seqloom.text.tokenizer import Tokenizer
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN

ROUNDS_PER_PHRASE = 4
"""Maximum number of searches for each required phrase of an input."""


class PhraseSearches(Protocol):
    """The searches of `PhraseForcer`."""

    def search(
        self, inputs: Sequence[ModelInput], indices: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """Repeat the first search with changed inputs.

        indices: for each input, its index in the list of all inputs
        """
        ...

    def attend(self, one: ModelInput, tokens: Sequence[int]) -> Tensor | None:
        """Return the attention weights (T, S) of T given output tokens of an input.

        None for a model without attention.
        """
        ...

    def complete(self, inputs: Sequence[ModelInput]) -> list[Hypothesis]:
        """Complete the prefixes of inputs with greedy search.

        The log-probabilities of the results include those of the prefixes.
        """
        ...


def required_phrases(
    task: TokenTask, glossary: Glossary | None, text: str, tag: str
) -> tuple[RequiredPhrase, ...]:
    """Return the phrases that a glossary requires in the output for a text.

    Each phrase is written as the tokenizer would decode it, for example in lower case. A phrase
    that the tokenizer cannot encode is not changed.

    tag: language tag that the model reads in front of the text; "" if there is none
    """
    tag_words = len(tag.split()) if task.tag_side == "source" else 0
    tokenizer = task.target_tokenizer
    return tuple(
        RequiredPhrase(
            phrase.text
            if phrase_tokens(phrase.text, tokenizer) is None
            else _round_trip(phrase.text, tokenizer),
            tag_words + phrase.first_word,
            tag_words + phrase.last_word,
        )
        for phrase in (() if glossary is None else glossary.required(text))
    )


def phrase_tokens(phrase: str, tokenizer: Tokenizer) -> tuple[int, ...] | None:
    """Return the tokens of a phrase; None if the tokenizer cannot encode it."""
    tokens = tokenizer.encode(phrase)
    is_known = {PAD, START, END, UNKNOWN}.isdisjoint(tokens)
    return tuple(tokens) if is_known and _round_trip(phrase, tokenizer) else None


def _round_trip(phrase: str, tokenizer: Tokenizer) -> str:
    return tokenizer.decode(tokenizer.encode(phrase)).strip()


def required_counts(one: ModelInput) -> Counter[str]:
    """Return each required phrase of an input, and how often the output must contain it."""
    return Counter(phrase.text for phrase in one.required_phrases)


@dataclass(frozen=True)
class PhraseForcer:
    """Repeats the search for inputs whose output lacks a required phrase or contains it too often."""

    task: TokenTask
    searches: PhraseSearches

    @property
    def tokenizer(self) -> Tokenizer:
        return self.task.target_tokenizer

    def force(
        self,
        inputs: Sequence[ModelInput],
        hypotheses: Sequence[list[Hypothesis]],
        limits: Sequence[int],
    ) -> list[list[Hypothesis]]:
        """For each input, return hypotheses that contain its required phrases.

        If repeated searches do not produce a phrase, the result of the last search is returned. The
        caller must therefore check whether the texts contain all phrases.

        hypotheses: results of the search without constraints
        limits:     maximum number of output tokens of each input, END included
        """
        results, current = list(hypotheses), list(inputs)
        most = max((len(one.required_phrases) for one in inputs), default=0)
        for _ in range(ROUNDS_PER_PHRASE * most):
            changed = {}
            for index, (one, found) in enumerate(zip(current, results, strict=True)):
                constrained = self._constrain(one, found, limits[index])
                if constrained is not None:
                    changed[index] = constrained
            if not changed:
                break
            again = self.searches.search(list(changed.values()), list(changed))
            for (index, constrained), found in zip(changed.items(), again, strict=True):
                current[index], results[index] = constrained, found
        return results

    def _constrain(
        self, one: ModelInput, found: Sequence[Hypothesis], limit: int
    ) -> ModelInput | None:
        """Return the input for the next search, changed so that a wrong hypothesis is corrected.

        A hypothesis is wrong if it lacks a required phrase or contains it too often. The changed
        input has a longer prefix or excludes more tokens. This corrects the earliest error of the
        first wrong hypothesis for which a correction is possible.

        Returns None if no hypothesis is wrong, or if no correction is possible.
        """
        for hypothesis in found:
            corrections = [
                *self._excess(one, hypothesis.tokens),
                *self._missing(one, hypothesis.tokens, limit),
            ]
            if corrections:
                return min(corrections, key=lambda each: each[0])[1]
        return None

    def _decode(self, one: ModelInput, tokens: Sequence[int]) -> str:
        return self.tokenizer.decode(tokens[one.hidden_prefix :])

    def _excess(self, one: ModelInput, tokens: tuple[int, ...]) -> list[tuple[int, ModelInput]]:
        """Return how to correct an output that contains a phrase more often than required.

        The list contains one pair for the first surplus occurrence of a phrase: its position in
        the output, and a new input with which the search avoids it. The list is empty if there is
        no surplus occurrence, or if the search cannot avoid it.
        """
        remaining = required_counts(one)
        ends = [len(self._decode(one, tokens[:count])) for count in range(len(tokens) + 1)]
        for start, end, phrase in find_phrases(self._decode(one, tokens), list(remaining)):
            remaining[phrase] -= 1
            if remaining[phrase] >= 0:
                continue
            first = max(count for count, length in enumerate(ends) if length <= start)
            last = min(count for count, length in enumerate(ends) if length >= end)
            prefix = tokens[: max(first, len(one.prefix))]
            excluded = one.excluded or ExcludedTokens()
            if tokens[first:last] in excluded.sequences:
                return []  # the rules leave no other token
            kept = excluded.after_prefix if len(prefix) == len(one.prefix) else frozenset()
            sequences = (*excluded.sequences, tokens[first:last])
            new = replace(one, prefix=prefix, excluded=ExcludedTokens(sequences, kept))
            return [(first, new)]
        return []

    def _missing(
        self, one: ModelInput, tokens: tuple[int, ...], limit: int
    ) -> list[tuple[int, ModelInput]]:
        """Return a correction for each phrase that the output lacks.

        A correction is a pair: the position in the output where the phrase fits best, and a new
        input that forces the phrase there. Phrases that fit nowhere are left out.
        """
        required = required_counts(one)
        missing = required - count_phrases(self._decode(one, tokens), required)
        if not missing:
            return []
        open_phrases = required - count_phrases(self._decode(one, one.prefix), required)
        needed = sum(self._length(phrase) * count for phrase, count in open_phrases.items())
        attention = self.searches.attend(one, tokens) if tokens else None
        corrections = []
        for phrase in missing:
            candidates = [
                (at, replace(one, prefix=prefix, excluded=self._excluded_after(one, phrase)))
                for at in self._word_starts(one, tokens)
                if at >= len(one.prefix)
                and UNKNOWN not in (prefix := self._extended(one, tokens[:at], phrase))
                and len(prefix) + needed - self._length(phrase) < limit
            ]
            if candidates:
                weights = self._weights(one, tokens, phrase, attention, candidates)
                corrections.append(candidates[weights.index(max(weights))])
        return corrections

    def _weights(
        self,
        one: ModelInput,
        tokens: tuple[int, ...],
        phrase: str,
        attention: Tensor | None,
        candidates: Sequence[tuple[int, ModelInput]],
    ) -> list[float]:
        """Return a weight for each position where a phrase can be inserted. Larger is better.

        If `attention` (T, S) is given, the weight says how much the output word at this position
        attends to the source words that require the phrase. Otherwise, greedy search completes
        the output after the phrase, and the weight is the log-probability of this output.

        candidates: for each position: the position, and an input that forces the phrase there
        """
        if attention is None:
            completions = self.searches.complete([candidate for _, candidate in candidates])
            return [completion.log_probability for completion in completions]
        assert self.task.source_tokenizer is not None
        words = self.task.source_tokenizer.word_of(one.source_tokens)
        columns = [
            column
            for column, word in enumerate(words)
            for each in one.required_phrases
            if each.text == phrase and each.first_word <= word <= each.last_word
        ]
        weights = attention[:, columns].sum(dim=1).tolist()  # (T,)
        starts = self._word_starts(one, tokens)
        end_of = dict(zip(starts, [*starts[1:], len(tokens)], strict=True))
        return [max(weights[at : end_of[at]], default=0.0) for at, _ in candidates]

    def _excluded_after(self, one: ModelInput, phrase: str) -> ExcludedTokens:
        """Return what the search must not generate after a forced prefix that ends with `phrase`.

        - The token sequences that the input already excludes.
        - Longer required phrases that start with `phrase`.
        - Directly after the prefix: tokens that continue the last word of `phrase`.
        """
        sequences = () if one.excluded is None else one.excluded.sequences
        longer = [
            tuple(self.tokenizer.encode(other))
            for other in required_counts(one)
            if other != phrase and other.startswith(phrase)
        ]
        continuing = word_continuations(self.tokenizer) if ends_word(phrase) else frozenset()
        return ExcludedTokens(tuple(dict.fromkeys((*sequences, *longer))), continuing)

    def _word_starts(self, one: ModelInput, tokens: Sequence[int]) -> list[int]:
        """Return the position of each token that starts a word.

        The last entry is the number of tokens, because a new word can also follow the last token.
        """
        hidden = one.hidden_prefix
        words = self.tokenizer.word_of(tokens[hidden:])
        starts = [
            hidden + index
            for index, word in enumerate(words)
            if word >= 0 and (index == 0 or words[index - 1] != word)
        ]
        return [*starts, len(tokens)]

    def _extended(self, one: ModelInput, tokens: tuple[int, ...], phrase: str) -> tuple[int, ...]:
        """Return `tokens`, followed by a space if needed, and then the tokens of a phrase."""
        is_start = len(tokens) <= one.hidden_prefix
        separator = () if is_start else self._separator(phrase)
        return (*tokens, *separator, *self.tokenizer.encode(phrase))

    def _separator(self, phrase: str) -> tuple[int, ...]:
        """Return the tokens that encode the space before a phrase.

        The result is empty for most tokenizers, which have no token for a space.
        """
        tokens = self.tokenizer.encode(phrase)
        twice = self.tokenizer.encode(f"{phrase} {phrase}")
        return tuple(twice[len(tokens) : len(twice) - len(tokens)])

    def _length(self, phrase: str) -> int:
        """Return the number of tokens that a phrase adds to an output, with the space before it."""
        return len(self._separator(phrase)) + len(self.tokenizer.encode(phrase))


_CONTINUATIONS: WeakKeyDictionary[Tokenizer, frozenset[int]] = WeakKeyDictionary()
"""Cache of the results of `word_continuations`. For a large vocabulary, computing one takes about a
second."""


def word_continuations(tokenizer: Tokenizer) -> frozenset[int]:
    """Return the tokens that continue the word before them."""
    if tokenizer not in _CONTINUATIONS:
        tokens = range(UNKNOWN + 1, tokenizer.size)
        words = (token for token in tokens if ends_word(tokenizer.decode([token])))
        word = next(words, UNKNOWN)
        length = len(tokenizer.decode([word]))
        _CONTINUATIONS[tokenizer] = frozenset(
            token for token in tokens if not is_boundary(tokenizer.decode([word, token]), length)
        )
    return _CONTINUATIONS[tokenizer]
