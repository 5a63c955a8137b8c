"""Saying what is wanted of a text, where a run has learned several things: tags put before texts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from seqloom.config.problems import did_you_mean
from seqloom.config.run import RunConfig
from seqloom.config.tags import asked_for, tags_of
from seqloom.config.task import TranslationConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.runs.prediction import Prediction
from seqloom.text.tags import Tags

SHOWN = 5


@dataclass(frozen=True)
class Directions:
    """What a run can be asked for.

    tags:   one of them must stand before every text; none: there is nothing to choose
    inside: a tag is part of what is read, and not only of what is put out
    """

    run: str
    tags: tuple[str, ...]
    inside: bool

    @classmethod
    def of(cls, run: str, config: RunConfig) -> "Directions":
        task = config.task
        inside = isinstance(task, TranslationConfig) and task.tag_side == "source"
        return cls(run, tags_of(config.data), inside)

    @property
    def known(self) -> str:
        return ", ".join(asked_for(tag) for tag in self.tags)

    def path(self, to: str | Sequence[str] | None) -> list[str | None]:
        """The tag of each translation on the way to the target; None: as the texts say themselves."""
        if to is None:
            return [None]
        return [self._tag(one) for one in ([to] if isinstance(to, str) else to)]

    def _tag(self, wanted: str) -> str:
        for tag in self.tags:
            if wanted in (tag, asked_for(tag)):
                return tag
        if not self.tags:
            raise ConfigError(
                f"{self.run}: translates in one way only, so there is nothing to choose; leave out "
                f"--to {wanted} (to= in Python)"
            )
        near = did_you_mean(wanted, [asked_for(tag) for tag in self.tags])
        hint = f"did you mean '{near}'? " if near else ""
        raise ConfigError(
            f"{self.run}: cannot translate to '{wanted}'; {hint}It has learned: {self.known}"
        )

    def put(self, texts: Sequence[str], tag: str | None, first: int = 0) -> list[str]:
        """Texts with the tag before each; None: every text must begin with one. Blank stays blank.

        first: the number of the first text, for errors
        """
        if not self.tags:
            return list(texts)
        begins = [bool(Tags(self.tags).first(text.strip())[0]) for text in texts]
        if tag is None:
            bare = [n for n, text in enumerate(texts) if text.strip() and not begins[n]]
            if bare:
                raise DataError(
                    f"{self.run}: has learned several languages, and nothing says which is wanted "
                    f"in {_lines(bare, first)}; choose one by --to (to= in Python), or begin the "
                    f"line with its tag, such as {self.tags[0]}. There are: {self.known}"
                )
            return list(texts)
        twice = [n for n in range(len(texts)) if begins[n]]
        if twice:
            raise DataError(
                f"--to {asked_for(tag)} was asked for, but there is a tag already in "
                f"{_lines(twice, first)}; leave out one of the two"
            )
        return [f"{tag} {text.strip()}" if text.strip() else text for text in texts]

    def shown(self, output: Prediction, tag: str | None) -> Prediction:
        """An output aligned with the text as it was given, before a tag was put there."""
        if tag is None or not self.inside:
            return output
        kept = tuple((source - 1, target) for source, target in output.alignment if source)
        return replace(output, alignment=kept)


def _lines(places: Sequence[int], first: int) -> str:
    numbers = ", ".join(str(first + place + 1) for place in places[:SHOWN])
    more = ", …" if len(places) > SHOWN else ""
    return f"line{'s' if len(places) > 1 else ''} {numbers}{more}"
