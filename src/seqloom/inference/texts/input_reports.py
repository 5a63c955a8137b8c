"""Warnings about outputs, and a report that summarises them for many texts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from seqloom.inference.prediction import Prediction
from seqloom.inference.texts.preparation import unknown_parts
from seqloom.tasks.token_task import TokenTask

MAX_LISTED = 5
"""Maximum number of line numbers, and of parts of the source, in a message."""

ProblemKind = Literal["unknown", "position", "number", "empty", "glossary"]
"""unknown: the vocabulary does not contain a part of the source. position: seqloom chose where a
protected span was inserted. number: a number of the source is missing in the output. empty: the
output of a sentence is empty. glossary: the output does not contain a glossary phrase as often as
required."""


class OutputWarning(str):
    """A warning about an output: a string that also has a kind.

    `Prediction.warnings` can also contain plain strings, which have no kind.

    kind: kind of the problem
    part: what the problem is about, for example the number that is missing in the output
    """

    kind: ProblemKind
    part: str

    def __new__(cls, text: str, kind: ProblemKind, part: str) -> "OutputWarning":
        warning = super().__new__(cls, text)
        warning.kind, warning.part = kind, part
        return warning


def position_warning(span: str) -> OutputWarning:
    text = (
        f"the model left out {span!r}. It was inserted into the output at a position that seqloom "
        "chose"
    )
    return OutputWarning(text, "position", span)


def number_warning(number: str) -> OutputWarning:
    text = f"the number {number} of the source is missing in the output"
    return OutputWarning(text, "number", number)


def empty_warning(sentence: str) -> OutputWarning:
    return OutputWarning(f"the output of {sentence!r} is empty", "empty", sentence)


def glossary_warning(phrase: str, reason: str) -> OutputWarning:
    text = f"the output does not contain the glossary phrase {phrase!r} as required: {reason}"
    return OutputWarning(text, "glossary", phrase)


@dataclass
class Problem:
    """Texts with the same kind of problem.

    numbers: the numbers of the texts, counted from 1
    parts:   the words or characters that cause the problem, for example unknown characters, and how
             often each occurs
    """

    numbers: list[int] = field(default_factory=list)
    parts: Counter[str] = field(default_factory=Counter)


@dataclass
class InputReport:
    """Collects the problems of many outputs, and summarises each kind of problem in one message.

    unknown_unit: what the messages call an unknown part of a source: "character" or "word"
    unit:         what the messages call a text, for example "line"
    total:        number of texts so far
    """

    unknown_unit: Literal["character", "word"]
    unit: str = "line"
    total: int = 0
    problems: dict[ProblemKind, Problem] = field(default_factory=dict)

    def add(self, output: Prediction) -> None:
        """Add the problems of the next text to the report.

        output: the best output of this text
        """
        self.total += 1
        found: dict[ProblemKind, list[str]] = {}
        if output.unknown:
            found["unknown"] = list(output.unknown)
        for warning in output.warnings:
            if isinstance(warning, OutputWarning):
                found.setdefault(warning.kind, []).append(warning.part)
        for kind, parts in found.items():
            problem = self.problems.setdefault(kind, Problem())
            problem.numbers.append(self.total)
            problem.parts.update(parts)

    def messages(self) -> list[str]:
        """Return one message for each kind of problem."""
        return [self._message(kind, problem) for kind, problem in sorted(self.problems.items())]

    def _message(self, kind: ProblemKind, problem: Problem) -> str:
        unknown = f"{self.unknown_unit}s"
        plural = self.total > 1 and len(problem.numbers) > 1
        contain = "contain" if plural else "contains"
        have = "have" if plural else "has"
        statements: dict[ProblemKind, tuple[str, str]] = {
            "unknown": (
                f"{contain} {unknown} that the vocabulary does not know",
                f"The model cannot translate these {unknown}. Check the outputs, replace the "
                f"{unknown}, or train with text that contains them.",
            ),
            "position": (
                f"{contain} parts that the model left out",
                "They were inserted into the outputs at positions that seqloom chose. Check these "
                "outputs.",
            ),
            "number": (
                f"{have} numbers that are missing in the output",
                "Check these outputs.",
            ),
            "empty": (
                f"{have} sentences with an empty output",
                "Check these outputs.",
            ),
            "glossary": (
                f"{have} glossary phrases that the output does not contain as often as required",
                "The vocabulary cannot express them, the outputs reached the length limit, or they "
                "occur too often. Check these outputs; --json gives the reason for each.",
            ),
        }
        statement, advice = statements[kind]
        subject = f"the {self.unit}"
        listed = ""
        if self.total > 1:
            subject = f"{len(problem.numbers):,} of {self.total:,} {self.unit}s"
            numbers = _list([str(number) for number in problem.numbers], ", ")
            listed = f" ({self.unit}{'s' if plural else ''} {numbers})"
        frequent = [_visible(part) for part, _ in problem.parts.most_common()]
        return f"{subject} {statement}{listed}: {_list(frequent, ' ')}. {advice}"


def _visible(part: str) -> str:
    """Return the text `part` in a visible form.

    White space and text that cannot be printed become code points, such as U+0020.
    """
    if part.isprintable() and not part.isspace():
        return part
    return " ".join(f"U+{ord(character):04X}" for character in part)


def _list(items: Sequence[str], separator: str) -> str:
    more = ["…"] if len(items) > MAX_LISTED else []
    return separator.join([*items[:MAX_LISTED], *more])


def report_messages(
    outputs: Sequence[Prediction], unknown_unit: Literal["character", "word"], unit: str
) -> list[str]:
    """Return the messages about problems of several texts, one for each kind of problem.

    outputs:      the best output of each text
    unknown_unit: what the messages call an unknown part of a source: "character" or "word"
    unit:         what the messages call a text, for example "line"
    """
    report = InputReport(unknown_unit, unit)
    for output in outputs:
        report.add(output)
    return report.messages()


def unknown_messages(task: TokenTask, texts: Sequence[str], unit: str) -> list[str]:
    """Return a message if some texts contain characters or words that the vocabulary lacks.

    unit: word for a text in the message, for example "text" or "source"
    """
    if task.source_tokenizer is None:
        return []
    found = [Prediction("", 0.0, unknown=unknown_parts(task, text)) for text in texts]
    return report_messages(found, task.source_tokenizer.unknown_unit, unit)
