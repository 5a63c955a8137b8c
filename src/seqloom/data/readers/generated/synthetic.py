"""Generates examples of synthetic tasks: copy, reverse, sort, addition, letter case, questions."""

import random
import string
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, assert_never

from seqloom.config.schema.corpora import MAX_FACTS, BundledConfig, SyntheticConfig
from seqloom.data.example import Example
from seqloom.data.readers.bundled import read_bundled
from seqloom.data.readers.generated.sampling import generate
from seqloom.data.readers.reader import GeneratedReader

NAMES = ("Anna", "Ben", "Clara", "David", "Emma", "Felix", "Greta", "Hugo", "Ida", "Jonas")
THINGS = ("apples", "pears", "books", "coins", "cups", "dogs", "eggs", "keys", "pens", "shoes")
NUMBERS = range(1, MAX_FACTS + 1)


def generate_question(generator: random.Random, facts: int) -> tuple[str, str]:
    """Return a story of `facts` sentences with a question at its end, and the answer.

    No two sentences have the same person or the same number, so that every question has exactly one
    answer.
    """
    names = generator.sample(NAMES, facts)
    counts = generator.sample(NUMBERS, facts)
    things = [generator.choice(THINGS) for _ in names]
    story = [
        f"{name} has {count} {thing}."
        for name, count, thing in zip(names, counts, things, strict=True)
    ]
    question, answer = _ask(generator, names, counts, things)
    return " ".join([*story, question]), answer


def _ask(
    generator: random.Random, names: list[str], counts: list[int], things: list[str]
) -> tuple[str, str]:
    """Return a question about one sentence of the story, and the answer.

    In sentence i, the person names[i] has counts[i] things of the kind things[i].
    """
    person = generator.randrange(len(names))
    name, count, thing = names[person], counts[person], things[person]
    match generator.randrange(5):
        case 0:
            return f"How many {thing} does {name} have?", f"{name} has {count} {thing}."
        case 1:
            return f"What does {name} have?", f"{name} has {thing}."
        case 2:
            return f"Who has {count} {thing}?", f"{name} has {count} {thing}."
        case 3:
            return f"Does {name} have {count} {thing}?", f"Yes, {name} has {count} {thing}."
        case _:
            other = generator.choice([number for number in NUMBERS if number != count])
            return f"Does {name} have {other} {thing}?", f"No, {name} has {count} {thing}."


@dataclass(frozen=True)
class _Candidate:
    """A generated source and target. The hash of `key` decides to which split they belong."""

    key: str
    source: str
    target: str


class SyntheticReader(GeneratedReader[SyntheticConfig]):
    """Generates pairs of one split.

    No source occurs in two splits, even if the splits have different seeds and lengths.
    """

    def read(self) -> Iterator[Example]:
        corpus = self.corpus
        remedy = (
            f"there are too few different sources of length {corpus.min_length} to "
            f"{corpus.max_length}, so raise max_length (or symbols)"
        )
        candidates = generate(
            corpus.task, corpus.seed, corpus.examples, self.split, self._draw, remedy
        )
        for number, candidate in enumerate(candidates, start=1):
            target = candidate.target
            yield Example(candidate.source, target, (target,), f"synthetic {corpus.task}:{number}")

    def _draw(self, generator: random.Random) -> tuple[str, _Candidate] | None:
        candidate = _generate(self.corpus, generator)
        return None if candidate is None else (candidate.key, candidate)

    def identity(self) -> list[Any]:
        settings, *others = super().identity()
        if self.corpus.part == "start":  # without the setting, existing runs can be resumed
            del settings["part"]
        return [settings, *others]


def _generate(config: SyntheticConfig, generator: random.Random) -> _Candidate | None:
    """Generate one pair. Return None if the task is "case" and the drawn sentence is too short."""
    match config.task:
        case "copy" | "reverse" | "sort":
            source = _letters(config, generator)
            target = _transformed(config.task, source)
        case "addition":
            first, second = (_number(config, generator) for _ in range(2))
            source, target = f"{first}+{second}", str(first + second)
        case "case":
            return _case_candidate(config, generator)
        case "questions":
            facts = generator.randint(config.min_length, config.max_length)
            source, target = generate_question(generator, facts)
        case _:
            assert_never(config.task)
    return _Candidate(source, source, target)


def _letters(config: SyntheticConfig, generator: random.Random) -> str:
    length = generator.randint(config.min_length, config.max_length)
    return "".join(generator.choices(string.ascii_lowercase[: config.symbols], k=length))


def _transformed(task: str, source: str) -> str:
    if task == "copy":
        return source
    return source[::-1] if task == "reverse" else "".join(sorted(source))


def _number(config: SyntheticConfig, generator: random.Random) -> int:
    """Draw a number with min_length to max_length digits, without leading zeros."""
    digits = generator.randint(config.min_length, config.max_length)
    lowest = 0 if digits == 1 else 10 ** (digits - 1)
    return generator.randrange(lowest, 10**digits)


def _case_candidate(config: SyntheticConfig, generator: random.Random) -> _Candidate | None:
    """Generate a pair whose target is the source text in upper or in lower case.

    The text is a random English sentence. If `config.part` is "any", the text starts at a random
    word of the sentence. It is cut at a word boundary to at most `config.max_length` characters.
    The source is the tag <U> (upper case) or <L> (lower case), followed by the text. Return None if
    the text has fewer than `config.min_length` characters.

    The `key` of the pair, which determines its split, is the text without the tag. Both versions of
    a text are therefore in the same split.
    """
    sentence = generator.choice(_sentences())
    if config.part == "any":
        words = sentence.split(" ")
        sentence = " ".join(words[generator.randrange(len(words)) :])
    text = _cut(sentence, config.max_length)
    if len(text) < config.min_length:
        return None
    upper = generator.random() < 0.5
    return _Candidate(
        text, f"{'<U>' if upper else '<L>'} {text}", text.upper() if upper else text.lower()
    )


def _cut(sentence: str, length: int) -> str:
    if len(sentence) <= length:
        return sentence
    # Include one more character. If a word ends exactly at `length`, this is the space after it.
    return sentence[: length + 1].rpartition(" ")[0]


@cache
def _sentences() -> tuple[str, ...]:
    """Return all distinct bundled English training sentences."""
    french = read_bundled(BundledConfig(source="en", target="fr"), "train")
    german = read_bundled(BundledConfig(source="en", target="de"), "train")
    return tuple(dict.fromkeys(example.source for pair in (german, french) for example in pair))
