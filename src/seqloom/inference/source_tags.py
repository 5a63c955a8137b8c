"""Tags in source texts, such as <U> in "<U> I am a student", that tell the model what to do.

This module warns about missing tags. The language tags of multilingual runs are handled by
`TargetLanguages`, where a missing tag is an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.tags import training_tags
from seqloom.config.schema.text import Normalization
from seqloom.text.preprocessing import Tags

MAX_LISTED = 5
"""Maximum number of line numbers in the warning."""


@dataclass(frozen=True)
class SourceTags:
    """The tags of a run, such as <U> in "<U> I am a student". Each source text should contain one.

    tags:          the setting `text.tags`; empty if no tags are expected, because the run has no
                   source text or is multilingual
    normalization: the setting `text.normalization`
    """

    tags: tuple[str, ...]
    normalization: Normalization = "none"

    @classmethod
    def from_config(cls, config: RunConfig) -> "SourceTags":
        is_expected = config.has_text_source and not training_tags(config.data)
        return cls(config.text.tags if is_expected else (), config.text.normalization)

    def missing(self, texts: Sequence[str]) -> list[int]:
        """Return the indices of the texts that contain no tag. Blank texts need none."""
        if not self.tags:
            return []
        tags = Tags(self.tags, self.normalization)
        return [
            index
            for index, text in enumerate(texts)
            if text.strip() and not any(is_tag for _, is_tag in tags.split(text))
        ]

    def warning(self, numbers: Sequence[int], total: int, unit: str = "line") -> str:
        """Return the warning about texts without a tag.

        numbers: the numbers of these texts, counted from 1
        total:   the number of all texts
        unit:    what a text is called, for example "line"
        """
        advice = (
            f"none of the tags of this run: {', '.join(self.tags)}. If the training texts have a "
            f"tag, add one, for example: {self.tags[0]} …"
        )
        if total == 1:
            return f"the {unit} has {advice}"
        listed = ", ".join(map(str, numbers[:MAX_LISTED]))
        more = ", …" if len(numbers) > MAX_LISTED else ""
        plural = "s" if len(numbers) > 1 else ""
        verb = "have" if len(numbers) > 1 else "has"
        return (
            f"{len(numbers):,} of {total:,} {unit}s ({unit}{plural} {listed}{more}) {verb} {advice}"
        )

    def warnings(self, texts: Sequence[str], unit: str) -> list[str]:
        """Return one warning if some of the texts have no tag, else an empty list."""
        missing = self.missing(texts)
        numbers = [index + 1 for index in missing]
        return [self.warning(numbers, len(texts), unit)] if missing else []
