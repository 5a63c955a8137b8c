"""Splits texts into segments, and converts the segments to model inputs.

A segment is a sentence, or a part of a sentence that is too long for the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from seqloom.config.schema.decoding import DecodingConfig
from seqloom.core.errors import DataError
from seqloom.core.garbage_collection import without_garbage_collection
from seqloom.decoding.rules import MAX_DEFAULT_LENGTH
from seqloom.inference.batching import input_tokens
from seqloom.inference.texts.required_phrases import required_phrases
from seqloom.models.seq2seq import Model
from seqloom.tasks.task import ModelInput
from seqloom.tasks.token_task import TokenTask
from seqloom.text.glossary import Glossary
from seqloom.text.preprocessing import Tags
from seqloom.text.protected_spans import ProtectedText, Span, find_spans, protect, unprotected
from seqloom.text.sentences import SegmentedText, single_segment, split_segments, split_text
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN

SEGMENT_INDEX_STEP = 2**40
"""Difference between the sample indices of two adjacent segments of a text. It is larger than any
number of texts, so that no two segments have the same random samples."""


@dataclass(frozen=True)
class PreparedSegment:
    """A segment of a text, ready for the model.

    A tag selects the target language, for example <2de>. If there is a tag, the model reads it with
    every segment, as the first source word or as the first target token. In the text, the tag is
    written only before the first segment, or not at all.

    A protected span, such as a URL, is copied to the output.

    before:       the white space before the segment
    source:       the segment as it is written in the text, including a tag before it
    start:        index in `PreparedText.text` of the first character of `read_source`, which is
                  `source` without the characters that `unread` counts
    written_tag:  the tag at the start of `source`, with the white space after it; or ""
    tag:          the tag that the model reads, with the white space after it; or ""
    hidden_words: number of words in `tag` if the model reads them as source words but the text does
                  not contain them; otherwise 0
    unread:       number of characters in `written_tag`, if the model reads the tag as a target
                  token and not as a part of the source; otherwise 0
    protected:    `source` without the tag, divided at its protected spans
    input:        the input of the model; None if there is nothing to translate
    unknown:      characters or words that the vocabulary does not contain
    sample_index: number that selects the random samples of the segment
    glossary:     phrases that the output must contain; None for no glossary
    """

    before: str
    source: str
    start: int
    written_tag: str
    tag: str
    hidden_words: int
    unread: int
    protected: ProtectedText
    input: ModelInput | None
    unknown: tuple[str, ...]
    sample_index: int
    glossary: Glossary | None = None

    @property
    def read_source(self) -> str:
        """`source`. If the model reads the language tag as a target token, the tag is removed."""
        return self.source[self.unread :]


@dataclass(frozen=True)
class PreparedText:
    """The segments of a text.

    text:         the text. If the model reads the language tag as a target token, the tag is
                  removed.
    after:        the white space after the last segment
    added_tag:    language tag that was added in front of the whole text; or ""
    keeps_spaces: True if the output keeps the white space at both ends of the text
    """

    text: str
    segments: tuple[PreparedSegment, ...]
    after: str
    added_tag: str
    keeps_spaces: bool

    @property
    def segmented(self) -> SegmentedText:
        return SegmentedText.of([(each.before, each.source) for each in self.segments], self.after)


@dataclass(frozen=True)
class Preparation:
    """Splits texts into segments and tokenises them.

    task:         tokenises the segments
    max_tokens:   maximum number of source tokens of a segment, including END
    split:        True if texts are split; if False, each text is one segment
    pass_through: True if protected spans, such as URLs, are copied to the output
    tag:          target language tag that is put in front of each segment. If it is None, the tags
                  at the start of a text are repeated in front of each of its segments.
    prefixes:     for each text, the words that its output starts with; None for no prefixes. A text
                  with a prefix is not split, and its spans are not protected.
    use_prefix:   False for a translation into a pivot language. The prefixes are in the final
                  language, so the pivot text does not start with them.
    first:        index of the first text, if the texts are a part of a longer list. Random sampling
                  depends on it.
    glossary:     phrases that outputs must contain; None for no glossary
    """

    task: TokenTask
    max_tokens: int
    split: bool
    pass_through: bool
    tag: str | None = None
    prefixes: Sequence[str] | None = None
    use_prefix: bool = True
    first: int = 0
    glossary: Glossary | None = None

    def prepare(self, texts: Sequence[str | SegmentedText]) -> tuple[PreparedText, ...]:
        """Split texts into segments and tokenise them.

        A `SegmentedText` already has segments. They are split only if they are too long.
        """
        if self.prefixes is not None and len(self.prefixes) != len(texts):
            raise DataError(
                f"got {len(texts):,} texts and {len(self.prefixes):,} prefixes. Give one prefix per "
                "text, empty where the output is not constrained"
            )
        with without_garbage_collection():
            return tuple(self._prepare_text(index, text) for index, text in enumerate(texts))

    def _prepare_text(self, index: int, source: str | SegmentedText) -> PreparedText:
        prefix = self.prefixes[index].strip() if self.prefixes else ""
        split, pass_through = self.split and not prefix, self.pass_through and not prefix
        text = source if isinstance(source, str) else source.text
        space, tag, rest = self._divide(text)

        def spans(part: str) -> Sequence[Span]:
            return find_spans(part, self.task.source_tokenizer) if pass_through else ()

        # Nearly every text has a single segment, which needs the results of `fits` again.
        protected_parts: dict[str, ProtectedText] = {}
        prepared_cores: dict[str, ModelInput] = {}

        def protect_part(part: str) -> ProtectedText:
            if part not in protected_parts:
                protected_parts[part] = (
                    protect(part, spans(part)) if pass_through else unprotected(part)
                )
            return protected_parts[part]

        def prepare_core(core: str) -> ModelInput:
            if core not in prepared_cores:
                prepared_cores[core] = self.task.prepare(tag + core)
            return prepared_cores[core]

        def fits(part: str) -> bool:
            core = protect_part(part).core
            return not core or input_tokens(prepare_core(core)) <= self.max_tokens

        if isinstance(source, SegmentedText):
            segmented = split_segments(source, fits, spans) if split else source
        else:
            segmented = split_text(rest, fits, spans) if split else single_segment(rest)
        if not segmented.segments and tag:  # a tag without a text
            segmented = SegmentedText.of([("", "")], rest)
        tag_is_source = self.task.tag_side == "source"
        written_tag = "" if self.tag else tag
        read_tag = written_tag if tag_is_source else ""
        segments = []
        start = len(space) + len(read_tag)
        for number, segment in enumerate(segmented.segments):
            start += len(segment.before)
            shown_tag, read = (written_tag, read_tag) if number == 0 else ("", "")
            protected = protect_part(segment.text)
            model_input = None
            # A tag without a text is an input, unless it would be copied.
            if protected.core or (shown_tag and not pass_through):
                model_input = prepare_core(protected.core)
                if prefix and self.use_prefix:
                    tokens = self._encode_prefix(prefix)
                    model_input = replace(model_input, prefix=(*model_input.prefix, *tokens))
                if self.glossary is not None:
                    phrases = required_phrases(self.task, self.glossary, protected.masked_core, tag)
                    model_input = replace(model_input, required_phrases=phrases)
            segments.append(
                PreparedSegment(
                    before=space + segment.before if number == 0 else segment.before,
                    source=shown_tag + segment.text,
                    start=start - len(read),
                    written_tag=shown_tag,
                    tag=tag,
                    hidden_words=len(tag.split()) if tag_is_source and not shown_tag else 0,
                    unread=0 if tag_is_source else len(shown_tag),
                    protected=protected,
                    input=model_input,
                    unknown=self._unknown(segment.text, protected, model_input),
                    sample_index=self.first + index + number * SEGMENT_INDEX_STEP,
                    glossary=self.glossary,
                )
            )
            start += len(segment.text)
        return PreparedText(
            text=space + read_tag + segmented.text,
            segments=tuple(segments),
            after=segmented.after,
            added_tag=tag if self.tag and tag_is_source else "",
            keeps_spaces=split,
        )

    def _encode_prefix(self, prefix: str) -> list[int]:
        ids = self.task.target_tokenizer.encode(prefix)
        # Only the tokenizer of an imported model reads such names as special tokens.
        if not {PAD, START, END}.isdisjoint(ids):
            raise DataError(
                f"the prefix {prefix!r} contains the name of a special token, such as </s>. Remove this name"
            )
        return ids

    def _divide(self, text: str) -> tuple[str, str, str]:
        """Divide a text into leading white space, its language tags such as <2de>, and the rest.

        If `self.tag` is not None, do not divide the text. Return "", this tag and the text.
        """
        if self.tag is not None:
            return "", f"{self.tag} ", text
        return divide_at_tags(self.task, text)

    def _unknown(
        self, text: str, protected: ProtectedText, model_input: ModelInput | None
    ) -> tuple[str, ...]:
        tokenizer = self.task.source_tokenizer
        is_known = (
            model_input is not None
            and UNKNOWN not in model_input.source_tokens
            and protected.core == text
        )
        if tokenizer is None or is_known:
            return ()
        return tuple(tokenizer.unknown(text))


def divide_at_tags(task: TokenTask, text: str) -> tuple[str, str, str]:
    """Divide a text into leading white space, language tags such as <2de>, and the rest.

    The tags are those at the start of the text, with the white space after each of them.
    """
    rest = text.lstrip()
    space = text[: len(text) - len(rest)]
    names = list(task.target_tokenizer.preprocessing.tags.names)
    if task.source_tokenizer is not None:
        names += task.source_tokenizer.preprocessing.tags.names
    if not names:
        return space, "", rest
    tags = Tags(names, task.target_tokenizer.preprocessing.normalization)
    after = rest
    while name := tags.first(after)[0]:
        after = after[_length_before_normalisation(after, name, tags) :].lstrip()
    return space, rest[: len(rest) - len(after)], after


def _length_before_normalisation(text: str, name: str, tags: Tags) -> int:
    """Return the number of characters of the tag `name` at the start of `text`.

    It can differ from len(name), because `name` is the tag after Unicode normalisation.
    """
    return next(end for end in range(1, len(text) + 1) if tags.first(text[:end])[0] == name)


def unknown_parts(task: TokenTask, text: str) -> tuple[str, ...]:
    """Return the characters or words of a source text that the vocabulary does not contain."""
    tokenizer = task.source_tokenizer
    return () if tokenizer is None else tuple(tokenizer.unknown(divide_at_tags(task, text)[2]))


def max_segment_tokens(decoding: DecodingConfig, model: Model) -> int:
    """Return the maximum number of source tokens of a segment, including END.

    This is 3/4 of the maximum output length, or the maximum source length of the model if that is
    less. With 3/4, an output can have a third more tokens than its source before it is cut.
    """
    output_limits = [decoding.max_length or MAX_DEFAULT_LENGTH, model.max_target_length]
    max_output = min(limit for limit in output_limits if limit is not None)
    max_source = model.max_source_length
    return max_output * 3 // 4 if max_source is None else min(max_source, max_output * 3 // 4)
