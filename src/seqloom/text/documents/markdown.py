"""Markdown: translates the text of paragraphs, headings, lists, quotes and tables, line by line.

Code blocks, inline code, URLs, HTML, link definitions and front matter stay as they are. Emphasis,
links and inline code divide a line into separate texts.
"""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt

from seqloom.text.documents.parts import Part, split_at, text_parts

FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
LINE_PREFIX = re.compile(
    r"(?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)]|#{1,6})(?=[ \t])))*[ \t]*(?:\[[ xX]\][ \t])?"
)
"""The markers of quotes, lists, headings and tasks at the start of a line."""
MARKUP = re.compile(
    r"(?<!\\)(?:\\\\)*(?:"
    r"(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)"  # inline code
    r"|`+"
    r"|!?\["
    r"|\]\([^()]*(?:\([^()]*\)[^()]*)*\)"  # the URL of a link
    r"|\]\[[^\]]*\]|\]"
    r"|<[^<>]*>"  # HTML and autolinks
    r"|https?://[^\s<>|]+"
    r"|&(?:\#\w+|\w+);"
    r"|\*+|~~+|(?<!\w)_+|_+(?!\w)"
    r"|\|"
    r")|\\\Z"
)
"""Parts of a line that are not translated."""
PUNCTUATION = r"!-/:-@\[-`{-~"
ESCAPED = re.compile(rf"\\([{PUNCTUATION}])")
SPECIAL = re.compile(r"[\\`*_\[\]<>|~&#]|https?(?=:)|^(?:[-+=]|\d+(?=[.)]))")
"""Characters of a translation that Markdown could read as markup. A number or "http" matches
because the character after it must be escaped."""


def markdown_parts(content: str) -> Iterator[Part]:
    front_matter = FRONT_MATTER.match(content)
    start = front_matter.end() if front_matter else 0
    yield Part(content[:start])
    body = content[start:]
    text_lines = _text_lines(body)
    for number, line in enumerate(body.split("\n")):
        if number in text_lines:
            yield from _line_parts(line)
        else:
            yield Part(line)
        yield Part("\n")


def _text_lines(body: str) -> set[int]:
    """Return the indices of the lines with text. Lines of code, HTML and link definitions are not
    among them."""
    tokens = MarkdownIt("commonmark").enable("table").parse(body)
    ranges = (token.map for token in tokens if token.type == "inline" and token.map)
    return {line for first, last in ranges for line in range(first, last)}


def _line_parts(line: str) -> Iterator[Part]:
    prefix = LINE_PREFIX.match(line)
    start = prefix.end() if prefix else 0
    yield Part(line[:start])
    for text, is_markup in split_at(MARKUP, line[start:]):
        if is_markup:
            yield Part(text)
        else:
            yield from text_parts(text, lambda raw: ESCAPED.sub(r"\1", raw), _escape)


def _escape(text: str) -> str:
    """Escape the characters of a translation that Markdown would read as markup."""
    return SPECIAL.sub(_escape_match, text)


def _escape_match(match: re.Match[str]) -> str:
    special = match[0]
    # For "1." and "http:", `special` is "1" or "http". The character after it is escaped.
    return f"{special}\\" if special[-1].isalnum() else f"\\{special}"
