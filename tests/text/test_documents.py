"""Documents of each format: only texts change, and the structure stays the same."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.core.errors import ConfigError, DataError
from seqloom.text.documents.formats import DocumentFormat, document_format, read_document
from seqloom.text.documents.parts import structure

CUE = "{}\n00:00:01,000 --> 00:00:02,500\n{}\n"
DOCUMENTS: dict[DocumentFormat, str] = {
    "text": "Title\n\n  First line.  \nSecond line.\n\n\n---\n",
    "markdown": """---
title: Not translated
---
# A *very* short title #

Some text with `code`, a [link](https://example.com/a_(b) "title") and <https://x.org>.
See https://example.com/page for **more** & snake_case, 5 \\* 3.

- one
  1. two
> a quote

```python
code = 1
```

    indented code

| head | cell |
|------|------|
| text | 1    |

[ref]: https://example.com
<div>html</div>
""",
    "html": """<!DOCTYPE html>
<html lang="de"><head><style>p { color: red }</style><title>A title</title></head>
<body class='x'><p>One sentence
over two lines &amp; more. <b>Bold</b> text<br/>end.</p>
<!-- comment --><pre>kept <b>as</b> is</pre> then <code>f(x)</code>. 1 &lt; 2
<script>if (a < b) { alert("text") }</script></body></html>""",
    "srt": CUE.format(1, "Hello there,\nold friend.")
    + "\n"
    + CUE.format(2, "<i>- Who?</i>\n- Me.")
    + "\n\n"
    + CUE.format(3, "{\\an8}Up").rstrip("\n"),
}
SOURCES = {
    "text": ["Title", "First line.", "Second line."],
    "markdown": [
        *("A", "very", "short title #", "Some text with", ", a", "link", "and"),
        *("See", "for", "more", "& snake_case, 5 * 3.", "one", "two", "a quote"),
        *("head", "cell", "text", "1"),
    ],
    "html": [
        *("A title", "One sentence over two lines & more.", "Bold", "text", "end."),
        *("then", ". 1 < 2"),
    ],
    "srt": ["Hello there, old friend.", "Who?", "Me.", "Up"],
}
every_format = pytest.mark.parametrize("kind", DOCUMENTS)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=60)
MARKUP = st.lists(
    st.sampled_from([*"ab1 \n#*_`<>[]()&;|~-+.!\\/:={}", "<!--", "-->", "<![", "<?", "]]>"]),
    max_size=40,
).map("".join)
TRANSLATION = st.tuples(
    st.sampled_from(["x", "1.", "1)", "- x", "+ x", "# x", "> x", "= x", "http://x"]),
    st.one_of(
        st.text("ab #*_`<>[]()&|~-+.1!\\/:={}", max_size=30),
        st.text(st.characters(exclude_categories=["C", "Z"]), max_size=9),
    ),
).map(lambda texts: "".join(texts) + "x")


@every_format
def test_only_the_texts_are_translated(kind: DocumentFormat) -> None:
    document = read_document(DOCUMENTS[kind].encode(), "file", kind)
    assert document.sources == SOURCES[kind]


@every_format
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_parts_join_to_the_document(kind: DocumentFormat, newline: str, mark: str) -> None:
    content = (mark + DOCUMENTS[kind]).replace("\n", newline).encode()
    document = read_document(content, "file", kind)
    joined = "".join(part.raw for part in document.parts)
    assert joined.replace("\n", document.newline).encode() == content


@settings(max_examples=80, deadline=None)
@given(content=st.one_of(ANY_TEXT, MARKUP), kind=st.sampled_from(["text", "markdown", "html"]))
def test_any_content_can_be_divided_and_joined(content: str, kind: DocumentFormat) -> None:
    document = read_document(content.encode(), "file", kind)
    assert "".join(part.raw for part in document.parts) == content


@pytest.mark.parametrize(
    "markup", ["<![0>", "<![if IE]>", "<![endif]>", "<![CDATA[a > b]]>", "<![x[y]>", "<!>", "<?a?>"]
)
def test_declarations_in_html_are_kept(markup: str) -> None:
    document = read_document(f"one{markup}two".encode(), "file", "html")
    assert document.sources == ["one", "two"]
    assert document.fill(["1", "2"]) == f"1{markup}2".encode()


@pytest.mark.parametrize(
    "markup", ["<b", "</b", "<b x='>", "<!-- > ", "<![CDATA[ > ", "<? ", "<! "]
)
def test_html_markup_without_end_extends_to_the_end_of_the_document(markup: str) -> None:
    document = read_document(f"one{markup} two".encode(), "file", "html")
    assert document.sources == ["one"]
    assert document.fill(["1"]) == f"1{markup} two".encode()


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("a `b` c ``d`", ["a", "c", "d"]),
        ("a ``b ` c`` d", ["a", "d"]),
        ("a ``` b `c` d", ["a", "b", "d"]),
        ("\\`a`` b` c", ["`a", "b", "c"]),
        ("a_b __c__ d__e", ["a_b", "c", "d__e"]),
        ("a__ \\__ __", ["a"]),
    ],
)
def test_inline_code_and_underscores_of_markdown(text: str, sources: list[str]) -> None:
    assert read_document(text.encode(), "file", "markdown").sources == sources


@pytest.mark.parametrize("content", ["one\n&#{};", '<a title="\n&#{}">b</a>'])
def test_character_references_with_too_many_digits_are_errors(content: str) -> None:
    """Python cannot convert more than 4,300 digits to a number."""
    for count in (1001, 4301):
        with pytest.raises(DataError, match=r"file:2: the character reference '&#9999"):
            read_document(content.format("9" * count).encode(), "file", "html")
    assert read_document(content.format("0" * 998 + "65").encode(), "file", "html").sources


@pytest.mark.parametrize(
    ("kind", "start", "repeated"),
    [
        *(("html", "", markup) for markup in ("<!--", "<![", "<?", "</", "<a ", "<a b='>' ")),
        *(("html", "", markup) for markup in ("<!--a>", "<![CDATA[a>", "&#", "<script>")),
        ("markdown", " ".join("`" * length for length in range(1, 2000)), ""),
        *(("markdown", "a", markup) for markup in ("_", "[", "](", "<a ", "\\", "*a ")),
    ],
)
def test_documents_with_much_markup_are_read_in_linear_time(
    kind: DocumentFormat, start: str, repeated: str
) -> None:
    """Quadratic time would be a minute or more for most of them."""
    content = start + repeated * (256 * 1024 // max(1, len(repeated))) + "a"
    seconds = time.process_time()
    read_document(content.encode(), "file", kind)
    assert time.process_time() - seconds < 8


@settings(max_examples=120, deadline=None)
@given(kind=st.sampled_from(list(DOCUMENTS)), data=st.data())
def test_structure_is_the_same_after_translation(kind: DocumentFormat, data: st.DataObject) -> None:
    """Even if a translation contains characters that are markup in the format."""
    document = read_document(DOCUMENTS[kind].encode(), "file", kind)
    translations = [data.draw(TRANSLATION) for _ in document.sources]
    translated = read_document(document.fill(translations), "file", kind)
    assert structure(translated.parts) == structure(document.parts)
    if kind != "srt":  # SRT cannot escape tags
        assert translated.sources == [" ".join(text.split()) for text in translations]


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("<i>- A</i>", ["A"]),
        ("<i>A</i> - B", ["A", "B"]),
        ("<i>-</i> A", ["A"]),
        ("<i>A</i> - <i>B</i>", ["A", "B"]),
        ("<b>A</b>-B", ["A", "B"]),
        ("{\\an8}– A\n<i><b> — B</b></i>", ["A", "B"]),
        (" - A\n-- B\n- - C", ["A", "B", "C"]),
        ("A - B", ["A - B"]),
        ("A\n-", ["A"]),
    ],
)
def test_dashes_of_subtitles_are_kept(text: str, sources: list[str]) -> None:
    document = read_document(CUE.format(1, text).encode(), "file", "srt")
    assert document.sources == sources
    assert document.fill(sources).decode() == CUE.format(1, text)


def test_cues_are_wrapped() -> None:
    document = read_document(DOCUMENTS["srt"].encode(), "file", "srt")
    words = " ".join(["word"] * 20)
    cue = document.fill([words, "a", "b", "c"]).decode().split("\n\n")[0].split("\n")
    assert max(map(len, cue)) <= 42
    assert " ".join(cue[2:]) == words


@pytest.mark.parametrize("dash", ["-", "–", "—", "-5", "– –"])
@pytest.mark.parametrize("before", range(36, 46))
def test_a_wrapped_line_of_a_cue_starts_with_no_dash(before: int, dash: str) -> None:
    document = read_document(CUE.format(1, "One.").encode(), "file", "srt")
    text = f"{'w' * (before - 5)} {'x' * 4} {dash} {'y' * 40} {dash} z"
    cue = document.fill([text]).decode().strip().split("\n")[2:]
    assert " ".join(cue) == text
    assert not any(line.startswith(("-", "–", "—")) for line in cue)
    # Only a word that is too long with its dash exceeds the limit.
    assert all(len(line) <= 42 or "y" in line for line in cue)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("Hello\n", r"f\.srt:1: expected the number of a cue, not 'Hello'"),
        ("1\nHello\n", r"f\.srt:2: expected the times of a cue, not 'Hello'; write them as"),
        (CUE.format(1, "a\n\nb"), r"f\.srt:5: expected the number of a cue, not 'b'; put a blank"),
        ("1", r"f\.srt:2: expected the times of a cue, not ''"),
    ],
)
def test_malformed_subtitles_are_errors_with_their_line(content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_document(content.encode(), "f.srt", "srt")


@every_format
def test_documents_that_are_not_utf8_are_errors_with_their_line(kind: DocumentFormat) -> None:
    with pytest.raises(DataError, match="file:2: byte 0xff is not valid UTF-8; convert"):
        read_document(b"a\n\xff", "file", kind)


def test_format_comes_from_the_name_or_the_option() -> None:
    assert document_format("a.MD") == "markdown"
    assert document_format("a.md", "text") == "text"
    with pytest.raises(
        ConfigError, match=r"x\.docx: the format is not known .* --format: text, mark"
    ):
        document_format("x.docx")
    with pytest.raises(ConfigError, match="unknown format 'pdf'"):
        document_format("x", "pdf")
