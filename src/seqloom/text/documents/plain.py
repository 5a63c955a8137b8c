"""Plain text: each line is translated, and blank lines and white space are kept."""

from collections.abc import Iterator

from seqloom.text.documents.parts import Part, text_parts


def plain_parts(content: str) -> Iterator[Part]:
    for line in content.split("\n"):
        yield from text_parts(line)
        yield Part("\n")
