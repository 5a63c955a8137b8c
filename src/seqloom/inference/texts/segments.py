"""Builds the predictions for texts from the outputs of their segments.

`Run.predict` and the HTTP server both use this module and `preparation.py`, so they return the
same text.

The model first translates all segments. Protected spans, such as URLs, must be copied to the
output. A segment whose output lacks one of its spans is translated again without the spans:

    prepared = PreparedTexts(task, Preparation(…).prepare(texts))
    outputs = search(prepared.search_inputs)                               → TextOutputs.found
    repeated = search(inputs of the segments in TextOutputs.incomplete)    → TextOutputs.again
    predictions = TextOutputs.finish()

`Run` finishes each text as soon as it has the outputs of all of its segments (`TextOutputs`).
Nothing in this module needs the model.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from seqloom.data.modalities.text import TextInput
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.inference.batching import input_tokens
from seqloom.inference.options import PredictionOptions
from seqloom.inference.prediction import NO_ATTENTION, Prediction
from seqloom.inference.texts.input_reports import (
    OutputWarning,
    empty_warning,
    glossary_warning,
    number_warning,
    position_warning,
)
from seqloom.inference.texts.joining import (
    OutputSegment,
    WordMaps,
    join_outputs,
    word_starts,
    words_at,
)
from seqloom.inference.texts.preparation import PreparedSegment, PreparedText
from seqloom.inference.texts.protected_outputs import insert_missing_spans
from seqloom.inference.texts.required_phrases import (
    phrase_tokens,
    required_counts,
    required_phrases,
)
from seqloom.metrics.subword_merging import NO_WORD
from seqloom.tasks.task import ModelInput
from seqloom.tasks.token_task import TokenTask
from seqloom.text.glossary import count_phrases
from seqloom.text.protected_spans import missing_numbers, missing_spans
from seqloom.text.sentences import SegmentedText


@dataclass(frozen=True)
class SearchInputs:
    """The inputs of a search.

    sample_indices: one number per input. With sampling, it determines the random numbers that are
                    drawn for the input
    """

    inputs: list[ModelInput] = field(default_factory=list)
    sample_indices: list[int] = field(default_factory=list)


SegmentOutputs = list[list[Prediction]]
"""For each segment of a text, its outputs, best first."""


@dataclass(frozen=True)
class PreparedTexts:
    """Texts that are split into segments and tokenised."""

    task: TokenTask
    texts: tuple[PreparedText, ...]

    @property
    def search_inputs(self) -> SearchInputs:
        """The inputs of the segments that the model translates, of all texts in order."""
        segments = [each for text in self.texts for each in text.segments]
        return SearchInputs(
            [each.input for each in segments if each.input is not None],
            [each.sample_index for each in segments if each.input is not None],
        )

    @property
    def longest_inputs(self) -> list[ModelInput]:
        """For each text, the model input of its longest segment.

        The input is empty if the text has nothing to translate.
        """
        empty = ModelInput(TextInput(), ())
        return [
            max([each.input or empty for each in text.segments] or [empty], key=input_tokens)
            for text in self.texts
        ]


@dataclass
class TextOutputs:
    """The outputs for the segments of a text, and how they become the outputs of the text.

    found: for each segment that the model translates, by its index in the text: its outputs, best
           first
    again: for the segments whose outputs lack a protected span: the outputs for the segment without
           its protected spans
    hypotheses: for each segment that the model translates: its outputs before they became text
    """

    task: TokenTask
    text: PreparedText
    found: dict[int, list[Prediction]] = field(default_factory=dict)
    again: dict[int, list[Prediction]] = field(default_factory=dict)
    hypotheses: dict[int, list[Hypothesis]] = field(default_factory=dict)

    @cached_property
    def inputs(self) -> dict[int, ModelInput]:
        """The model input of each segment that the model translates, by the index of the segment."""
        segments = enumerate(self.text.segments)
        return {index: each.input for index, each in segments if each.input is not None}

    @property
    def incomplete(self) -> list[int]:
        """The indices of the segments to translate again, because an output lacks a span."""
        segments = self.text.segments
        return [
            index
            for index, found in self.found.items()
            if index not in self.again and lacks_spans(segments[index], found)
        ]

    def input_without_spans(self, index: int) -> ModelInput:
        """Return the model input of a segment without its protected spans."""
        segment = self.text.segments[index]
        text = segment.protected.without_inner()[0]
        phrases = required_phrases(self.task, segment.glossary, text, segment.tag)
        return replace(self.task.prepare(segment.tag + text), required_phrases=phrases)

    def by_segment(self) -> SegmentOutputs:
        """Return the outputs of each segment, with its protected spans and with warnings."""
        results = []
        for index, segment in enumerate(self.text.segments):
            if segment.input is None:
                results.append([_copy(segment, self.task)])
                continue
            again = self.again.get(index)
            results.append(
                [
                    _complete(
                        self.task,
                        segment,
                        output,
                        again[min(rank, len(again) - 1)] if again else None,
                    )
                    for rank, output in enumerate(self.found[index])
                ]
            )
        return results

    def finish(self, *, attention: bool = True) -> list[Prediction]:
        """Return the outputs of the text, best first.

        attention: if False, a text of several segments has no attention weights. The memory for
                   these weights grows with the square of the length of a text.
        """
        return join_segments(self.text, self.by_segment(), attention)

    def best(self) -> SegmentedText:
        """Return the best output, divided into the same segments as the text.

        If the output is in a pivot language, it is the source of the next translation.
        """
        segments = zip(self.text.segments, self.by_segment(), strict=True)
        return SegmentedText.of(
            [(segment.before, found[0].text) for segment, found in segments], self.text.after
        )


def lacks_spans(segment: PreparedSegment, outputs: Sequence[Prediction]) -> bool:
    """Return True if one of the outputs lacks a protected span of the segment."""
    return any(missing_spans(segment.protected, output.text) for output in outputs)


def repeat_options(options: PredictionOptions) -> PredictionOptions:
    """Return the options for segments that are translated a second time, without protected spans.

    The options request attention weights, which show where to insert the spans into the output.
    """
    return replace(options, attention=True, probabilities="tokens")


def add_pivot_reports(output: Prediction, pivots: Sequence[Prediction]) -> Prediction:
    """Return the final output with the warnings about all translations that led to it.

    A text can be translated through pivot languages: for example, from German into English, and
    from English into French. The result reports the unknown characters of the user's text, not
    those of the texts in pivot languages.

    pivots: the translations into pivot languages, in the order in which they were made
    """
    warnings = [warning for each in (*pivots, output) for warning in each.warnings]
    return replace(output, warnings=tuple(dict.fromkeys(warnings)), unknown=pivots[0].unknown)


def _copy(segment: PreparedSegment, task: TokenTask) -> Prediction:
    """Return the output of a segment that contains nothing to translate: the segment itself."""
    text = segment.source.removeprefix(segment.written_tag)
    parts = (text,) if text else ()
    warnings = tuple(phrase_warnings(task, segment, text))
    return Prediction(
        text, 0.0, unknown=segment.unknown, copied=True, copied_parts=parts, warnings=warnings
    )


def _complete(
    task: TokenTask, segment: PreparedSegment, output: Prediction, repeated: Prediction | None
) -> Prediction:
    """Add the protected spans of a segment, such as URLs, and warnings to its output.

    repeated: output of a second translation, whose input did not contain the protected spans. It
              replaces `output` if `output` lacks a span. None if there was no second translation
    """
    protected = segment.protected
    warnings = list(output.warnings)
    body = output.text
    targets: Sequence[int] | None = None
    read = protected.core
    core = range(len(read))
    positions: Sequence[int] = core  # of each character that the model has read, in the core
    inserted: list[str] = []
    missing = missing_spans(protected, output.text)
    if missing and repeated is not None:
        tag_words = segment.hidden_words or len(segment.written_tag[segment.unread :].split())
        body, targets = insert_missing_spans(protected, repeated, tag_words)
        read, positions = protected.without_inner()
        inserted = protected.inner_texts
        warnings += [position_warning(protected.inner_texts[number]) for number in missing]
        has_attention = output.attention is not None
        output = repeated if has_attention else replace(repeated, attention_values=NO_ATTENTION)
    text = f"{protected.leading}{body}{protected.trailing}"
    if protected.is_active:
        warnings += [number_warning(each) for each in missing_numbers(protected.text, text)]
        warnings += [] if body.strip() else [empty_warning(protected.core)]
    warnings += phrase_warnings(task, segment, text)
    if protected.leading or protected.trailing or positions is not core:
        starts = word_starts(body) if targets is None else targets
        output = _map_to_segment(segment, output, text, read, positions, starts)
    elif segment.hidden_words:
        output = _without_hidden_words(segment, output)
    parts = [protected.leading.strip(), *inserted, protected.trailing.strip()]
    copied = tuple(part for part in parts if part)
    if text == output.text and not (warnings or segment.unknown or copied):
        return output  # `replace` is slow, and most outputs are complete
    return replace(
        output,
        text=text,
        warnings=tuple(warnings),
        unknown=segment.unknown,
        copied_parts=copied,
    )


def phrase_warnings(task: TokenTask, segment: PreparedSegment, text: str) -> list[OutputWarning]:
    """Return a warning for each glossary phrase that occurs too rarely or too often in an output.

    A phrase must occur as often as the source phrase that it translates.

    text: the output of the segment, with its protected spans
    """
    if segment.glossary is None:
        return []
    phrases = required_phrases(task, segment.glossary, segment.protected.text, "")
    required = Counter(phrase.text for phrase in phrases)
    counts = count_phrases(text, required)
    read = Counter() if segment.input is None else required_counts(segment.input)
    warnings = []
    for phrase, count in required.items():
        if counts[phrase] == count:
            continue
        if counts[phrase] > count:
            reason = f"it occurs {counts[phrase]} times instead of {count}"
        elif read[phrase] < count:
            reason = "its source phrase is in a part that is copied to the output"
        elif phrase_tokens(phrase, task.target_tokenizer) is None:
            reason = "the vocabulary of the run cannot express it"
        else:
            reason = "the length limit leaves no room for it; raise decoding.max_length"
        warnings.append(glossary_warning(phrase, reason))
    return warnings


def _without_hidden_words(segment: PreparedSegment, output: Prediction) -> Prediction:
    """Remove the alignment links to the words of a hidden tag.

    The model reads a hidden tag, such as <2de>, before the segment, but the segment does not
    contain it. The source words are renumbered, so that word 0 is the first word of the segment.
    """
    hidden = segment.hidden_words
    links = ((source - hidden, target) for source, target in output.alignment if source >= hidden)
    return output.with_attention(alignment=tuple(links))


def _map_to_segment(
    segment: PreparedSegment,
    output: Prediction,
    text: str,
    read: str,
    positions: Sequence[int],
    targets: Sequence[int],
) -> Prediction:
    """Convert the word indices of an output, for example those in its alignment.

    The old indices count only the words that the model has read or generated. The new indices count
    all words of the segment and of `text`. Both also contain protected spans, such as URLs, which
    are copied from the segment to `text`.

    text:      the output with its protected spans
    read:      the text that the model has read, without tags
    positions: for each character of `read`, its index in the segment
    targets:   for each generated word, the index of its first character in `text`

    In `positions` and `targets`, index 0 is the first character after the leading protected spans.
    """
    protected = segment.protected
    visible_tag = "" if segment.unread else segment.written_tag
    offset = len(visible_tag) + len(protected.leading)
    starts = [
        *word_starts(visible_tag),
        *(offset + positions[start] for start in word_starts(read)),
    ]
    words = words_at(segment.read_source, starts)
    # source_word_of also counts the words of a tag that is not written in the segment.
    hidden = segment.hidden_words
    maps = WordMaps(
        aligned=[*[NO_WORD] * hidden, *words],
        source=[*range(hidden), *(hidden + word for word in words)],
        target=words_at(text, [len(protected.leading) + start for start in targets]),
    )
    source_text = f"{segment.tag if hidden else ''}{segment.read_source}"
    values = replace(
        maps.apply(output.read_attention()), source_text=source_text if output.source_text else ""
    )
    return replace(output, attention_values=values)


def join_segments(
    text: PreparedText, outputs: SegmentOutputs, attention: bool = True
) -> list[Prediction]:
    """Return the predictions for a text from the outputs of its segments.

    If some segments have fewer outputs than others, their last output is repeated.
    """
    if not text.segments:
        return [Prediction(text.text if text.keeps_spaces else "", 0.0)]
    ranks = max(len(each) for each in outputs)
    return [
        _join_rank(text, [each[min(rank, len(each) - 1)] for each in outputs], attention)
        for rank in range(ranks)
    ]


def _join_rank(text: PreparedText, outputs: Sequence[Prediction], attention: bool) -> Prediction:
    if len(outputs) == 1 and not text.keeps_spaces:
        return outputs[0]
    joined, starts = text.segmented.join_with_starts([output.text for output in outputs])
    if len(outputs) == 1:
        return outputs[0] if joined == outputs[0].text else replace(outputs[0], text=joined)
    segments = []
    # A tag that is repeated in front of every segment is the first word of the source text.
    tag_at = 0 if text.added_tag else len(text.text) - len(text.text.lstrip())
    for segment, output, start in zip(text.segments, outputs, starts, strict=True):
        places = [segment.start + each for each in word_starts(segment.read_source)]
        hidden = [tag_at + each for each in word_starts(segment.tag)[: segment.hidden_words]]
        source_places = [*hidden, *(len(text.added_tag) + place for place in places)]
        segments.append(OutputSegment(output, places, source_places, start))
    source_text = f"{text.added_tag}{text.text}"
    return join_outputs(joined, text.text, source_text, segments, attention=attention)
