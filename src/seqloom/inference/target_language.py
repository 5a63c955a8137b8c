"""Target languages of multilingual runs. A tag in front of each source text names the language."""

from collections.abc import Sequence
from dataclasses import dataclass

from seqloom.config.loading.error_messages import closest_match
from seqloom.config.schema.corpora import tag_display_name
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.tags import training_tags
from seqloom.config.schema.task import TranslationConfig
from seqloom.config.schema.text import Normalization
from seqloom.core.errors import ConfigError, DataError
from seqloom.inference.prediction import Prediction
from seqloom.text.preprocessing import Tags

MAX_LISTED_LINES = 5
"""Maximum number of line numbers that an error message lists."""


@dataclass(frozen=True)
class TargetLanguages:
    """The target languages of a run.

    run:              the run folder, for error messages
    tags:             the tags of the languages. Every source text must start with one of them.
                      Empty if the run translates in a single direction.
    tag_is_in_source: True if the model reads the tag as part of the source. If False, the tag is
                      removed from the source and the output is forced to start with it.
    normalization:    the setting `text.normalization`
    """

    run: str
    tags: tuple[str, ...]
    tag_is_in_source: bool
    normalization: Normalization = "none"

    @classmethod
    def from_config(cls, run: str, config: RunConfig) -> "TargetLanguages":
        task = config.task
        in_source = isinstance(task, TranslationConfig) and task.tag_side == "source"
        return cls(run, training_tags(config.data), in_source, config.text.normalization)

    @property
    def names(self) -> str:
        """The available languages, separated by commas."""
        return ", ".join(tag_display_name(tag) for tag in self.tags)

    def path(self, to: str | Sequence[str] | None) -> list[str | None]:
        """Return the tags of the pivot languages, if there are any, and of the target language.

        to: the target language, or a list: the pivot languages, then the target language. None if
            the texts already start with a tag; the result is then [None]
        """
        if to is None:
            return [None]
        return [self._tag(language) for language in ([to] if isinstance(to, str) else to)]

    def _tag(self, language: str) -> str:
        for tag in self.tags:
            if language in (tag, tag_display_name(tag)):
                return tag
        if not self.tags:
            raise ConfigError(
                f"{self.run}: this run has a single target language. Remove --to {language} (to= "
                "in Python)"
            )
        near = closest_match(language, [tag_display_name(tag) for tag in self.tags])
        hint = f"Did you mean '{near}'? " if near else ""
        raise ConfigError(
            f"{self.run}: cannot translate to '{language}'. {hint}Available: {self.names}"
        )

    def add_tag(self, texts: Sequence[str], tag: str | None, first: int = 0) -> list[str]:
        """Return the texts, with the language tag `tag` in front of each non-empty text.

        If the run has a single target language, or if `tag` is None, the texts are returned
        unchanged. Raises the errors of `check_tags`.
        """
        self.check_tags(texts, tag, first)
        if not self.tags or tag is None:
            return list(texts)
        return [f"{tag} {text.strip()}" if text.strip() else text for text in texts]

    def check_tags(self, texts: Sequence[str], tag: str | None, first: int = 0) -> None:
        """Raise a DataError for a run with several target languages

        - if `tag` is given and a text already starts with a tag, or
        - if `tag` is None and a non-empty text does not start with a tag.

        tag:   the tag to add, or None
        first: number of texts that precede these texts in a longer list. It is added to the line
               numbers in error messages.
        """
        if not self.tags:
            return
        tags = Tags(self.tags, self.normalization)
        has_tag = [bool(tags.first(text.strip())[0]) for text in texts]
        if tag is None:
            missing = [i for i, text in enumerate(texts) if text.strip() and not has_tag[i]]
            if missing:
                raise DataError(
                    f"{self.run}: this run has several target languages, and none is given for "
                    f"{_list_lines(missing, first)}. Choose one with --to (to= in Python), or "
                    f"start the line with its tag, such as {self.tags[0]}. Available: {self.names}"
                )
            return
        tagged = [i for i in range(len(texts)) if has_tag[i]]
        if tagged:
            raise DataError(
                f"--to {tag_display_name(tag)} is set, but there is already a tag in "
                f"{_list_lines(tagged, first)}. Remove --to, or remove the tag"
            )

    def without_tag(self, output: Prediction, tag: str | None) -> Prediction:
        """Return the output with a word alignment that leaves out the tag of the source.

        The tag, which `add_tag` put before the source, is source word 0. Links to it are removed,
        and the indices of the other source words are decreased by 1.
        """
        if tag is None or not self.tag_is_in_source:
            return output
        kept = tuple((source - 1, target) for source, target in output.alignment if source)
        return output.with_attention(alignment=kept)


def _list_lines(indices: Sequence[int], first: int) -> str:
    numbers = ", ".join(str(first + index + 1) for index in indices[:MAX_LISTED_LINES])
    more = ", …" if len(indices) > MAX_LISTED_LINES else ""
    return f"line{'s' if len(indices) > 1 else ''} {numbers}{more}"
