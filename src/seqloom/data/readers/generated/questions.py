"""Generates questions about a short story, and their answers.

    Anna has 3 apples. Ben has 5 pears. Does Ben have 7 pears?  ->  No, Ben has 5 pears.

The answer depends on the story, so a model has to find the sentence that the question is about.
"""

import random

from seqloom.config.schema.corpora import MAX_FACTS

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
