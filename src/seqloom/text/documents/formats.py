"""Reads and writes documents of all formats: plain text, Markdown, HTML and SRT."""

from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, assert_never, get_args

from seqloom.core.errors import ConfigError, DataError
from seqloom.text.documents.html import html_parts
from seqloom.text.documents.markdown import markdown_parts
from seqloom.text.documents.parts import Part, fill, sources
from seqloom.text.documents.plain import plain_parts
from seqloom.text.documents.srt import srt_parts

DocumentFormat = Literal["text", "markdown", "html", "srt"]
SUFFIXES: dict[str, DocumentFormat] = {
    ".txt": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".srt": "srt",
}
BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class Document:
    """A document, divided into parts. Some are texts to translate; the others stay as they are.

    parts:   all parts of the document in order. Their lines end with "\\n", which `fill` replaces
             by `newline`
    newline: line ending of the document: "\\r\\n" if all its lines end with this, otherwise "\\n"
    """

    parts: tuple[Part, ...]
    newline: str

    @property
    def sources(self) -> list[str]:
        """The texts to translate, in order."""
        return sources(self.parts)

    def fill(self, translations: list[str]) -> bytes:
        """Return the document with each source replaced by its translation."""
        return fill(self.parts, translations).replace("\n", self.newline).encode()


def document_format(name: str, chosen: str | None = None) -> DocumentFormat:
    """Return the chosen format. If none is chosen, derive the format from the file name.

    Raises ConfigError if the format is unknown.
    """
    for known in get_args(DocumentFormat):
        if known == chosen:
            return known
    if chosen is None and PurePath(name).suffix.lower() in SUFFIXES:
        return SUFFIXES[PurePath(name).suffix.lower()]
    problem = f"unknown format '{chosen}'" if chosen else "the format is not known from the name"
    raise ConfigError(
        f"{name}: {problem}; choose a format with --format: {', '.join(get_args(DocumentFormat))}"
    )


def read_document(content: bytes, name: str, kind: DocumentFormat) -> Document:
    """Divide a document into parts. Some are texts to translate; the others stay as they are.

    name: name of the file, for error messages
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{name}:{line}: byte 0x{content[error.start]:02x} is not valid UTF-8; convert the file, "
            "for example with: iconv -f LATIN1 -t UTF-8"
        ) from error
    newline = "\n"
    if text.count("\r") == text.count("\r\n") == text.count("\n") > 0:
        newline, text = "\r\n", text.replace("\r\n", "\n")
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    body = text.removeprefix(mark)
    parts = [Part(mark), *_parts(body, name, kind)]
    if kind != "html":
        # The formats with lines yield a line break after each line, also after the last one.
        assert parts[-1].raw.endswith("\n")
        parts[-1] = Part(parts[-1].raw[:-1])
    assert "".join(part.raw for part in parts) == text
    return Document(tuple(parts), newline)


def _parts(content: str, name: str, kind: DocumentFormat) -> list[Part]:
    match kind:
        case "text":
            return list(plain_parts(content))
        case "markdown":
            return list(markdown_parts(content))
        case "html":
            return list(html_parts(content, name))
        case "srt":
            return list(srt_parts(content, name))
        case _:
            assert_never(kind)
