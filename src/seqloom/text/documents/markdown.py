"""Markdown: translates the text of paragraphs, headings, lists, quotes and tables, line by line.

Code blocks, inline code, URLs, HTML, link definitions and front matter stay as they are. Emphasis,
links and inline code divide a line into separate texts.
"""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt

from seqloom.text.documents.parts import Part, text_parts

FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
LINE_PREFIX = re.compile(
    r"(?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)]|#{1,6})(?=[ \t])))*[ \t]*(?:\[[ xX]\][ \t])?"
)
"""The markers of quotes, lists, headings and tasks at the start of a line."""
MARKUP = re.compile(
    r"(?<!\\)(?:\\\\)*(?:"
    r"(?P<ticks>`+)"
    r"|!?\["
    r"|\]\([^()]*(?:\([^()]*\)[^()]*)*\)"  # the URL of a link
    r"|\]\[[^\]]*\]|\]"
    r"|<[^<>]*>"  # HTML and autolinks
    r"|https?://[^\s<>|]+"
    r"|&(?:\#\w+|\w+);"
    r"|\*+|~~+|(?<!\w)_+|(?<![^\\]_)_++(?!\w)"
    r"|\|"
    r")|\\\Z"
)
"""Parts of a line that are not translated. For inline code, only the backticks before it match.

At most one underscore of a run can start a match. Otherwise a long run would take quadratic time.
"""
TICKS = re.compile("`+")
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
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])  # not the slow parsing inside the lines
    tokens = parser.parse(body)
    ranges = (token.map for token in tokens if token.type == "inline" and token.map)
    return {line for first, last in ranges for line in range(first, last)}


def _line_parts(line: str) -> Iterator[Part]:
    prefix = LINE_PREFIX.match(line)
    start = prefix.end() if prefix else 0
    yield Part(line[:start])
    rest, position = line[start:], 0
    for markup_start, markup_end in _markup_ranges(rest):
        yield from _text_parts(rest[position:markup_start])
        yield Part(rest[markup_start:markup_end])
        position = markup_end
    yield from _text_parts(rest[position:])


def _markup_ranges(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each part of a text that is not translated."""
    # Runs of backticks by their length, the last one first. A search for the end of each inline
    # code would take quadratic time if many of them have no end.
    runs: dict[int, list[re.Match[str]]] = {}
    for run in reversed(list(TICKS.finditer(text))):
        runs.setdefault(len(run[0]), []).append(run)
    position = 0
    while match := MARKUP.search(text, position):
        start, position = match.span()
        if match["ticks"]:
            same = runs.get(len(match["ticks"]), [])
            while same and same[-1].start() < position:
                same.pop()
            if same:
                position = same[-1].end()
        yield start, position


def _text_parts(text: str) -> Iterator[Part]:
    return text_parts(text, lambda raw: ESCAPED.sub(r"\1", raw), _escape)


def _escape(text: str) -> str:
    """Escape the characters of a translation that Markdown would read as markup."""
    return SPECIAL.sub(_escape_match, text)


def _escape_match(match: re.Match[str]) -> str:
    special = match[0]
    # For "1." and "http:", `special` is "1" or "http". The character after it is escaped.
    return f"{special}\\" if special[-1].isalnum() else f"\\{special}"
