"""Several languages in one recipe, and the tags that tell them apart."""

import re
from collections import Counter
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from seqloom.config.section import Section

LANGUAGE = "{language}"
PAIR = "{pair}"


def tag_for(language: str) -> str:
    """What asks for a language: de -> <2de>"""
    return f"<2{language}>"


class TaggedConfig(Section):
    """What pairs of texts can say about themselves where one model learns several kinds of them."""

    tag: str | None = None
    """A token such as '<2de>' that says what is wanted of these sources. Left out: none."""
    name: str | None = None
    """What reports call these pairs, for example 'en-de'. Left out: by their tag."""


class LanguagesConfig(Section):
    """Files of several languages, and which of them are translated into which. Every pair is
    tagged with its target language: '<2de>' for German."""

    kind: Literal["languages"] = "languages"
    path: str
    """The file of a language, as 'train.{language}.gz'. Where every pair has files of its own,
    '{pair}' stands for its languages in alphabetical order: 'train.{pair}.{language}'."""
    pairs: Annotated[tuple[str, ...], Field(min_length=1)]
    """Source and target, as 'en-de'."""

    @model_validator(mode="after")
    def _readable(self) -> Self:
        problems = [
            f"pairs: '{pair}' is no pair of languages; it must look like 'en-de'"
            for pair in self.pairs
            if not re.fullmatch(r"[^\W_][^\s<>{}-]*-[^\W_][^\s<>{}-]*", pair)
        ]
        twice = [pair for pair, count in Counter(self.pairs).items() if count > 1]
        problems += [f"pairs: '{pair}' is given twice; leave one out" for pair in twice]
        strange = set(re.findall(r"{[^}]*}?", self.path)) - {LANGUAGE, PAIR}
        if strange or LANGUAGE not in self.path:
            problems.append(
                f"path: '{self.path}' must name the file of every language by '{LANGUAGE}', for "
                f"example 'train.{LANGUAGE}.gz'; beside it only '{PAIR}' may stand in braces"
            )
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def file_of(self, pair: str, language: str) -> str:
        """The file of one side of a pair."""
        both = "-".join(sorted(pair.split("-")))
        return self.path.replace(LANGUAGE, language).replace(PAIR, both)
