"""Reports about unknown characters, inserted parts and missing numbers of many texts."""

import json

from seqloom.inference.prediction import Prediction
from seqloom.inference.texts.input_reports import (
    InputReport,
    number_warning,
    position_warning,
    report_messages,
)

PLAIN = Prediction("ok", -1.0)


def test_texts_without_problems_have_no_messages() -> None:
    assert report_messages([PLAIN, PLAIN], "character", "line") == []


def test_unknown_characters_are_counted_by_line() -> None:
    report = InputReport("character")
    for number in range(1, 121):
        unknown = {4: ("😀", "ß"), 17: ("😀",), 90: ("\u200b",)}.get(number, ())
        report.add(Prediction("ok", -1.0, unknown=unknown))
    [message] = report.messages()
    assert message.startswith(
        "3 of 120 lines contain characters that the vocabulary does not know (lines 4, 17, 90): "
        "😀 ß U+200B. "
    )
    assert "train with text that contains them" in message


def test_a_single_text_has_no_number() -> None:
    [message] = report_messages([Prediction("ok", -1.0, unknown=("Kater",))], "word", "text")
    assert message.startswith("the text contains words that the vocabulary does not know: Kater. ")


def test_only_the_first_lines_and_parts_are_listed() -> None:
    outputs = [Prediction("ok", -1.0, unknown=(chr(0x3041 + n),)) for n in range(9)]
    [message] = report_messages(outputs, "character", "line")
    assert "(lines 1, 2, 3, 4, 5, …): ぁ あ ぃ い ぅ …. " in message


def test_each_kind_of_warning_has_one_message() -> None:
    warnings = (position_warning("😀"), number_warning("1234"), "another warning")
    messages = report_messages([PLAIN, Prediction("ok", -1.0, warnings=warnings)], "word", "line")
    assert [message.partition(". ")[0] for message in messages] == [
        "1 of 2 lines has numbers that are missing in the output (line 2): 1234",
        "1 of 2 lines contains parts that the model left out (line 2): 😀",
    ]


def test_warnings_are_strings() -> None:
    assert json.loads(json.dumps(number_warning("12"))) == (
        "the number 12 of the source is missing in the output"
    )
