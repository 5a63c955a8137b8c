"""Converts outputs and references to the same Unicode form before they are scored."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from seqloom.config.schema.text import Normalization
from seqloom.data.example import Example
from seqloom.metrics.score import Score
from seqloom.text.preprocessing import Tags


@dataclass(frozen=True)
class ScoredTexts:
    """Outputs and examples in the Unicode normalisation form of the target tokenizer.

    Unicode can encode a character such as "é" in several ways. In a normalisation form, each
    character is encoded in only one way.

    form:    the Unicode normalisation form; "none" if texts are not normalised
    changed: True if an output, a reference or a source was not in this form
    """

    outputs: list[str]
    examples: list[Example]
    form: Normalization
    changed: bool

    @property
    def references(self) -> list[tuple[str, ...]]:
        return [example.references for example in self.examples]

    def sign(self, signature: str | None) -> str | None:
        """Append the Unicode form to the signature of a score, if normalisation changed a text.

        Otherwise, return the signature unchanged.

        signature: text that says how the score was computed (options and versions); None if
                   there is only one way to compute it
        """
        if not self.changed:
            return signature
        return "|".join(part for part in (signature, f"unicode:{self.form}") if part)

    def sign_scores(self, scores: Sequence[Score]) -> list[Score]:
        return [replace(score, signature=self.sign(score.signature)) for score in scores]


def normalise_texts(
    outputs: Sequence[str], examples: Sequence[Example], tags: Tags, sources: bool
) -> ScoredTexts:
    """Convert outputs and references to one Unicode form. If `sources`, also convert the sources.

    tags: the tags of the target tokenizer, such as <2de>. This object also has its Unicode form
    """
    normalised_outputs = [tags.normalise(output) for output in outputs]
    normalised_examples = [
        replace(
            example,
            source=tags.normalise(example.source) if sources else example.source,
            references=tuple(tags.normalise(reference) for reference in example.references),
        )
        for example in examples
    ]
    changed = normalised_outputs != list(outputs) or normalised_examples != list(examples)
    return ScoredTexts(normalised_outputs, normalised_examples, tags.normalization, changed)
