"""Where protected spans are inserted into outputs."""

import pytest

from seqloom.inference.prediction import Prediction
from seqloom.inference.texts.protected_outputs import insert_missing_spans
from seqloom.text.protected_spans import find_spans, protect

Links = tuple[tuple[int, int], ...]


@pytest.mark.parametrize(
    ("source", "output", "links", "expected"),
    [
        ("eins 😀 zwei drei", "three one two", ((0, 1), (1, 2), (2, 0)), "three one 😀 two"),
        ("eins 😀 zwei drei", "three one two", ((1, 2),), "three one 😀 two"),
        ("eins 😀 zwei drei vier", "one two three four", (), "one 😀 two three four"),
        ("a https://x.org, b 😀 c", "A, B C.", ((0, 0), (2, 1)), "A, https://x.org B 😀 C."),
        ("eins 😀 zwei", "", (), "😀"),
        (
            "eins <b>zwei</b> drei",
            "three two one",
            ((0, 2), (1, 1), (2, 0)),
            "three <b>two</b> one",
        ),
        ("hat {n} zwei %s.", "has two.", ((0, 0), (1, 1)), "has {n} two. %s"),
    ],
    ids=[
        "word before",
        "word after",
        "no alignment",
        "two spans",
        "empty output",
        "tags",
        "placeholders",
    ],
)
def test_spans_are_inserted_beside_aligned_words(
    source: str, output: str, links: Links, expected: str
) -> None:
    protected = protect(source, find_spans(source))
    text, starts = insert_missing_spans(
        protected, Prediction(output, -1.0).with_attention(alignment=links), 0
    )
    assert text == expected
    words = output.split()
    assert [text[start:][: len(word)] for start, word in zip(starts, words, strict=True)] == words


def test_the_words_of_a_tag_are_not_counted() -> None:
    protected = protect("eins 😀 zwei drei", find_spans("eins 😀 zwei drei"))
    prediction = Prediction("three one two", -1.0).with_attention(
        alignment=((1, 1), (2, 2), (3, 0))
    )
    assert insert_missing_spans(protected, prediction, 1)[0] == "three one 😀 two"
