"""HTML: translates the text between tags. Tags, attributes and comments are kept byte for byte.

The content of script, style, pre, code and similar elements stays as it is. Tags inside a sentence
divide it into separate texts. A tag or comment without an end extends to the end of the document.
"""

import re
from collections.abc import Iterator
from html import escape, unescape
from html.parser import HTMLParser
from itertools import accumulate

from seqloom.core.errors import DataError
from seqloom.text.documents.parts import Part, text_parts

UNTRANSLATED = frozenset(
    {"script", "style", "pre", "code", "kbd", "samp", "var", "textarea", "template", "svg", "math"}
)
"""Elements whose content is not translated."""

MAX_DIGITS = 1000
LONG_REFERENCE = re.compile(rf"&#\d{{{MAX_DIGITS + 1}}}")
"""Python converts at most 4,300 digits to a number. No character needs more than 7."""


def html_parts(content: str, name: str) -> Iterator[Part]:
    """Divide HTML into texts to translate and parts that stay as they are.

    Raises a DataError if a character reference has too many digits.

    name: name of the file or field for the error message
    """
    if match := LONG_REFERENCE.search(content):
        line = content.count("\n", 0, match.start()) + 1
        raise DataError(
            f"{name}:{line}: the character reference '{match[0][:10]}…' has more than {MAX_DIGITS:,} "
            "digits; correct it, or remove it"
        )
    position = 0
    for start, end in _text_ranges(content):
        yield Part(content[position:start])
        yield from text_parts(content[start:end], _parse, _render)
        position = end
    yield Part(content[position:])


def _parse(text: str) -> str:
    # White space is not significant in HTML, so a sentence may continue on the next line.
    return re.sub(r"\s+", " ", unescape(text))


def _render(text: str) -> str:
    return escape(text, quote=False)


def _text_ranges(content: str) -> list[tuple[int, int]]:
    """Return the start and end of each text to translate. These texts are between tags."""
    finder = _TextFinder(content)
    finder.feed(content)
    finder.close()
    return finder.finish()


class _TextFinder(HTMLParser):
    """An HTML parser that records where each text to translate starts and ends."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=False)
        lengths = (len(line) + 1 for line in content.split("\n"))
        self._line_starts = [0, *accumulate(lengths)]
        self._end = len(content)
        self._ranges: list[tuple[int, int]] = []
        self._text_start: int | None = None
        self._untranslated: list[str] = []

    def finish(self) -> list[tuple[int, int]]:
        self._end_text(self._end)
        return self._ranges

    def _position(self) -> int:
        line, column = self.getpos()
        return self._line_starts[line - 1] + column

    def _begin_text(self) -> None:
        if self._text_start is None and not self._untranslated:
            self._text_start = self._position()

    def _end_text(self, end: int) -> None:
        if self._text_start is not None:
            self._ranges.append((self._text_start, end))
            self._text_start = None

    def handle_data(self, data: str) -> None:
        self._begin_text()

    def handle_entityref(self, name: str) -> None:
        self._begin_text()

    def handle_charref(self, name: str) -> None:
        self._begin_text()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._end_text(self._position())
        # Inside such an element, only elements of the same name count, to find its end.
        is_nested = bool(self._untranslated) and tag == self._untranslated[0]
        if is_nested or (not self._untranslated and tag in UNTRANSLATED):
            self._untranslated.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._end_text(self._position())

    def handle_endtag(self, tag: str) -> None:
        self._end_text(self._position())
        if self._untranslated and tag == self._untranslated[0]:
            self._untranslated.pop()

    def handle_comment(self, data: str) -> None:
        self._end_text(self._position())

    def handle_decl(self, decl: str) -> None:
        self._end_text(self._position())

    def handle_pi(self, data: str) -> None:
        self._end_text(self._position())

    def unknown_decl(self, data: str) -> None:
        self._end_text(self._position())

    # The base class calls these methods at the start of a tag, a comment or a declaration. They
    # return -1 if it has no end. In some Python versions, the base class then searches for the end
    # of each further one, which takes quadratic time.

    def parse_starttag(self, i: int) -> int:
        return self._end_of_markup(super().parse_starttag(i))

    def parse_endtag(self, i: int) -> int:
        return self._end_of_markup(super().parse_endtag(i))

    def parse_comment(self, i: int, report: bool = True) -> int:
        return self._end_of_markup(super().parse_comment(i, report))

    def parse_pi(self, i: int) -> int:
        return self._end_of_markup(super().parse_pi(i))

    def parse_html_declaration(self, i: int) -> int:
        return self._end_of_markup(super().parse_html_declaration(i))

    def _end_of_markup(self, end: int) -> int:
        """Return `end`; if it is -1, the end of the document, as in browsers."""
        if end >= 0:
            return end
        self._end_text(self._position())
        return len(self.rawdata)

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """Parse "<![" at index `i` as a comment up to ">", as browsers do.

        The parser of some Python versions would raise AssertionError for unknown names, for example
        in "<![0". Return the index of the end; -1 if there is no end.
        """
        if self.rawdata.startswith("<![CDATA[", i):
            return super().parse_marked_section(i, report)
        return self.parse_bogus_comment(i, report)
